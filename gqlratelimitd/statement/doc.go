// Package statement is what a tenant has used in a billing period, frozen: a text of numbers that the key of the audit log has signed, and that never
// changes. A difference that is found later is a statement of its own, a correction, which names the one that it corrects and states the difference.
//
// A [Statement] is written by [Statement.Sign] and read by [Open], which needs nothing but the bytes and a public key; [Check] holds statements of a
// tenant against each other. Whoever pays a bill needs no daemon and no database.
package statement
