package cli_test

import (
	"bytes"
	"math"
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

func TestWhatIsNotPrintableIsReplaced(t *testing.T) {
	t.Parallel()
	require.Equal(t, "Größe 10 × ∞ 名前", cli.Plain("Größe 10 × ∞ 名前"))
	for name, text := range map[string]string{
		"an escape":                        "a\x1b[31m",
		"a new line":                       "a\n[31m",
		"a turn of the direction":          "a\u202e[31m",
		"an isolated turn":                 "a\u2066[31m",
		"a character of no width":          "a\u200b[31m",
		"a separator of lines":             "a\u2028[31m",
		"what is for private use":          "a\ue000[31m",
		"a byte that begins no character":  "a\xff[31m",
		"a control character in two bytes": "a\u009b[31m",
	} {
		require.Equal(t, "a?[31m", cli.Plain(text), name)
	}
}

func TestASmallShareIsNotNothing(t *testing.T) {
	t.Parallel()
	for share, want := range map[float64]string{
		0: "0%", 0.1: "10%", -0.3684: "-36.8%", 22.0 / 72489: "0.03%", 0.0005: "0.1%", 0.00049: "0.05%", -0.0001: "-0.01%", 1e-9: "0.0000001%",
		math.Inf(1): "∞",
	} {
		require.Equal(t, want, cli.Percent(share))
	}
}
