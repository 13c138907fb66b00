// Package postgresfeed brings revisions of a policy, and records of tenants, to instances through a PostgreSQL, version 12 or newer.
//
// A database keeps every revision in a row, and says in one row of a policy, which publishers lock, which is the newest. So
// numbers are taken in the order in which revisions are committed, and of many who publish over the same one, one wins.
// [Migrate] makes the tables. Instances listen to notifications, read, and read again at an interval (package policy).
//
// [Records] is the source of a directory of tenants (package policy/directory): rows that instances read when a tenant comes.
//
// A pooler in transaction mode takes LISTEN and delivers nothing. A feed therefore sends itself a notification
// over another connection when it begins to listen. If that does not arrive, it says so ([Feed.HintsFailure]), and the interval alone
// decides how soon a revision is there. [Config.Listen] leads past the pooler.
package postgresfeed
