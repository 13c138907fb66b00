// Package collect brings what was counted into the database: what the store of budgets has counted of tenants, and how many operations instances
// have refused.
//
// Once a minute a [Collector] looks through the store of budgets and reads the counts of the present hour and the one before. From time to time it
// reads those of all hours, and forgets there what is over and has not changed since it was written. What it writes are absolute numbers, of
// which the larger one stays. So it does not matter how often something is read, in which order, or by how many at once: after a crash at any
// point the same is read again. A lease has one daemon do it, only because once is enough.
//
// Beside that it forgets what is older than it is kept for.
package collect
