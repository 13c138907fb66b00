package cli_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
)

func TestANameThatIsNearlyKnownIsFoundAndNoOther(t *testing.T) {
	t.Parallel()
	known := []string{"minute", "hour", "acme", "Mutation.createOrder"}
	for name, want := range map[string]string{
		"minutes": "minute", "mintue": "minute", "MINUTE": "minute", "huor": "hour", "acne": "acme", "Mutation.createOrders": "Mutation.createOrder",
		"day": "", "globex": "", "": "", strings.Repeat("x", 1<<20): "",
	} {
		near, ok := cli.Nearest(name, known)
		require.Equal(t, want != "", ok, "%.20q", name)
		require.Equal(t, want, near)
	}
	require.ErrorContains(t, cli.Unknown("tier", "por", []string{"pro", "free"}), `did you mean "pro"?`)
	require.ErrorContains(t, cli.Unknown("tier", "zzzzzz", []string{"pro", "free"}), "there is free, pro")
	require.ErrorContains(t, cli.Unknown("tier", "x", nil), "nor any other")
	many := strings.Split(strings.Repeat("longname,", 100), ",")
	require.Less(t, len(cli.Unknown("tier", strings.Repeat("y", 1<<20), many).Error()), 1000)
}

func TestATableIsStraightAndGivesTheTerminalNoOrders(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	cli.WriteTable(&out, [][]string{{"A", "B"}, {"ü\x1b[2J", "b\nc"}, {"\xff", ""}})
	require.Equal(t, "A      B\nü?[2J  b?c\n?\n", out.String())
}
