package control

import "context"

// turn is taken by one at a time. Reading a document of a megabyte takes a hundred of memory and a quarter of a second: dozens at once
// would end the daemon.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// take waits for the turn, and gives it back with the function, or returns the error of the context.
func (t turn) take(ctx context.Context) (leave func(), _ error) {
	select {
	case t <- struct{}{}:
		return func() { <-t }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
