package main

import (
	"bytes"
	"flag"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestOptionsAreRefusedWithAReason(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args []string
		want string
	}{
		"an unknown flag":           {[]string{"-port", "1"}, "flag provided but not defined: -port"},
		"an address without a port": {[]string{"-addr", "localhost"}, `-addr "localhost" is not an address such as 127.0.0.1:8080`},
		"a port that is no number":  {[]string{"-addr", ":http"}, `-addr ":http": the port has to be a number from 0 to 65535`},
		"a port that is too large":  {[]string{"-addr", ":65536"}, "the port has to be a number from 0 to 65535"},
		"an empty Redis address":    {[]string{"-redis", "a:1,,b:1"}, "-redis has an empty address between its commas"},
		"a network without bits":    {[]string{"-proxies", "10.0.0.1"}, "write a network such as 10.0.0.0/8"},
		"to follow without a Redis": {[]string{"-follow"}, "-follow needs the Redis of gqlratelimitd: say -redis as well"},
		"to follow two policies":    {[]string{"-follow", "-redis", "a:1", "-policy", "p.yaml"}, "say one of them"},
		"a latency that is none":    {[]string{"-latency", "-1s"}, "-latency -1s: up to 1h fits"},
		"an argument":               {[]string{"serve"}, `unexpected argument "serve": there are only flags, see -help`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			require.Equal(t, exitUsage, run(t.Context(), test.args, &stdout, &stderr))
			require.Contains(t, stderr.String(), test.want)
			require.Empty(t, stdout.String())
		})
	}
}

func TestOptionsNeverRepeatAPassword(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	require.Equal(t, exitUsage, run(t.Context(), []string{"-redis", "redis://:sesame@a:1,"}, io.Discard, &stderr))
	require.NotContains(t, stderr.String(), "sesame")
}

func TestOptionsSplitRedisAddresses(t *testing.T) {
	t.Parallel()
	opts, err := parseOptions([]string{"-redis", "a:1, b:2", "-policy", "p.yaml"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, options{addr: "127.0.0.1:8080", redis: []string{"a:1", "b:2"}, policy: "p.yaml"}, opts)
}

func TestHelpSucceedsAndNamesEveryFlag(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	require.Equal(t, exitOK, run(t.Context(), []string{"-help"}, io.Discard, &stderr))
	for _, name := range []string{"-addr", "-redis", "-follow", "-policy", "-policy-max-bytes", "-proxies", "-latency", "-status-ok"} {
		require.Contains(t, stderr.String(), name)
	}
}

func TestStatusesOfRefusalsCanBeSwitchedTo200(t *testing.T) {
	t.Parallel()
	tooExpensive := request{query: `{ repositories(first: 100) { nodes { issues(first: 100) { nodes { id } } } } }`, key: "demo-free"}
	for want, args := range map[int][]string{http.StatusBadRequest: nil, http.StatusOK: {"-status-ok"}} {
		got := post(t, startExample(t, args...).url, tooExpensive)
		require.Equal(t, want, got.status, got.body)
		require.Equal(t, ratelimitclient.CodeCostLimitExceeded, got.refusal(t).Code)
	}
}

func TestAnAddressInUseIsSaidClearly(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	var stderr bytes.Buffer
	require.Equal(t, exitFailed, run(t.Context(), []string{"-addr", taken.Addr().String()}, io.Discard, &stderr))
	require.Equal(t, "example: another program listens on "+taken.Addr().String()+
		": stop it, or choose another address with -addr\n", stderr.String())
}

func TestStoppingEndsOpenStreams(t *testing.T) {
	t.Parallel()
	i := startExample(t)
	request := newRequest(t, i.url, request{query: `subscription { issueCreated { title } }`})
	request.Header.Set("Accept", "text/event-stream")
	response, err := client.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()

	began := time.Now()
	i.stop()
	require.Less(t, time.Since(began), shutdownTimeout, "the stream ended by itself")
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Contains(t, string(body), "event: complete")
}
