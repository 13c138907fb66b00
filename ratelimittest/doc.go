// Package ratelimittest helps to test a server that is rate limited: a [Clock] that the test sets
// instead of waiting, and a [Store] that remembers what it was asked and fails on demand.
package ratelimittest
