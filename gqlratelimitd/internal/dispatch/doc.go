// Package dispatch brings events of the instances to the endpoints that tenants have registered. It reads the Redis Streams of the instances (event/redisstream), puts what
// an endpoint wants into the database together with how far it has read, and makes attempts from there (package delivery).
//
// Every daemon of a database does both: of several who have read the same event one puts it, and of several who would bring the same message one has its lease.
package dispatch
