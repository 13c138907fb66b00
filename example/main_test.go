package main

import (
	"bytes"
	"context"
	"flag"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
	for _, name := range []string{"-addr", "-redis", "-policy"} {
		require.Contains(t, stderr.String(), name)
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

// lockedBuffer is a buffer that one goroutine writes while another reads.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// startExample runs the command on a free port until the test ends and returns what it printed.
func startExample(t *testing.T, args ...string) (printed string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var stdout, stderr lockedBuffer
	code := make(chan int, 1)
	go func() { code <- run(ctx, append([]string{"-addr", "127.0.0.1:0"}, args...), &stdout, &stderr) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.Equal(t, exitOK, <-code, stderr.String())
	})
	t.Cleanup(stop)
	require.Eventually(t, func() bool {
		return strings.Count(stdout.String(), "\ncurl ") == len(commands)
	}, 10*time.Second, 5*time.Millisecond)
	return stdout.String(), stop
}

// commandLines returns the lines to paste.
func commandLines(printed string) []string {
	var lines []string
	for line := range strings.Lines(printed) {
		if strings.HasPrefix(line, "curl ") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// shell runs a line as a person who pastes it.
func shell(t *testing.T, line string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "bash", "-c", line)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	require.NoError(t, err, "%s\n%s", line, stderr.String())
	return string(out)
}

// TestQueriesToPasteAnswer runs the printed queries that are always admitted.
func TestQueriesToPasteAnswer(t *testing.T) {
	t.Parallel()
	printed, _ := startExample(t)
	lines := commandLines(printed)
	require.Len(t, lines, len(commands))
	for i, golden := range []string{"cheap.json", "expensive.json"} {
		requireGolden(t, golden, shell(t, lines[i]))
	}
}

func requireGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.JSONEq(t, string(want), got)
}

func TestStoppingEndsOpenStreams(t *testing.T) {
	t.Parallel()
	printed, stop := startExample(t)
	_, rest, found := strings.Cut(printed, "API:      ")
	require.True(t, found)
	url, _, _ := strings.Cut(rest, "\n")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url,
		strings.NewReader(`{"query":"subscription { issueCreated { title } }"}`))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "text/event-stream")
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()

	began := time.Now()
	stop()
	require.Less(t, time.Since(began), shutdownTimeout, "the stream ended by itself")
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Contains(t, string(body), "event: complete")
}
