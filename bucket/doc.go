// Package bucket keeps the budgets: token buckets and windows, several for an owner, taken from in
// one atomic step.
//
// A [Limit] is one budget rule. [Compile] checks the limits of one owner and turns them into
// [Limits], the form in which the arithmetic runs. A [Bucket] names an [Owner] and its Limits, a
// [Take] charges several buckets of one tenant at once, all or nothing, and a [Store] does it:
// [Memory] in one process, [Redis] for as many replicas as there are. Package redisclient makes clients that suit it.
//
// An [Override] is a record in the store that beats the policy from the next take on, in every replica:
// see [OverrideStore].
//
// All arithmetic is on integers that a Lua double holds exactly, the same in Go and in Lua. The
// state of a limit is its debt, in units of 1/p token; debt decays by r units each millisecond,
// where r/p is the refill in lowest terms. With a [Window] it is what was used in the window, and comes
// back at its end. An absent key is a full bucket.
//
// A refusal is a value in [Result]. An error means that the store broke: [ErrUnavailable] when
// nothing happened, [ErrAmbiguous] when the charge may have been applied.
package bucket
