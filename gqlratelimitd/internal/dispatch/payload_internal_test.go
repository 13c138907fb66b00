package dispatch

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
)

func envelope(t *testing.T, kind string, e event.Event) *stream.Envelope {
	t.Helper()
	data, err := json.Marshal(e)
	require.NoError(t, err)
	return &stream.Envelope{ID: "R1", Source: "ratelimit:main/web-1", Type: kind, Subject: "acme", Time: time.Unix(1_790_000_000, 0), Sequence: 7, Data: data}
}

// dataOf is the data that a tenant is given.
func dataOf(t *testing.T, e *stream.Envelope) (data map[string]any) {
	t.Helper()
	m, ok := message(e)
	require.True(t, ok)
	var out stream.Envelope
	require.NoError(t, json.Unmarshal(m.Body, &out))
	require.Equal(t, []any{e.ID, e.Source, e.Type, e.Subject, e.Sequence}, []any{out.ID, out.Source, out.Type, out.Subject, out.Sequence})
	require.NoError(t, json.Unmarshal(out.Data, &data))
	return data
}

func decided() event.Decided {
	return event.Decided{
		At: time.Unix(1_790_000_000, 0), RefusalID: "R1", Outcome: "limited", Code: "RATE_LIMITED", Tenant: "acme", User: "zoe", Mode: "enforce",
		Cost: 600, Charged: 600, RetryAfter: time.Minute, Store: "eu", StoreDuration: time.Second, Revision: 9, MaxCost: 5,
		Origin: event.Origin{Rule: []string{"tiers.free"}, Overrides: []event.Override{{Reason: "they owe us money", Actor: "bob"}}},
		Limits: []event.LimitState{
			{Level: "tenant", Limit: "minute", Unit: "points", Capacity: 1000, Remaining: 3, Refuses: true, Origin: &event.Origin{Line: 7}},
			{Level: "tenant", Limit: "month", Unit: "points", Capacity: 9999, Remaining: 77},
			{Level: "tenant", Limit: "trial", Unit: "points", Mode: "shadow", Exceeded: true},
			{Level: "operation", Owner: "Mutation.pay", Limit: "all", Unit: "requests", Exceeded: true, Overdraft: 5},
		},
	}
}

func TestATenantIsToldWhatRefusedItAndNothingOfTheHouse(t *testing.T) {
	t.Parallel()
	data := dataOf(t, envelope(t, typeRefused, decided()))
	require.Equal(t, map[string]any{
		"at": data["at"], "refusalId": "R1", "outcome": "limited", "code": "RATE_LIMITED", "tenant": "acme", "user": "zoe", "mode": "enforce", "cost": 600.0,
		"retryAfter": 6e10, "limits": []any{
			map[string]any{"level": "tenant", "limit": "minute", "unit": "points", "refuses": true},
			map[string]any{"level": "operation", "owner": "Mutation.pay", "limit": "all", "unit": "requests"},
		},
	}, data)
	hiding := decided()
	hiding.Hides = event.Hides{Cost: true, Owners: true}
	data = dataOf(t, envelope(t, typeRefused, hiding))
	require.NotContains(t, data, "cost")
	require.NotContains(t, data["limits"].([]any)[1], "owner")
	data = dataOf(t, envelope(t, typeThreshold, event.ThresholdCrossed{
		Budget: event.Budget{Tenant: "acme", Level: "tenant", Limit: "minute", Unit: "points", Capacity: 1000, Mode: "enforce"}, Threshold: 0.8, Share: 0.83, Remaining: 170,
	}))
	require.Equal(t, map[string]any{"at": data["at"], "tenant": "acme", "level": "tenant", "limit": "minute", "unit": "points", "mode": "enforce", "threshold": 0.8}, data)
}

func TestWhatIsOnTrialMalformedOrTooLargeIsGivenToNobody(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]*stream.Envelope{
		"a decision on trial":  envelope(t, typeWouldRefuse, event.Decided{Code: "RATE_LIMITED", Mode: "shadow"}),
		"a threshold on trial": envelope(t, typeThreshold, event.ThresholdCrossed{Budget: event.Budget{Mode: "shadow"}}),
		"no object":            {Type: typeRefused, Data: json.RawMessage(`[]`)},
		"limits that are none": {Type: typeRefused, Data: json.RawMessage(`{"limits": 1}`)},
		"hides that are none":  {Type: typeRefused, Data: json.RawMessage(`{"hides": 1}`)},
		"too large":            envelope(t, typeRefused, event.Decided{RefusalID: "R1", Outcome: strings.Repeat("x", 20_000)}),
	} {
		_, ok := message(e)
		require.False(t, ok, name)
	}
	_, ok := message(envelope(t, typeWarned, event.WouldRefuse{Budget: event.Budget{Mode: "warn"}}))
	require.True(t, ok, "a warning is for its tenant")
}
