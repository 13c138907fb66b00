package redisdigest

import "context"

// Once writes now.
func (w *Writer) Once(ctx context.Context) { w.once(ctx) }
