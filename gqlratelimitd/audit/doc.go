// Package audit keeps a log of who changed what: a Merkle tree over entries, with signed checkpoints.
//
// An [Entry] is written once, as exact bytes, and these bytes are a leaf of the tree of golang.org/x/mod/sumdb/tlog. A
// [Checkpoint] is the size and the root of the tree, signed with Ed25519. Whoever has kept a checkpoint elsewhere can tell whether the
// log has since been added to and nothing else: [CheckGrowth] from a proof, [Verify] from an export, without the
// service. This makes the log tamper-evident. It keeps nobody who owns the database and the key from writing another log; it lets
// everybody see it who has a checkpoint of before.
//
// What a log is kept in is a [Storage]; package audittest is its contract. The package imports nothing else of this module, so that
// a program that verifies needs nothing of the service.
package audit
