package simulate

import (
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// carried are the values that a record has for custom limits.
type carried struct {
	policy *tiers.Snapshot
	value  func(parameter, value string) string
	// plain are the values in keys of the policy and of the records that were seen, by what stands for them.
	plain map[standIn]string
	seen  map[*tiers.Record]bool
	// values are those of the record at hand.
	values map[string]string
}

type standIn struct{ parameter, value string }

var _ tiers.Parameters = (*carried)(nil)

func newCarried(policy *tiers.Snapshot, cfg *ReplayConfig) carried {
	c := carried{policy: policy, value: cfg.Value}
	if c.value != nil {
		c.plain, c.seen = make(map[standIn]string), make(map[*tiers.Record]bool)
		c.learn(nil)
	}
	return c
}

// learn notes what stands for the values in the keys of a record, or of the policy for nil.
func (c *carried) learn(record *tiers.Record) {
	for p, value := range c.policy.KeyValues(record) {
		name := p.String()
		c.plain[standIn{name, c.value(name, value)}] = value
	}
}

// claimed is how parameters begin that are claims.
const claimed = "claim:"

// of takes the values of a record, and returns its claims.
func (c *carried) of(values map[string]string, record *tiers.Record) *tiers.Claims {
	if c.value != nil && record != nil && !c.seen[record] {
		c.seen[record] = true
		c.learn(record)
	}
	c.values = values
	var claims tiers.Claims
	for name := range values {
		claim, ok := strings.CutPrefix(name, claimed)
		if !ok {
			continue
		}
		if value, known := c.look(name); known {
			if claims == nil {
				claims = make(tiers.Claims)
			}
			claims[claim] = value
		}
	}
	return &claims
}

func (c *carried) look(parameter string) (string, bool) {
	value, ok := c.values[parameter]
	if ok && c.value != nil {
		// What stands in no key is looked for in vain, as a server does.
		value, ok = c.plain[standIn{parameter, value}]
	}
	return value, ok
}

// Parameter implements tiers.Parameters.
func (c *carried) Parameter(p tiers.Parameter) (string, bool) { return c.look(p.String()) }

// calls returns the calls of a record in the room.
func (r *Record) calls(room tiers.Counted) tiers.Counted {
	room = room[:0]
	for i, part := range r.Parts {
		for range part.Calls {
			room = append(room, r.Operations[i])
		}
	}
	return room
}
