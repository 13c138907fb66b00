// Package rollout brings a policy to all tenants step by step, and stops by itself where it refuses too many.
//
// [State] is a roll-out: what it has reached and what it waits for. Its methods, and those of [Situation], are pure: they take the time and what was
// measured or what somebody wants, and return the next state with the revision that is to be published with it. [Driver] does what they say as
// time passes, with a [Store] that saves the state and publishes the revision in one transaction; what people want is for package control. So a roll-out goes on where it was after a restart, and on whichever daemon is there.
package rollout
