// Package redisclient makes clients of go-redis that suit a limiter: their calls end when their deadline does, nothing is
// sent twice, and a breaker stands before each node. It also says what is dangerous in a client of one's own.
package redisclient
