package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// rotated runs audit rotate, and returns its code and what it writes.
func rotated(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e strings.Builder
	code = run(t.Context(), append([]string{"audit", "rotate"}, args...), console{strings.NewReader(""), &o, &e})
	return code, o.String(), e.String()
}

// It sets the environment, and so runs alone.
func TestTheKeyOfTheAuditLogIsRotatedWhereItIs(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	first := start(t, data)
	was := keyIn(t, first.out)
	token := first.first()

	code, _, errs := rotated(t, "-data", data, "-reason", "yearly")
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "put a token with the role operator into RATELIMIT_TOKEN")
	t.Setenv(tokenVariable, "grl_nobody")
	code, _, _ = rotated(t, "-data", data, "-reason", "yearly")
	require.Equal(t, exitFailed, code)
	t.Setenv(tokenVariable, token)
	code, _, errs = rotated(t, "-data", data)
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "reason")

	// The next key of a rotation that was interrupted is taken.
	file := filepath.Join(data, "audit.key")
	next, err := os.ReadFile(file + ".next")
	require.NoError(t, err)
	code, out, errs := rotated(t, "-data", data, "-reason", "yearly")
	require.Zero(t, code, errs)
	now, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(next), string(now))
	require.NoFileExists(t, file+".next")
	require.FileExists(t, file+".retired")

	// A daemon that has the old key goes on with everything but signing.
	first.ask(http.StatusOK, http.MethodPut, "/v1/ratelimit/policies", token, document, "If-Match", `"1"`)
	require.Zero(t, first.stop())
	second := start(t, data)
	is := keyIn(t, second.out)
	require.NotEqual(t, was, is)
	require.Contains(t, out, is)
	export := filepath.Join(t.TempDir(), "audit.jsonl")
	var o, e strings.Builder
	require.Zero(t, run(t.Context(), []string{"audit", "export", "-o", export, "-data", data}, console{strings.NewReader(""), &o, &e}), e.String())
	require.Zero(t, run(t.Context(), []string{"audit", "verify", export, "-key", was}, console{strings.NewReader(""), &o, &e}), e.String())
	require.Contains(t, o.String(), "is what was signed")
}

func TestARotationThatHadReachedTheLogOnlyReplacesTheFile(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	first := start(t, data)
	t.Setenv(tokenVariable, first.first())
	require.Zero(t, first.stop())
	file := filepath.Join(data, "audit.key")
	old, err := os.ReadFile(file)
	require.NoError(t, err)
	code, _, errs := rotated(t, "-data", data, "-reason", "yearly")
	require.Zero(t, code, errs)
	next, err := os.ReadFile(file)
	require.NoError(t, err)

	// As if it had been killed before it replaced the file.
	require.NoError(t, os.WriteFile(file+".next", next, 0o600))
	require.NoError(t, os.WriteFile(file, old, 0o600))
	code, _, errs = rotated(t, "-data", data, "-reason", "yearly")
	require.Zero(t, code, errs)
	now, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(next), string(now))
	start(t, data)
}
