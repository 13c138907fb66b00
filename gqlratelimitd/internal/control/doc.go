// Package control has what the control plane does, once for all who ask for it: publish a policy and go back to an earlier one,
// write the records of tenants, divide their limits, set overrides, switch modes in an emergency, and issue tokens.
//
// [Control] has a method for each. A method that changes something takes a [Request]: who asks, why, and perhaps an idempotency
// key. It asks package access whether the actor may, checks everything else, and then does in one transaction of the store
// what was asked for, with an entry in the audit log and a message in the outbox for who has to hear of it. So there is no change
// without an entry, and no entry without a change. What is refused changes nothing.
//
// Who changes something says which revision they have seen, 0 for nothing. If another one is there, the error is a
// [*ConflictError], which says whose it is.
//
// Names of tenants, teams, users and operations are UTF-8 without control characters here, although the limiter takes any bytes:
// people and JSON have to carry them.
package control
