// Package idempotency holds the words of idempotent requests: the [Key] that a client sends, the
// [Fingerprint] of what it asked for, the [AttemptID] of each try, and the [Claim] that a store
// writes in the same step that charges.
//
// A repeat of an operation under the same key and with the same fingerprint is a replay: it is answered from
// what is stored, and charged nothing. Where no answer is stored a mutation is refused, and a query runs again
// at its price. What was abandoned by a crash runs again on its first charge.
//
// The package is a leaf. It knows neither Redis nor GraphQL; the records themselves are kept by the stores of
// package bucket, because a claim and its charge are one atomic step.
//
// The header is the one of draft-ietf-httpapi-idempotency-key-header.
package idempotency
