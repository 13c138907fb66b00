package dispatch

import (
	"encoding/json"
	"slices"

	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/webhook"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/webhook/delivery"
)

// TestType is the type of the event that a tenant sends itself. It is in no stream.
const TestType = "ratelimit.webhook.test.v1"

// Types of events that tenants are given.
const (
	typeRefused     = "ratelimit.decision.refused.v1"
	typeWouldRefuse = "ratelimit.decision.would_refuse.v1"
	typeWarned      = "ratelimit.limit.would_refuse.v1"
	typeRepeatedly  = "ratelimit.tenant.refused_repeatedly.v1"
	typeThreshold   = "ratelimit.threshold.crossed.v1"
	typeReached     = "ratelimit.limit.reached.v1"
)

// Types returns the types of the events that tenants are given, about themselves. What is about candidates, the front door, policies and mode switches is not theirs.
func Types() []string {
	return []string{typeRefused, typeWouldRefuse, typeWarned, typeRepeatedly, typeThreshold, typeReached}
}

// What of the data of events tenants are given: names, and when it is worth trying again. Of limits they are told neither capacities nor what is left, because these may be of
// budgets that all tenants share, or hidden from clients; who may read them asks for the usage. Of where rules come from, of overrides and of stores they are told nothing.
var (
	given = []string{
		"at", "refusalId", "outcome", "code", "charge", "tenant", "team", "user", "tier", "kind", "operation", "rootFields", "keyed", "cost", "rule",
		"retryAfter", "clearsAt", "limits",
		"level", "owner", "limit", "unit", "mode", "threshold", "enforceFrom", "refusals", "within",
	}
	givenOfLimits = []string{"level", "owner", "limit", "unit", "mode", "refuses", "never", "retryAfter"}
)

// message is an event as its tenant is given it. It is false for one that it is not: what is on trial (mode shadow) is seen by operators alone, and what is
// larger than any webhook is nobody's.
func message(e *stream.Envelope) (m webhook.Message, ok bool) {
	var data map[string]json.RawMessage
	if json.Unmarshal(e.Data, &data) != nil || hidden(data["mode"]) {
		return m, false
	}
	var hides struct {
		Cost   bool `json:"cost"`
		Owners bool `json:"owners"`
	}
	if raw, ok := data["hides"]; ok && json.Unmarshal(raw, &hides) != nil {
		return m, false
	}
	keep(data, given)
	if hides.Cost {
		delete(data, "cost")
	}
	if hides.Owners {
		delete(data, "owner")
		delete(data, "rule")
	}
	if raw, ok := data["limits"]; ok {
		limits, err := limitsOf(raw, hides.Owners)
		if err != nil {
			return m, false
		}
		data["limits"] = limits
	}
	out := *e
	var err error
	if out.Data, err = json.Marshal(data); err != nil {
		return m, false
	}
	m.ID = delivery.MessageID(e)
	m.Body, err = json.Marshal(out)
	return m, err == nil && len(m.Body) <= webhook.MaxBody
}

// limitsOf are the limits of a decision that have refused, or would have.
func limitsOf(raw json.RawMessage, hideOwners bool) (json.RawMessage, error) {
	var limits []map[string]json.RawMessage
	if err := json.Unmarshal(raw, &limits); err != nil {
		return nil, err
	}
	limits = slices.DeleteFunc(limits, func(l map[string]json.RawMessage) bool {
		return hidden(l["mode"]) || string(l["refuses"]) != "true" && string(l["exceeded"]) != "true"
	})
	for _, l := range limits {
		keep(l, givenOfLimits)
		if hideOwners {
			delete(l, "owner")
		}
	}
	return json.Marshal(limits)
}

// hidden says whether a mode is one that clients do not see.
func hidden(mode json.RawMessage) bool {
	return string(mode) == `"shadow"` || string(mode) == `"off"`
}

// keep removes all keys but some.
func keep(data map[string]json.RawMessage, keys []string) {
	for key := range data {
		if !slices.Contains(keys, key) {
			delete(data, key)
		}
	}
}
