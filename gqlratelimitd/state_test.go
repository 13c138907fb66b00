package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/freeport"
)

// inAnHour is when overrides of tests expire.
func inAnHour() string { return time.Now().Add(time.Hour).UTC().Format(time.RFC3339) }

func TestOthersMayNeitherWriteWhereItKeepsThingsNorReadItsKeys(t *testing.T) {
	t.Parallel()
	for mode, fine := range map[os.FileMode]bool{0o700: true, 0o750: true, 0o755: true, 0o770: false, 0o707: false, 0o777: false} {
		folder := filepath.Join(t.TempDir(), "state")
		require.NoError(t, os.Mkdir(folder, 0o700))
		require.NoError(t, os.Chmod(folder, mode))
		if fine {
			require.NoError(t, dataFolder(folder), "%o", mode)
			continue
		}
		out, code := command("-data", folder, "-listen", "127.0.0.1:0")
		require.Equal(t, exitFailed, code)
		require.Contains(t, out, "chmod go-w")
		files, err := os.ReadDir(folder)
		require.NoError(t, err)
		require.Empty(t, files, "nothing was put into it")
	}
	for mode, fine := range map[os.FileMode]bool{0o600: true, 0o400: true, 0o640: true, 0o644: false, 0o660: false, 0o602: false} {
		name := filepath.Join(t.TempDir(), "webhook.key")
		made := func() (string, error) { return "secret", nil }
		_, err := secretFile(name, made)
		require.NoError(t, err)
		require.NoError(t, os.Chmod(name, mode))
		_, err = secretFile(name, made)
		if fine {
			require.NoError(t, err, "%o", mode)
		} else {
			require.ErrorContains(t, err, "chmod 600", "%o", mode)
		}
	}
}

func TestWhatItKeepsIsItsOwnersAlone(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "state")
	r := start(t, data)
	r.first()
	files, err := os.ReadDir(data)
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range append(files, nil) {
		name, want := data, os.FileMode(0o700)
		if file != nil {
			name, want = filepath.Join(data, file.Name()), 0o600
		}
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.Equal(t, want, info.Mode().Perm(), name)
	}
}

func TestAnExportOfNoDatabaseMakesNone(t *testing.T) {
	t.Parallel()
	data, export := t.TempDir(), filepath.Join(t.TempDir(), "audit.jsonl")
	out, code := command("audit", "export", "-o", export, "-data", data)
	require.Equal(t, exitFailed, code)
	require.Contains(t, out, "there is no database")
	files, err := os.ReadDir(data)
	require.NoError(t, err)
	require.Empty(t, files)
	require.NoFileExists(t, export)
}

func TestAnExportThatFailsLeavesNoFile(t *testing.T) {
	t.Parallel()
	data, export := filepath.Join(t.TempDir(), "state"), filepath.Join(t.TempDir(), "audit.jsonl")
	r := start(t, data)
	require.Zero(t, r.stop())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	code := run(ctx, []string{"audit", "export", "-data", data, "-o", export}, console{strings.NewReader(""), io.Discard, io.Discard})
	require.Equal(t, exitFailed, code)
	require.NoFileExists(t, export)
}

func TestAConfigurationIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "limits.yaml")
	for _, wrong := range []struct{ text, problem string }{
		{"listen: 127.0.0.1:1\n---\nplainText: true\n", "more than one document"},
		{"listen: 127.0.0.1:1\n#" + strings.Repeat("x", maxConfig) + "\nredis: redis://x\n", "more than"},
		{"oidc: [{isuer: x}]\n", "field isuer not found\n"},
		{"usage: {days: 2}\n", "usage: hours are kept for 2 days: write 32 to 3660, or 0 for 400"},
	} {
		require.NoError(t, os.WriteFile(name, []byte(wrong.text), 0o600))
		_, err := readOptions([]string{"-config", name}, io.Discard)
		require.ErrorContains(t, err, strings.TrimSpace(wrong.problem))
		require.NotContains(t, err.Error(), "main.")
	}
	require.NoError(t, os.WriteFile(name, nil, 0o600))
	_, err := readOptions([]string{"-config", name}, io.Discard)
	require.NoError(t, err)
}

func TestAPasswordThatOthersReadIsToldOfAndNeverRepeated(t *testing.T) {
	t.Parallel()
	const secret = "hunter2secret"
	name := filepath.Join(t.TempDir(), "limits.yaml")
	require.NoError(t, os.WriteFile(name, []byte("database: postgres://limits:"+secret+"@db.internal/limits\n"), 0o644))
	o, err := readOptions([]string{"-config", name}, io.Discard)
	require.NoError(t, err)
	require.Len(t, o.notes, 1)
	require.Contains(t, o.notes[0], "chmod o-r")
	require.NoError(t, os.Chmod(name, 0o600))
	o, err = readOptions([]string{"-config", name, "-redis", "rediss://:" + secret + "@redis.internal:6379"}, io.Discard)
	require.NoError(t, err)
	require.Len(t, o.notes, 1)
	require.Contains(t, o.notes[0], "argument")

	// Nobody listens there.
	away, err := freeport.Address()
	require.NoError(t, err)
	data := t.TempDir()
	require.NoError(t, os.Chmod(data, 0o700))
	for _, args := range [][]string{
		{"-database", "postgres://limits:" + secret + "@" + away + "/limits"},
		{"-database", "postgres://limits@" + away + "/limits?sslmode=disable&password=" + secret},
		{"-database", "postgres://limits:" + secret + "@" + away + "/limits?sslmode=what"},
		{"-database", "postgres://limits:" + secret + "@[/limits"},
		{"-database", "mysql://limits:" + secret + "@" + away + "/limits"},
		{"-redis", "redis://limits:" + secret + "@" + away + "/what"},
		{"-redis", "redis://limits:" + secret + "@" + away + "?" + secret + "=1"},
		{"-redis", "redis://limits:" + secret + "%zz@" + away},
		{"-redis", "http://limits:" + secret + "@" + away},
	} {
		out, code := command(append([]string{"-data", data, "-listen", "127.0.0.1:0"}, args...)...)
		require.Equal(t, exitFailed, code, args)
		require.NotEmpty(t, out)
		require.NotContains(t, out, secret)
	}
}

func TestAStrangerFillsNoLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		w := &sparing{log: slog.New(slog.NewTextHandler(&log, nil))}
		say := func(n int) int {
			before := strings.Count(log.String(), "\n")
			for range n {
				_, err := w.Write([]byte("http: TLS handshake error\n"))
				require.NoError(t, err)
			}
			return strings.Count(log.String(), "\n") - before
		}
		require.Equal(t, sparingLines, say(1000))
		time.Sleep(sparingTime + time.Millisecond) //nolint:forbidigo // in a synctest bubble
		require.Equal(t, 2, say(1))
		require.Contains(t, log.String(), "lines=990")
		time.Sleep(sparingTime + time.Millisecond) //nolint:forbidigo // in a synctest bubble
		require.Equal(t, 1, say(1))
		redisLog{w}.Printf(t.Context(), "dial %s", "failed")
		require.Contains(t, log.String(), "dial failed")
	})
}
