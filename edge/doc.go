// Package edge is the front door of a GraphQL server: it bounds what a request takes before anybody knows what it costs.
// Limits of a tenant are asked for when a document was read, parsed and validated; a request that is refused then has
// taken as much time and memory as one that is admitted. The door asks earlier, in this process, without a store.
//
//	door, err := edge.New(edge.Config{})
//	…
//	srv.Use(door)
//	srv.Use(limiter)
//	http.Handle("/query", door.Handler(ratelimit.Handler(srv)))
//
// Each request, whatever becomes of it, takes one request and its bytes from the limits of the address it comes from, of
// the site that the address is in, and of the API key that it shows. So does each operation on a WebSocket. Bodies, query
// strings and headers have a largest size, and bodies a time in which they have to arrive. What one address has under way
// at once is bounded, and so are its WebSockets and what runs on each.
//
// A refusal is a GraphQL response whose error has a code of package ratelimitclient, and the name of the layer
// that refused in extensions.layer: see the Layer constants. It is answered at once and leaves the connection open, which may
// be that of a proxy for all its clients; only a body that is too large or too slow closes it.
package edge
