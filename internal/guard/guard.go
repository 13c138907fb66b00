// Package guard calls what users of the library wrote. A panic there must not leave gqlgen's hooks, where it would end
// a whole WebSocket, nor a goroutine of ours, where it would end the process.
package guard

import (
	"context"
	"fmt"
	"log/slog"
)

// Call calls f and returns its error. A panic in it becomes an error that names what was called, such as
// Config.Subject.
func Call(what string, f func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("ratelimit: %s panicked: %v", what, cause)
		}
	}()
	return f()
}

// Run calls f and returns true. A panic in it is logged with the name of what was called, and returns false.
func Run(ctx context.Context, log *slog.Logger, what string, f func()) (ok bool) {
	defer func() {
		if cause := recover(); cause != nil {
			log.ErrorContext(ctx, "ratelimit: "+what+" panicked", slog.String("cause", fmt.Sprint(cause)))
		}
	}()
	f()
	return true
}
