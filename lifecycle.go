package ratelimit

import (
	"errors"
	"sync"

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
