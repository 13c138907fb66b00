package edge

import (
	"sync"
	"sync/atomic"
)

// socket is what the door knows of a WebSocket.
type socket struct {
	// name is that of its budget.
	name string
	// unpaid is how many bytes were read that were not taken from a limit.
	unpaid atomic.Int64
	// unanswered is how many bytes were read before the server answered, and answered says that it has.
	unanswered atomic.Int64
	answered   atomic.Bool

	mu      sync.Mutex
	running int
}
