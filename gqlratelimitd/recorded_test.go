package main

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/digest"
	"github.com/gqlgen-ratelimit/ratelimit/digest/redisdigest"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// asked is what a tenant has asked for, so many times.
type asked struct {
	tenant string
	cost   int64
	times  int
}

// record writes what tenants have asked for at a time into a Redis, as an instance does that then ends.
func record(t testing.TB, address string, key []byte, at time.Time, all ...asked) {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: address})
	defer func() { require.NoError(t, client.Close()) }()
	collector, err := digest.New(digest.Config{Key: key})
	require.NoError(t, err)
	for _, a := range all {
		for range a.times {
			collector.Count(event.Verdict{At: at, Tenant: a.tenant, Tier: "free", User: "zoe", RootFields: []string{"Query.search"}, Outcome: "admitted", Cost: a.cost})
		}
	}
	writer, err := redisdigest.Start(redisdigest.WriterConfig{
		Config: redisdigest.Config{Client: client}, Collector: collector, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	require.NoError(t, writer.Close())
}

// previewed is what the daemon answers.
type previewed struct {
	Against         uint64
	Missing, Remark string
	Halts           bool
	Report          struct {
		Share float64
		Rows  []struct {
			Tenant       string
			NewlyRefused int64
		}
		Tenants struct{ Seen, NewlyRefused int }
	}
}

func (r *running) preview(token, document string) (p previewed) {
	r.Helper()
	require.NoError(r, json.Unmarshal([]byte(r.ask(http.StatusOK, http.MethodPost, "/v1/ratelimit/policies/preview", token, document)), &p))
	return p
}

func TestAPreviewIsOfWhatInstancesHaveRecorded(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	key := []byte("0123456789abcdef")
	file := filepath.Join(t.TempDir(), "digest.key")
	require.NoError(t, os.WriteFile(file, append(key, '\n'), 0o600))
	r := start(t, t.TempDir(), "-redis", "redis://"+server.Addr, "-digest-key", file)
	token := r.first()
	less, little := strings.ReplaceAll(document, "1000", "15"), strings.ReplaceAll(document, "1000", "999")
	none := r.preview(token, less)
	require.Contains(t, none.Missing, "nothing was recorded")

	record(t, server.Addr, key, time.Now().Add(-61*time.Minute), asked{"acme", 10, 3}, asked{"globex", 1, 9})
	record(t, server.Addr, key, time.Now(), asked{"initech", 1, 1})
	p := r.preview(token, less)
	require.Empty(t, p.Missing)
	require.Equal(t, uint64(1), p.Against)
	require.Equal(t, 3, p.Report.Tenants.Seen)
	require.Len(t, p.Report.Rows, 1)
	require.Equal(t, "acme", p.Report.Rows[0].Tenant)
	require.Equal(t, int64(2), p.Report.Rows[0].NewlyRefused)
	require.True(t, p.Halts)
	r.ask(http.StatusOK, http.MethodPut, "/v1/ratelimit/policies", token, little, "If-Match", `"1"`)
	diff := r.ask(http.StatusOK, http.MethodPost, "/v1/ratelimit/policies/diff", token, less)
	require.Contains(t, diff, `"changes":[{"tier":"free","what":"tenant limit minute","old":"999 points per minute","new":"15 points per minute"}]`)

	alone := start(t, t.TempDir())
	require.Contains(t, alone.preview(alone.first(), less).Missing, "no Redis")
	server.Kill()
	require.Contains(t, r.ask(http.StatusServiceUnavailable, http.MethodPost, "/v1/ratelimit/policies/preview", token, less), "There is no preview now")
}
