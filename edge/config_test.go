package edge_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/edge"
)

func TestEveryMistakeInAConfigurationIsToldAtOnce(t *testing.T) {
	t.Parallel()
	_, err := edge.New(edge.Config{
		Proxies: edge.ProxyConfig{Header: "X-Real-IP"},
		Address: edge.AddressConfig{
			IPv6Client: 200, UnderWay: -2, Connections: -2, Operations: -2,
			Limits:     []bucket.Limit{{Name: "points", Capacity: 1, Period: time.Second}},
			SiteLimits: []bucket.Limit{{Name: "bytes", Unit: edge.Bytes, Capacity: 5, Period: time.Second}}, Values: -2,
		},
		Key:     edge.KeyConfig{Header: "X", Find: func(*http.Request) string { return "" }, Limits: []bucket.Limit{{Unit: bucket.Requests}}},
		Request: edge.RequestConfig{MaxBody: -1, BodyTime: -1, MaxQuery: 20, MaxHeader: 10, UnderWay: -2, MaxValues: -2, Values: -2},
		Connection: edge.ConnectionConfig{
			Operations: -2, All: -2, AllOperations: -2, MaxInit: -2, Limits: []bucket.Limit{{Name: "bytes", Unit: edge.Bytes, Capacity: 100, Period: time.Second}},
		},
		Observe: edge.ObserveConfig{Refusals: -2}, MaxBudgets: -1,
		Server: &http.Server{},
	})
	require.Error(t, err)
	mistakes := strings.Split(err.Error(), "\n")
	for _, want := range []string{
		"Config.Proxies.Header is X-Real-IP, which nobody reads", "Config.Address.IPv6Client is 200, want 1 to 128",
		"Config.Address.UnderWay is -2", "Config.Address.Connections is -2", `Config.Address.Limits: limit "points" is in "points", want requests or bytes`,
		`Config.Address.SiteLimits: limit "bytes" has 5 bytes, want at least`, "Config.Key has Header and Find", `Config.Key.Limits: bucket: limit ""`,
		"Config.Request.MaxBody is negative", "Config.Request.BodyTime is negative", "Config.Request.MaxQuery is 20, want at most 10",
		"Config.Request.UnderWay is -2", "Config.Request.MaxValues is -2", "Config.Request.Values is -2", "Config.Address.Values is -2", "Config.Connection.Operations is -2", "Config.Connection.All is -2", "Config.Connection.AllOperations is -2",
		"Config.Connection.MaxInit is -2", "Config.Address.Operations is -2",
		`Config.Connection.Limits: limit "bytes" counts bytes`, "Config.Observe.Refusals is -2", "Config.MaxBudgets is -1",
		"Config.Server.MaxHeaderBytes lets in 1048576 bytes", "Config.Server.ReadHeaderTimeout is not set",
	} {
		require.Condition(t, func() bool {
			for _, mistake := range mistakes {
				if strings.HasPrefix(strings.ReplaceAll(mistake, `"X-Real-IP"`, "X-Real-IP"), "edge: "+want) {
					return true
				}
			}
			return false
		}, "%s is missing in:\n%v", want, err)
	}
	_, err = edge.New(edge.Config{Key: edge.KeyConfig{Limits: requests(1)}})
	require.ErrorContains(t, err, "set Key.Header or Key.Find")
}

func TestNoBoundIsWrittenAsNone(t *testing.T) {
	t.Parallel()
	door := newDoor(t, edge.Config{
		Address:    edge.AddressConfig{IPv6Site: edge.None, Limits: none, SiteLimits: none, UnderWay: edge.None, Connections: edge.None},
		Request:    edge.RequestConfig{UnderWay: edge.None},
		Connection: edge.ConnectionConfig{Limits: none, Operations: edge.None, All: edge.None},
		Observe:    edge.ObserveConfig{Refusals: edge.None},
	})
	h := door.Handler(&passed{})
	for range 2000 {
		require.Equal(t, http.StatusOK, ask(t, h, "2001:db8::1").status)
	}
}

// TestTheDefaultsHold has the numbers of the documentation.
func TestTheDefaultsHold(t *testing.T) {
	t.Parallel()
	h := newDoor(t, edge.Config{}).Handler(&passed{})
	require.Equal(t, http.StatusOK, ask(t, h, "192.0.2.1", body(strings.Repeat("x", 128<<10), false)).status)
	require.Equal(t, http.StatusRequestEntityTooLarge, ask(t, h, "192.0.2.1", body(strings.Repeat("x", 128<<10+1), true)).status)
	require.Equal(t, http.StatusRequestEntityTooLarge, ask(t, h, "192.0.2.1", get(strings.Repeat("x", 16<<10+1))).status)
	require.Equal(t, http.StatusRequestEntityTooLarge, ask(t, h, "192.0.2.1", header("X", strings.Repeat("x", 32<<10))).status)
	n := 4
	for ; ask(t, h, "192.0.2.1").status == http.StatusOK; n++ {
		require.Less(t, n, 10_000)
	}
	require.Equal(t, 1200, n)
}

func TestAServerThatDoesNotBoundHeadersIsSaidOnce(t *testing.T) {
	t.Parallel()
	var log lines
	logger := slog.New(slog.NewTextHandler(&log, nil))
	s := serve(t, edge.Config{Observe: edge.ObserveConfig{Logger: logger}}, nil)
	require.Contains(t, log.String(), "Config.Server is nil", "at the start")
	for range 2 {
		require.Equal(t, http.StatusOK, s.post(t, strings.NewReader(document)).status)
	}
	require.Equal(t, 1, strings.Count(log.String(), "MaxHeaderBytes lets in 1048576 bytes"))
	require.Equal(t, 1, strings.Count(log.String(), "ReadHeaderTimeout is not set"))

	var quiet bytes.Buffer
	_, err := edge.New(edge.Config{
		Server:  &http.Server{MaxHeaderBytes: 32 << 10, ReadHeaderTimeout: time.Second},
		Observe: edge.ObserveConfig{Logger: slog.New(slog.NewTextHandler(&quiet, nil))},
	})
	require.NoError(t, err)
	require.Empty(t, quiet.String())
}

func TestAnUnknownAddressIsSaidOnceAndBoundsNothing(t *testing.T) {
	t.Parallel()
	var log lines
	h := newDoor(t, edge.Config{
		Address: edge.AddressConfig{Limits: requests(1)}, Observe: edge.ObserveConfig{Logger: slog.New(slog.NewTextHandler(&log, nil))},
	}).Handler(&passed{})
	for range 3 {
		require.Equal(t, http.StatusOK, ask(t, h, "192.0.2.1", func(r *http.Request) { r.RemoteAddr = "@" }).status)
	}
	require.Equal(t, 1, strings.Count(log.String(), "the address of a client is not known"))
}
