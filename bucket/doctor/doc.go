// Package doctor examines a client of Redis and the servers behind it, and says what would make the limiter
// slow, wrong or forgetful there, why, and what to do.
//
// It works with few rights and where INFO and CONFIG are forbidden: what it could not look at is a [Finding]
// too. It ends within [Config.Patience], also if servers are frozen. It changes nothing but keys of its own,
// which expire within seconds, and reads neither keys of the limiter nor secrets.
package doctor
