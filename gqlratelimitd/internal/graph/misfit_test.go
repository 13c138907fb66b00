package graph_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhoPublishesAndWhoApprovesReadsWhoseRecordsStopFitting(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	without := strings.Replace(document, "  pro:\n    limits: {minute: {capacity: 5000, per: minute}}\n", "", 1)
	require.NotEqual(t, document, without)
	a := s.ask("publisher", `mutation($d: String!) { proposePolicy(input: {document: $d, expectedRevision: 2, reason: "less"}) { id reach misfits misfitting { tenant problem } } }`, map[string]any{"d": without})
	require.Empty(t, a.Errors, a.Body)
	proposed := a.Data["proposePolicy"].(map[string]any)
	require.NotEmpty(t, proposed["reach"])
	require.Equal(t, 1.0, proposed["misfits"])
	require.Equal(t, "acme", proposed["misfitting"].([]any)[0].(map[string]any)["tenant"])
	a = s.ask("viewer", `{ misfits { total nodes { tenant } } proposal(id: 2) { misfits } policies { nodes { misfits } } }`, nil)
	require.Empty(t, a.Errors, a.Body)
	require.Equal(t, map[string]any{"total": 0.0, "nodes": []any{}}, a.Data["misfits"], "they fit the policy of now")
	require.Equal(t, map[string]any{"misfits": 1.0}, a.Data["proposal"])
}
