package graph_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// grown is document with more of a limit: it takes no second person.
var grown = strings.Replace(document, "capacity: 1000", "capacity: 2000", 1)

// earlier is what has happened before a change of a roll-out.
var earlier = map[string][]string{
	"haltRollout": {"startRollout"}, "resumeRollout": {"startRollout", "haltRollout"}, "abortRollout": {"startRollout"},
}

// sceneFor is a scene in which a change can be made.
func sceneFor(t *testing.T, field string) *scene {
	t.Helper()
	s := newScene(t)
	for _, before := range earlier[field] {
		require.Empty(t, s.call("everything", before, nil).Errors)
	}
	return s
}

func TestARollOutIsToldWithItsPlanAndWhyItHalted(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	const read = `{ rollout { id phase why by reason hash plan { percent warn seconds } step revision since until measured { tenants } accepted { users } remark } }`
	require.Nil(t, s.ask("viewer", read, nil).Data["rollout"])
	own := map[string]any{"plan": nil, "steps": []map[string]any{{"seconds": 3600}, {"percent": 25, "seconds": 1800}}}
	a := s.call("publisher", "startRollout", own)
	require.Empty(t, a.Errors, a.Body)
	require.Equal(t, map[string]any{"phase": "RUNNING", "step": 1.0, "revision": 3.0}, a.Data["answer"])
	a = s.call("operator", "haltRollout", map[string]any{"reason": "support is flooded"})
	require.Empty(t, a.Errors, a.Body)
	a = s.ask("viewer", read, nil)
	require.Empty(t, a.Errors, a.Body)
	told := a.Data["rollout"].(map[string]any)
	require.Equal(t, []any{
		map[string]any{"percent": 0.0, "warn": false, "seconds": 3600.0}, map[string]any{"percent": 25.0, "warn": false, "seconds": 1800.0},
	}, told["plan"])
	require.Equal(t, []any{"HALTED", "rollout-3", nil, nil}, []any{told["phase"], told["id"], told["until"], told["measured"]})
	require.Contains(t, told["why"], "support is flooded")
	a = s.ask("viewer", `{ tenant(id: "acme") { effective { policy rollout next } } }`, nil)
	require.Equal(t, map[string]any{"policy": 3.0, "rollout": "rollout-3", "next": false}, a.Data["tenant"].(map[string]any)["effective"], a.Body)
}

func TestARollOutHasOnePlan(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for _, also := range []map[string]any{
		{"plan": nil},
		{"steps": []map[string]any{{"seconds": 3600}}},
		{"plan": nil, "steps": []map[string]any{{"seconds": 1}}},
		{"plan": nil, "steps": []map[string]any{{"seconds": -1}}},
		{"plan": nil, "steps": []map[string]any{{"seconds": 9007199254740991}}},
		{"plan": nil, "steps": []map[string]any{{"percent": 101, "seconds": 3600}}},
		{"plan": "SHADOW_THEN_WARN"},
	} {
		a := s.call("publisher", "startRollout", also)
		require.Equal(t, "INVALID", a.code(), a.Body)
		require.Equal(t, "plan", a.Errors[0].Extensions["field"], a.Body)
	}
}
