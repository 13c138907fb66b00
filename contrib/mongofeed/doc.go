// Package mongofeed brings policies to instances through a MongoDB: revisions that publishers write ([New]), or a document with the limits
// of a service, as it stands ([NewLimits]).
//
// Both are polled at the interval of the follower, by content and never by a time that stands in a document. Where the server has
// change streams, on replica sets and sharded clusters, one of them is a hint; a server without them is polled.
//
// The tests run against FerretDB 1.24, which speaks the protocol and keeps its data in SQLite. The package has not run with
// the server of MongoDB itself: change streams, and reads and writes by majority, are as its manual describes them.
package mongofeed
