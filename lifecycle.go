package ratelimit

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/vektah/gqlparser/v2/ast"
)

// lifecycle follows an extension through srv.Use and Shutdown, in whatever order they come.
type lifecycle struct {
	// starting is held by Validate, so that one srv.Use is done before another looks.
	starting sync.Mutex

	mu sync.Mutex
	// used is closed by srv.Use, ended by Shutdown.
	used, ended chan struct{}
	// schema is that of the server, nil before srv.Use.
	schema *ast.Schema
}

func newLifecycle() lifecycle {
	return lifecycle{used: make(chan struct{}), ended: make(chan struct{})}
}

// errUsedTwice is for a second server, whose prices would be those of the first.
var errUsedTwice = errors.New("ratelimit: the extension is in use by a server of another schema: make one for each")

// serves reports whether the extension is in use for the schema already. The error says that it is for another one.
func (l *lifecycle) serves(schema *ast.Schema) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.schema != nil && l.schema != schema {
		return false, errUsedTwice
	}
	return l.schema != nil, nil
}

// begin says that everything is in its place, and reports whether Shutdown came before.
func (l *lifecycle) begin(schema *ast.Schema) (ended bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.schema = schema
	close(l.used)
	return isClosed(l.ended)
}

// end says that nothing more is to begin, and reports whether anything has.
func (l *lifecycle) end() (used bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !isClosed(l.ended) {
		close(l.ended)
	}
	return isClosed(l.used)
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Run does in the background what requests do otherwise: it sends heartbeats, by which instances know how many they
// are, leases parts of limits where the policy says so, and settles what was admitted while a store was away. It is for limits that fail local, and
// for tiers that lease. Without it nothing is leased, and an instance
// that has no requests is not counted, and what a tenant was admitted here is settled with its next request here.
//
// Call it once, in a goroutine of its own. It waits for srv.Use. It returns when the context ends, and when
// [Extension.Shutdown] is called.
func (e *Extension) Run(ctx context.Context) {
	select {
	case <-e.life.used:
		e.stores.Run(ctx)
	case <-e.life.ended:
	case <-ctx.Done():
	}
}

// Shutdown ends what the extension does beside requests. It ends [Extension.Run]. It waits for the operations that still
// run under an idempotency key: their claims end with them. It settles the charges that still wait for a store, and what
// was admitted while a store was away. Nothing of that waits for the rest, nor one store for another. What is leased is given back, and usage of it told, when all that
// is done, or when a quarter is left of the time until the deadline of ctx.
//
// When ctx ends before that is done, Shutdown drops the rest: claims are left to their leases, charges stay at their
// estimates, and what was admitted without a store stays uncharged. The error says what was dropped, and matches that
// of ctx.
//
// Call it after http.Server.Shutdown and before the connections of the stores are closed. Operations that run later are
// judged as before, and keep their estimates. It may be called at any time, again, and by several goroutines; on an
// extension that srv.Use has not seen it returns at once.
func (e *Extension) Shutdown(ctx context.Context) error {
	if !e.life.end() {
		return nil
	}
	var drain sync.WaitGroup
	drain.Go(func() {
		// What is left after it is settled below.
		_ = e.stores.Drain(ctx)
	})
	// What is settled while parts are leased comes back to them, so that these are given back last, but not when there is no time left.
	done := make(chan struct{})
	var giving sync.WaitGroup
	giving.Go(func() {
		if reaches(ctx, done) {
			// What is left after it is given back below.
			_ = e.stores.GiveBack(ctx)
		}
	})
	// What still runs under a key settles its charge with its claim.
	err := e.claims.Wait(ctx)
	drain.Wait()
	err = errors.Join(err, e.stores.Shutdown(ctx))
	close(done)
	giving.Wait()
	return err
}

// reaches waits until a quarter is left of the time that the context has, and returns whether that came before the other thing was done. A context without a deadline has
// no such time.
func reaches(ctx context.Context, done <-chan struct{}) bool {
	deadline, ok := ctx.Deadline()
	if !ok {
		return false
	}
	left := time.NewTimer(time.Until(deadline) / 4 * 3)
	defer left.Stop()
	select {
	case <-left.C:
		return true
	case <-done:
		return false
	}
}

// AwaitSettled returns when no settlement waits for a store any more, or with the error of ctx when that ends
// before. Tests of a server that gives points back call it before they look at a budget. It ends nothing, and
// returns at once on an extension that srv.Use has not seen.
func (e *Extension) AwaitSettled(ctx context.Context) error {
	if !isClosed(e.life.used) {
		return nil
	}
	return e.stores.AwaitSettled(ctx)
}
