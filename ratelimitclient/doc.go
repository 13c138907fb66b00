// Package ratelimitclient is what a Go client needs to read the answers of a server that uses
// package ratelimit: the facts in extensions.rateLimit, the refusals among the errors, and the
// Retry-After header. It imports the standard library only, so it costs a client nothing else.
//
// A client that has the body of a response uses [FromResponse]. A client library that has taken the
// body apart hands on what it has: [FromExtensions] and [FromErrors] accept raw JSON, decoded maps,
// and the error lists of the usual libraries.
//
// A refusal is an error, [*Refusal], that knows whether waiting helps:
//
//	if refusal.Temporary() {
//		// Wait for refusal.RetryAfter, then send the same request again.
//	}
//
// A mutation should carry an Idempotency-Key and be repeated under the same key: then it is charged
// and run once, however often it is sent.
//
// The types are also the wire format: the server fills them and marshals them. Fields may be added;
// decoding ignores what it does not know.
package ratelimitclient
