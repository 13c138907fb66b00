// Package store keeps what the daemon knows in SQL: in a file of SQLite, or in a PostgreSQL that several daemons share. Both
// have the same tables, and one set of tests.
//
// [DB.Change] is the only way to write. It is one transaction, which locks the head row before it reads anything. So changes
// have one order, in which they are committed: who has read a revision has missed none below it, an audit log has no fork, and
// of many who expect the same revision one wins. [DB.Read] reads, as of one moment.
//
// Revisions and the audit log are append-only: triggers refuse to change what stands there. In a PostgreSQL that is the second
// line. The first is a daemon whose role does not own the tables, and may SELECT and INSERT there and nothing else: another role
// runs what [Script] and [Grants] return.
//
// The package knows no rights and judges no documents. That is the work of package control.
package store
