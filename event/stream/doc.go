// Package stream brings events to brokers as CloudEvents, keyed by tenant: refusals, what would have been refused, thresholds, and what
// instances do with policies.
//
// A [Queue] is the event.Observer of a server. It takes an event within a microsecond and never waits: what it has no room for it drops and
// counts, in the metric ratelimit.events.dropped and, by reason, in ratelimit.stream.dropped. One goroutine brings what it holds to a [Sink]
// in batches. A batch that the broker does not take is sent again, later each time, until its events are too old.
//
// What that guarantees: each event that was not counted as dropped is in the broker at least once. An event that is there twice has the same ID.
// After those are taken out, the events of one tenant from one instance stand in each topic in the order in which they happened, and their
// sequence has a gap for each that was dropped. Nobody bills from them.
//
// Sinks are event/redisstream and, as a module of its own, contrib/kafkastream. Package event/streamtest is the
// contract for further ones. docs/reference/streams.md has each type of event with its data.
package stream
