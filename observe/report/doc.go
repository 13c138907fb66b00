// Package report writes into Redis, once a second, what an instance has decided: refusals with what explains them, counts of its tenants and
// operations, and samples of what was asked. It reads the same of all instances.
//
// A [Reporter] is an observer of the server and of the policy. Requests never wait for it: it counts, or puts an event into a buffer of
// bounded size. One goroutine sends everything in one pipeline. Refusals and other events go to the streams of package redisstream,
// counts with samples to a capped stream of their own, the activity, and refusals of whole hours to a hash that the collector of usage reads. A [Reader] finds a refusal by its id, adds up the last minutes, and
// yields the samples, from which a policy is simulated.
package report
