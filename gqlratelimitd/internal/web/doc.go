// Package web is the control plane for machines: plain HTTP, described by an OpenAPI document that a test holds to the router.
//
// Who asks shows a bearer token, see package access. What changes something says what it expects to replace, with
// If-Match, and why, with Ratelimit-Reason; it may carry an Idempotency-Key. A refusal is a problem of RFC 9457 that says what to do.
//
// Everything a client sends is bounded: bodies, headers, requests by address and by actor, what is under way at once, and for how long
// one waits for a change. The package knows no rights and changes nothing by itself: that is the work of package control.
package web
