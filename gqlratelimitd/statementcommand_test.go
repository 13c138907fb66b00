package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/statement"
)

func TestStatementsAreVerifiedWithoutADaemon(t *testing.T) {
	t.Parallel()
	private, public, err := audit.NewKey("log.example.org")
	require.NoError(t, err)
	key, err := audit.ParseKey(private)
	require.NoError(t, err)
	folder, november := t.TempDir(), time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	write := func(name string, s *statement.Statement) (string, []byte) {
		signed, err := s.Sign(key)
		require.NoError(t, err)
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, signed, 0o600))
		return path, signed
	}
	first := &statement.Statement{
		Number: 1, Tenant: "acme", From: november.AddDate(0, -1, 0), To: november, Frozen: november.AddDate(0, 0, 3), Collected: november,
		Lines: []statement.Line{{Unit: "points", Grade: "exact", Charged: 50, GivenBack: 8}},
	}
	second := *first
	second.Number, second.Previous = 2, statement.Reference{Number: 1, Hash: first.Hash()}
	second.Corrects, second.Unknown = second.Previous, november.AddDate(0, 0, -20)
	second.Lines = []statement.Line{{Unit: "points", Grade: "exact", Charged: 60, GivenBack: 8}}
	second.Differences = statement.Difference(first.Lines, second.Lines)
	one, signed := write("one", first)
	two, _ := write("two", &second)
	second.Differences[0].Charged++
	forged, _ := write("forged", &second)

	verify := func(in string, args ...string) (int, string, string) {
		var out, failed bytes.Buffer
		code := run(context.Background(), append([]string{"statement", "verify"}, args...), console{strings.NewReader(in), &out, &failed})
		return code, out.String(), failed.String()
	}
	for _, args := range [][]string{{one, two, "-key", public}, {"-key", public, two, one}, {one, "-key", public, two}} {
		code, out, failed := verify("", args...)
		require.Zero(t, code, failed)
		require.Contains(t, out, "Statement 1 of acme, 2026-10-01 to 2026-11-01")
		require.Contains(t, out, "points (exact): 42, of which 8 was given back from 50")
		require.Contains(t, out, "It corrects statement 1 by:\n  points (exact): +10, of which +10 was charged and +0 given back\n")
		require.Contains(t, out, "What was used before 2026-10-12T00:00:00Z may not be in it")
		require.NotContains(t, out, "not among the files")
	}
	code, out, _ := verify("", two, "-key", public)
	require.Zero(t, code)
	require.Contains(t, out, "Statement 1 is named and not among the files")
	code, _, _ = verify(string(signed), "-", "-key", public)
	require.Zero(t, code)
	code, _, failed := verify("", one, forged, "-key", public)
	require.Equal(t, exitFailed, code)
	require.Contains(t, failed, "does not state the difference")
	_, other, err := audit.NewKey("log.example.org")
	require.NoError(t, err)
	for in, problem := range map[string]string{strings.Replace(string(signed), "50", "51", 1): "has signed it", "": "has signed it", strings.Repeat("x", statement.MaxBytes+1): "bytes"} {
		code, _, failed = verify(in, "-", "-key", public)
		require.Equal(t, exitFailed, code)
		require.Contains(t, failed, problem)
	}
	code, _, _ = verify("", one, "-key", other)
	require.Equal(t, exitFailed, code)
	for _, args := range [][]string{{}, {one}, {"-key", public}, {one, "-nothing"}} {
		code, _, _ = verify("", args...)
		require.Equal(t, exitUsage, code, args)
	}
	code = run(context.Background(), []string{"statement"}, console{nil, &bytes.Buffer{}, &bytes.Buffer{}})
	require.Equal(t, exitUsage, code)
}
