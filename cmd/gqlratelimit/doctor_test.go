package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/doctor"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// patient are flags with which a busy machine is not called slow.
var patient = []string{"-timeout", "1m", "-patience", "1m"}

func TestTheDoctorExaminesARealServer(t *testing.T) {
	t.Parallel()
	addr := redistest.Start(t, "--maxmemory", "1073741824", "--appendonly", "yes").Addr
	c, stdout, stderr := quiet()
	c.Getenv = func(name string) string { return map[string]string{"REDIS_URL": "redis://" + addr}[name] }
	require.Equal(t, exitOK, run(c, append([]string{"doctor", "-redis", "$REDIS_URL"}, patient...)), "%s%s", stdout, stderr)
	require.Contains(t, stdout.String(), "(no-replica)")
	require.Contains(t, stdout.String(), "0 errors, 0 warnings, 1 note\n")

	c, stdout, stderr = quiet()
	code := run(c, append([]string{"doctor", "-redis", addr, "-fail-on", "note", "-json"}, patient...))
	require.Equal(t, exitFound, code, "%s%s", stdout, stderr)
	var written struct {
		Version  int
		Failed   bool
		Findings []doctor.Finding
	}
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &written))
	require.Equal(t, 1, written.Version)
	require.True(t, written.Failed)
	require.Len(t, written.Findings, 1)
	require.Equal(t, "no-replica", written.Findings[0].Code)
	require.Equal(t, addr, written.Findings[0].Node)
}

func TestTheDoctorFindsAServerThatEvicts(t *testing.T) {
	t.Parallel()
	addr := redistest.Start(t, "--maxmemory", "1073741824", "--appendonly", "yes", "--maxmemory-policy", "allkeys-lru").Addr
	c, stdout, _ := quiet()
	require.Equal(t, exitFound, run(c, append([]string{"doctor", "-redis", addr, "-fail-on", "error"}, patient...)))
	require.Contains(t, stdout.String(), "maxmemory-policy is allkeys-lru (evicting-policy)")
}

func TestTheDoctorShowsNoPassword(t *testing.T) {
	t.Parallel()
	addr := redistest.Start(t).Addr
	c, stdout, stderr := quiet()
	require.Equal(t, exitFound, run(c, append([]string{"doctor", "-redis", "redis://limiter:verysecret@" + addr}, patient...)))
	require.Contains(t, stdout.String(), "(not-authenticated)")
	require.NotContains(t, stdout.String()+stderr.String(), "verysecret")
}
