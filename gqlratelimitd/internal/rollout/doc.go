// Package rollout brings a policy to all tenants step by step, and stops by itself where it refuses too many.
//
// [State] is a roll-out: what it has reached and what it waits for. Its methods are pure: they take the time and what was measured, and return the next
// state with the revision that is to be published with it. [Driver] does what they say, with a [Store] that saves the state and publishes the
// revision in one transaction. So a roll-out goes on where it was after a restart, and on whichever daemon is there.
package rollout
