package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// brief is one short round, which shows that everything still runs.
var brief = effort{
	rounds: 1, turn: time.Millisecond, call: 20 * time.Millisecond, long: 2 * time.Millisecond, windows: 1, requests: 20,
	benchtime: "1x",
}

// TestMain plays the parts of processes that tests start.
func TestMain(m *testing.M) {
	if played, err := play(); played {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func TestEverySectionPrintsItsTables(t *testing.T) {
	t.Parallel()
	for _, s := range sections {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			found, err := s.run(t.Context(), brief)
			require.NoError(t, err)
			text := found.String() + aimsTable(found.aims).String()
			require.Contains(t, text, "### ")
			require.Contains(t, text, "\n| ")
			for _, broken := range []string{"NaN", "Inf", "%!"} {
				require.NotContains(t, text, broken)
			}
		})
	}
}

func TestOnlyMatchingSectionsRun(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	require.NoError(t, run(t.Context(), &out, []string{"-match", "none of them"}))
	require.NotContains(t, out.String(), "###")
	require.Contains(t, out.String(), "99designs/gqlgen v")
	require.Error(t, run(t.Context(), &out, []string{"-match", "("}))
}

func TestEachRoundStartsWithAnotherContender(t *testing.T) {
	t.Parallel()
	var order strings.Builder
	turns := func(name string) contender {
		return contender{name, func(context.Context) (sample, error) {
			order.WriteString(name)
			return sample{}, nil
		}}
	}
	outcomes, err := contest(t.Context(), effort{rounds: 3}, []contender{turns("a"), turns("b"), turns("c")})
	require.NoError(t, err)
	require.Equal(t, "abcbcacab", order.String())
	require.Len(t, outcomes[0].samples, 3)
}

func TestAContenderThatFailsEndsTheContest(t *testing.T) {
	t.Parallel()
	_, err := contest(t.Context(), brief, []contender{alone(brief, "broken", func() error { return errRefused })})
	require.ErrorIs(t, err, errRefused)
	require.ErrorContains(t, err, "broken")
}

// A machine that is twice as slow in one round changes no ratio.
func TestRatiosAreFormedWithinARound(t *testing.T) {
	t.Parallel()
	of := func(values ...float64) *outcome {
		o := &outcome{}
		for _, value := range values {
			o.samples = append(o.samples, sample{elapsed: value})
		}
		return o
	}
	base, other := of(10, 20, 40), of(15, 30, 60)
	require.InDelta(t, 1.5, other.ratio(base, elapsed), 1e-9)
	require.InDelta(t, 10, other.difference(base, elapsed), 1e-9)
	require.InDelta(t, 30, other.median(elapsed), 1e-9)
	require.InDelta(t, 25, of(20, 30).median(elapsed), 1e-9)
	require.Zero(t, of().median(elapsed))
}

func TestCommandStatisticsAreRead(t *testing.T) {
	t.Parallel()
	calls, micros, err := commandStatistics("calls=2,usec=31,usec_per_call=15.50,rejected_calls=0,failed_calls=0")
	require.NoError(t, err)
	require.Equal(t, []int64{2, 31}, []int64{calls, micros})
	_, _, err = commandStatistics("calls=x")
	require.Error(t, err)
}

func TestNumbersKeepThreeDigits(t *testing.T) {
	t.Parallel()
	require.Equal(t, "86.0 ns", duration(86))
	require.Equal(t, "1.42 µs", duration(1424))
	require.Equal(t, "52.8 ms", duration(52.8e6))
	require.Equal(t, "12.0", micros(12_000))
	require.Equal(t, "-1.50", digits(-1.5))
	require.Equal(t, "0.0007", digits(0.00071))
	require.Equal(t, "0.00", digits(0))
	require.Equal(t, "50347", digits(50347))
}

func TestATableIsMarkdown(t *testing.T) {
	t.Parallel()
	table := &table{title: "T", note: "N.", header: []string{"", "x"}}
	table.add("row", "1")
	require.Equal(t, "### T\n\nN.\n\n|  | x |\n|---|---:|\n| row | 1 |\n", table.String())
}
