package previewreport_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/previewreport"
)

func TestACauseNamesItsLimitAndWhoseItIsUnlessThatIsTheTenant(t *testing.T) {
	t.Parallel()
	for want, cause := range map[string]previewreport.Cause{
		"maxCost 7":                {Limit: "maxCost", N: 7},
		"minute 1":                 {Level: "tenant", Limit: "minute", N: 1},
		"team/minute 2":            {Level: "team", Limit: "minute", N: 2},
		"Mutation.login/minute 30": {Level: "operation", Owner: "Mutation.login", Limit: "minute", N: 30},
	} {
		require.Equal(t, want, cause.String())
	}
}

func TestWhatTheCommandReadsIsWhatTheControlPlaneSays(t *testing.T) {
	t.Parallel()
	said := previewreport.Report{
		Share: 0.5, Total: previewreport.Row{Operations: 9, NewlyRefused: 1}, Tenants: previewreport.Group{Seen: 9, NewlyRefused: 1, Share: 0.1, High: 0.4},
		Rows: []previewreport.Row{{Tenant: "acme", Tier: "free", Operations: 3, NewlyRefused: 1, By: []previewreport.Cause{{Level: "tenant", Limit: "minute", N: 1}}}},
	}
	text, err := json.Marshal(&said)
	require.NoError(t, err)
	require.NotContains(t, string(text), "0001-01-01", "nothing was recorded at no time")
	var read previewreport.Report
	require.NoError(t, json.Unmarshal(text, &read))
	require.Equal(t, said, read)
	require.True(t, read.Halts())
}
