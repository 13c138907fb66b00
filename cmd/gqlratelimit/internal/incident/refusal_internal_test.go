package incident

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/observe/report"
)

func TestARefusalByABlockSaysWhereTheBlockIsFound(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	writeRefusal(cli.Console{Stdout: &out}, &report.Refusal{Decided: event.Decided{
		Code: "TENANT_BLOCKED", Outcome: "blocked", Tenant: "acme", Kind: "query", RootFields: []string{"Query.viewer"},
	}})
	require.Contains(t, out.String(), "gqlratelimit policy explain")
	require.Contains(t, out.String(), "query Query.viewer", "an operation without a name leaves no gap")
}
