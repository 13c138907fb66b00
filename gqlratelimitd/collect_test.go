package main

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

func TestWhatARedisHasCountedIsCollectedAlsoIfNobodyTells(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redistest.Connect(t, server.Addr)
	budgets, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Timeout: 5 * time.Second})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, budgets.Close()) })
	_, err = budgets.Take(t.Context(), bucket.Take{Tenant: "acme", Amounts: bucket.Amounts{{Unit: bucket.Points, N: 7}, {Unit: bucket.Requests, N: 1}}, Usage: &bucket.Usage{}})
	require.NoError(t, err)
	r := start(t, t.TempDir()+"/state", "-redis", "redis://"+server.Addr)
	token := r.first()
	// Who asks more often is refused.
	rows := regexp.MustCompile(`(?m)^ratelimit_collector_rows_total\{.*ratelimit_collector_kind="usage".*\} [1-9]`)
	require.Eventually(t, func() bool {
		metrics := r.ask(http.StatusOK, http.MethodGet, "/metrics", token, "")
		return rows.MatchString(metrics) && strings.Contains(metrics, "ratelimit_collector_lag_seconds")
	}, time.Minute, time.Second)
}
