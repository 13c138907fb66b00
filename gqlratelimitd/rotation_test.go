package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit/audittest"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
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

func TestALogThatNobodyHasSignedHasRotatedNoKey(t *testing.T) {
	t.Parallel()
	log := &audittest.Memory{}
	require.NoError(t, log.Change(t.Context(), func(ctx context.Context, storage audit.Storage) error {
		_, err := audit.Append(ctx, storage, audit.Entry{Time: time.Now(), Actor: audit.Actor{Subject: "me", Issuer: "x", Method: "token"}, Action: "policy.publish", Target: "policy", Reason: "first"})
		return err
	}))
	file := filepath.Join(t.TempDir(), "audit.key")
	for _, name := range []string{file, file + ".next"} {
		_, err := auditKey(name, "log.example.org")
		require.NoError(t, err)
	}
	r := rotation{file: file, next: file + ".next"}
	require.NoError(t, r.read("", false))
	ended, err := r.ended(t.Context(), log)
	require.NoError(t, err)
	require.False(t, ended)
	signed, err := log.Newest(t.Context())
	require.NoError(t, err)
	require.Empty(t, signed, "to look signs nothing")

	entry := audit.Entry{Time: time.Now(), Actor: audit.Actor{Subject: "me", Issuer: "x", Method: "token"}, Action: "audit.rotate-key", Target: "audit key", Reason: "yearly"}
	require.NoError(t, audit.Rotate(t.Context(), log, r.keys.Old, r.keys.Next, entry))
	ended, err = r.ended(t.Context(), log)
	require.NoError(t, err)
	require.True(t, ended)
	// Whether a database that is away has it is not known.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	db, err := store.Open(t.Context(), store.Config{URL: "sqlite:" + filepath.Join(t.TempDir(), "daemon.db")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	_, err = r.ended(ctx, control.NewAuditLog(db))
	require.ErrorIs(t, err, context.Canceled)
}

func TestAKeyIsRotatedOnlyWhereNobodyElseCouldHavePutTheNextOne(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "keys")
	require.NoError(t, os.Mkdir(folder, 0o700))
	file := filepath.Join(folder, "audit.key")
	_, err := auditKey(file, "log.example.org")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(folder, 0o777))
	r := rotation{file: file, next: file + ".next"}
	require.ErrorContains(t, r.read("", false), "others may write into")
	require.NoFileExists(t, file+".next")
	require.NoError(t, os.Chmod(folder, 0o755))
	require.NoError(t, r.read("", false))
}
