// Package audit keeps a log of who changed what: rows that are only ever appended, joined by a chain of hashes.
//
// An [Entry] is written once, as exact bytes. Its [Row] has these bytes and a hash, which is the SHA-256 of the hash of the row before
// and of the bytes. [Verify] and [VerifyLog] find a row that was removed, changed, inserted or moved, and name its number.
//
// The chain needs no key, so whoever may write the database can write another log from a row on, with hashes that fit, or drop rows
// from the end. Both are found by a [Mark] that was kept elsewhere: the number and the hash of a row. Verification without one says
// nothing of rows that were cut off at the end.
//
// A log is kept in a [Storage]. The package imports nothing else of this module, so that a program that verifies needs nothing of the
// service.
package audit
