package directory_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/policy/directory"
)

func TestARestartWithoutTheSourceHasTheLastRecords(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "records")
		cfg := directory.Config{WhileUnknown: "careful", LastGood: path}
		from := newSource()
		from.write(t, "acme", raised)
		from.write(t, "\xff\x00", `{"tier":"pro"}`)
		d := open(t, from, cfg)
		for _, tenant := range [...]string{"acme", "\xff\x00", "plain"} {
			of(t, d, tenant)
		}
		require.NoError(t, d.Close())

		from.away.Store(true)
		d = open(t, from, cfg)
		require.EqualValues(t, 700, of(t, d, "acme"))
		require.EqualValues(t, 100, of(t, d, "\xff\x00"))
		require.EqualValues(t, 10, of(t, d, "plain"))
		require.EqualValues(t, 3, of(t, d, "new"))
		require.NoError(t, d.Close())

		from.away.Store(false)
		from.write(t, "acme", `{"tier":"pro"}`)
		asked := from.asked.Load()
		d = open(t, from, cfg)
		require.EqualValues(t, 100, of(t, d, "acme"), "what has changed meanwhile is asked for")
		require.EqualValues(t, 100, of(t, d, "\xff\x00"))
		require.Equal(t, asked+1, from.asked.Load(), "and nothing else")
	})
}

func TestAFileThatIsNotWholeIsLeftOutAndSaidSo(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "records")
	from := newSource()
	from.write(t, "acme", raised)
	d := open(t, from, directory.Config{LastGood: path})
	of(t, d, "acme")
	require.NoError(t, d.Close())
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	from.away.Store(true)
	changed := strings.Replace(string(whole), "700", "900", 1)
	for name, content := range map[string]string{
		"empty": "", "foreign": "version: 1\n", "half": string(whole[:len(whole)/2]), "without its end": string(whole[:len(whole)-30]),
		"changed": changed, "with more behind": string(whole) + "{}\n", "a line without end": string(whole[:60]) + strings.Repeat("x", 1<<20),
	} {
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		var log strings.Builder
		d := open(t, from, directory.Config{LastGood: path, Observe: directory.ObserveConfig{Logger: slog.New(slog.NewTextHandler(&log, nil))}})
		require.Zero(t, d.Status().Known, name)
		require.EqualValues(t, 10, of(t, d, "acme"), name)
		require.NoError(t, d.Close())
		require.Contains(t, log.String(), "the last good records could not be read", name)
	}
}
