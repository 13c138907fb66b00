// Package event is what observers are told about the budgets of tenants: that one is nearly used up,
// that a limit refuses or would, that a tenant is refused again and again; and that the breaker of a node of the store
// has opened or closed.
//
// An [Event] is a fact of a type of its own, such as [ThresholdCrossed]. An [Observer] is told of it in
// the request that made it, so it must not block: [Channel] hands events to a goroutine of the user and
// counts those that it had no room for, [Logger] writes them to a log.
//
// [Decided] says what a single operation came to and what led to it: a sample of the refusals of each tenant,
// found by the id that its client was given, and of the others a share.
//
// All other facts are told once for each period of a token bucket and for each window, of a limit and owner, and not
// once for each request; what every single request came to is counted by the metrics of package ratelimit.
// A window is told apart from the next by the clock of the store. One that no charge has opened, as when
// nothing but operations above its capacity come, counts as a window as well, as long as they are at most.
// What no limit says, such as a maximum cost, is told once a minute.
//
// Each replica remembers for itself what it has told: about 4000 facts in all kinds, those that happen
// again and again for the longest. With more owners at their limits than that, some are told again.
package event
