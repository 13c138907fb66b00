package ratelimit

import "context"

// AwaitSettled returns when no settlement waits for a store any more.
func (e *Extension) AwaitSettled(ctx context.Context) error {
	for _, b := range e.backends {
		if err := b.settler.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}
