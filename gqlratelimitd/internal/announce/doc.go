// Package announce tells a broker what the control plane has done: each entry of the audit log becomes an event, a CloudEvent of package
// stream.
//
// The audit log is the outbox. Each change writes its entry in its own transaction, entries have one order and are never removed, so nothing has
// to be written beside it. How much has arrived is a number in the database, which moves once the broker has acknowledged. So each entry
// arrives at least once. Of several daemons one announces at a time, under a lease; two that do it for a moment send the same under the same ids.
//
// An [Announcer] reads, and nobody waits for it: a broker that is frozen or away delays no change and nothing else of the daemon.
package announce
