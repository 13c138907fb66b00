// Package ratelimittest is for the tests of servers that use package ratelimit: a [Store] that
// records what was taken and can be made to fail, and a [Clock] that stands still until it is moved.
package ratelimittest
