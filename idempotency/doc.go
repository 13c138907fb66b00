// Package idempotency holds the words of idempotent requests: the [Key] that a client sends, the
// [Fingerprint] of what it asked for, the [AttemptID] of each try, and the [Claim] that a store
// writes in the same step that charges.
//
// A repeat of an operation under the same key and with the same fingerprint is a replay, and never
// charged twice: it is answered from what is stored, or runs again on the first charge. The package is a leaf. It knows neither Redis nor GraphQL; the records
// themselves are kept by the stores of package bucket, because a claim and its charge are one
// atomic step.
//
// The header is the one of draft-ietf-httpapi-idempotency-key-header.
package idempotency
