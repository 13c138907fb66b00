package ratelimit

import (
	"crypto/sha256"
	"sync"

	"github.com/99designs/gqlgen/graphql"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// misshapenSlots is how many operations are remembered that break a rule of shape whatever their variables are.
const misshapenSlots = 4096

// misshapen remembers the latest of them by hashes. Whether they are refused is up to the policy of whoever sends them. It is
// safe for concurrent use.
type misshapen struct {
	mu    sync.Mutex
	why   map[misshape]error
	order [misshapenSlots]misshape
	next  int
}

// misshape names an operation as a client asks for it: by the text of its document and the name that it gives.
type misshape struct{ text, name [sha256.Size]byte }

func misshapeOf(text, name string) misshape {
	return misshape{sha256.Sum256([]byte(text)), sha256.Sum256([]byte(name))}
}

// note remembers an operation that has no price, or that breaks a rule of shape, whatever its variables are.
func (m *misshapen) note(opCtx *graphql.OperationContext, plan *cost.Plan, why error) {
	if why == nil || plan != nil && plan.BreaksShape() == nil {
		return
	}
	key := misshapeOf(opCtx.RawQuery, opCtx.OperationName)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.why == nil {
		m.why = make(map[misshape]error)
	}
	if _, known := m.why[key]; known {
		return
	}
	delete(m.why, m.order[m.next])
	m.order[m.next] = key
	m.next = (m.next + 1) % misshapenSlots
	m.why[key] = why
}

// find returns why an operation cannot pass where shape is enforced, nil if it may.
func (m *misshapen) find(params *graphql.RawParams) error {
	m.mu.Lock()
	none := len(m.why) == 0
	m.mu.Unlock()
	if none || params.Query == "" {
		return nil
	}
	key := misshapeOf(params.Query, params.OperationName)
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.why[key]
}
