// Package relay brings to Redis what package store has: the newest policy, the records of tenants, the overrides and the mode
// switches. The database is the intent, and Redis has what comes of it.
//
// A [Relay] reads the outbox, in which messages say what has changed and not how: it looks at what is in the database now, brings
// Redis to that, and only then removes the message. So everything arrives at least once, what arrives twice changes nothing, and a
// change waits for no Redis. Of several daemons one does it at a time, which holds a lease in the database. Two that do it for a
// moment, because one of them stood still, harm nothing: a policy is only ever raised, the record of a tenant replaces only
// the one that was looked at, and an override says in Redis which change it comes from.
//
// What Redis loses is put back. After every failure, and each half minute in any case, everything is compared with the database, page
// by page, between messages that come meanwhile. What a Redis has that the database never had is left
// alone: override records that the command has set are noted, with an entry in the audit log.
package relay
