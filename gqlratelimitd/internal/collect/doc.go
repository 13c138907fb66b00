// Package collect brings what was counted into the database: what the store of budgets has counted of tenants, and what instances say of their
// decisions.
//
// A [Collector] reads each minute once it was told in full, and the hours that it tells, and now and then the minute that is not yet over. From time to
// time it searches the store of budgets for what nobody has told, and forgets there what is over and has not changed since it was written. What it
// writes are absolute numbers, of which the larger one stays. So it does not matter how often something is read, in which order, or by how many
// at once: after a crash at any point the same is read again. A lease has one daemon do it, only because once is enough.
//
// Beside that it computes hours, days and months anew from the level below, where that has changed, and forgets what is older than it is kept for.
package collect
