// Package throttle sheds a share of the load while the servers of a fleet are overloaded: a share that all instances
// have in common, that grows in bounded steps and comes back slowly, and that begins with the lowest tiers and, within one, with
// those who ask for more than their fair share.
//
// Each instance says once a second how far its signals are from their targets: processor time, memory, latency, errors, and whatever
// a server feeds in with [Throttle.Signal]. A [Centre] keeps one number for all of them, the shed share, and moves it by one law. It
// is [Memory] in a single process, and package redisthrottle has one in Redis. When the signals are stale, or the centre does not
// answer, the share falls to zero within five seconds after three: a throttle that knows nothing refuses nothing.
//
//	t, err := throttle.New(throttle.Config{Centre: centre, Latency: 200 * time.Millisecond})
//	if err != nil {
//		return err
//	}
//	go t.Run(ctx)
//	limiter := ratelimit.New(ratelimit.Config{Throttle: ratelimit.ThrottleConfig{Throttle: t}, …})
//
// It knows neither GraphQL nor budgets: package ratelimit asks it before an operation is charged.
package throttle
