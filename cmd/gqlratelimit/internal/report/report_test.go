package report_test

import (
	"bytes"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/doctor"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/lint"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/report"
)

// device is a character device, which is taken for a terminal.
func device(t *testing.T) *os.File {
	t.Helper()
	file, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = file.Close() })
	return file
}

func TestColoursAreForTerminalsOnly(t *testing.T) {
	t.Parallel()
	env := func(values map[string]string) func(string) string {
		return func(name string) string { return values[name] }
	}
	require.True(t, report.StyleFor(device(t), env(nil)).Colour)
	require.False(t, report.StyleFor(device(t), env(map[string]string{"NO_COLOR": "1"})).Colour)
	require.False(t, report.StyleFor(device(t), env(map[string]string{"TERM": "dumb"})).Colour)
	require.False(t, report.StyleFor(&bytes.Buffer{}, env(nil)).Colour)
	file, err := os.CreateTemp(t.TempDir(), "report")
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	require.False(t, report.StyleFor(file, env(nil)).Colour)
}

func TestColoursChangeNothingButTheLook(t *testing.T) {
	t.Parallel()
	findings := report.Findings{FailOn: doctor.Warning, List: []lint.Finding{
		{Severity: doctor.Error, Rule: lint.Invalid, Coordinate: "Query.a", Message: "wrong", File: "a.graphqls", Line: 1, Column: 2},
		{Severity: doctor.Note, Rule: lint.Overridden, Coordinate: "Query.b", Message: "twice"},
	}}
	var plain, coloured bytes.Buffer
	require.NoError(t, findings.Write(&plain, report.Style{}))
	require.NoError(t, findings.Write(&coloured, report.Style{Colour: true}))
	require.NotEqual(t, plain.String(), coloured.String())
	for _, code := range []string{"0", "1", "2", "31", "33"} {
		coloured = *bytes.NewBufferString(strings.ReplaceAll(coloured.String(), "\x1b["+code+"m", ""))
	}
	require.Equal(t, plain.String(), coloured.String())
}

func TestProgressIsSilentForASecondAndSpeaksFiveTimesASecond(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	now := time.Unix(0, 0)
	progress := report.Progress{Out: &out, Now: func() time.Time { return now }}
	for i := range 100 { // the last one begins after 990 ms
		progress.Step(i, 1000, "Search")
		now = now.Add(10 * time.Millisecond)
	}
	require.Empty(t, out.String())
	for i := range 100 { // 1 to 1.99 seconds
		progress.Step(100+i, 1000, "Search")
		now = now.Add(10 * time.Millisecond)
	}
	require.Equal(t, 5, strings.Count(out.String(), "of 1000: Search"))
	require.Contains(t, out.String(), "101 of 1000: Search")
	progress.Done()
	require.True(t, strings.HasSuffix(out.String(), "\r\x1b[K"), "the line is removed")
}

func TestProgressThatNobodySawLeavesNothing(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	progress := report.Progress{Out: &out}
	progress.Step(0, 1, "Search")
	progress.Done()
	require.Empty(t, out.String())
	silent := report.Progress{}
	silent.Step(0, 1, "Search")
	silent.Done()
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
