// Package inbound reads from a request what both the front door and the limiter have to know, so that they agree: whose
// address it comes from, which networks are one client, and whether it becomes a WebSocket.
package inbound

// Limiter is the name of the limiter as an extension of gqlgen, and of what it keeps with the statistics of an operation that it
// has seen.
const Limiter = "RateLimit"

// Passage is where the statistics of an operation keep how a front door let its document through.
const Passage = "FrontDoor.document"
