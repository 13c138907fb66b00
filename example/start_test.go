package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/example/internal/codehost"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// actAsCommand is set in the environment of processes that are to be the command and not its tests.
const actAsCommand = "EXAMPLE_ACT_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(actAsCommand) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// fixedTime is the time in the tests.
var fixedTime = time.Date(2026, time.January, 2, 3, 4, 5, 0, time.UTC)

// startAPI serves a fresh store behind a fresh limiter and returns the URL of the API.
func startAPI(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(newHandler(t))
	t.Cleanup(server.Close)
	return server.URL + "/query"
}

// newHandler returns the handler of a fresh store behind a fresh limiter, as serve wires them.
func newHandler(t *testing.T) http.Handler {
	t.Helper()
	return handlerOf(t, newStore(t), options{})
}

// newStore returns a fresh store.
func newStore(t *testing.T) *codehost.Store {
	t.Helper()
	store := codehost.NewStore(codehost.Config{Seed: seed, Now: func() time.Time { return fixedTime }})
	t.Cleanup(store.Close)
	return store
}

// handlerOf returns the handler of a store behind a fresh limiter.
func handlerOf(t *testing.T, store *codehost.Store, opts options) http.Handler {
	t.Helper()
	limits, err := newLimiter(opts, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, limits.Close()) })
	return newMux(newAPI(store, limits), limits)
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

// instance is a running command.
type instance struct {
	// url is that of the API.
	url string
	// lines are the commands to paste that it printed.
	lines []string
	// stderr is what it has logged so far.
	stderr *lockedBuffer
	// stop ends it and waits until it has ended well. It may be called more than once.
	stop func()
}

// startExample runs the command inside this process, on a free port until the test ends.
func startExample(t *testing.T, args ...string) *instance {
	t.Helper()
	return startEnding(t, exitOK, args...)
}

// startEnding is the same for a command that ends with another code.
func startEnding(t *testing.T, want int, args ...string) *instance {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var stdout, stderr lockedBuffer
	code := make(chan int, 1)
	go func() { code <- run(ctx, onFreePort(args), &stdout, &stderr) }()
	stop := sync.OnceFunc(func() {
		cancel()
		require.Equal(t, want, <-code, stderr.String())
	})
	t.Cleanup(stop)
	return started(t, &stdout, &stderr, stop)
}

// startProcess runs the command as a process of its own, on a free port until the test ends, and
// stops it as a terminal does.
func startProcess(t *testing.T, args ...string) *instance {
	t.Helper()
	return startProcessEnding(t, exitOK, args...)
}

// startProcessEnding is the same for a process that ends with another code.
func startProcessEnding(t *testing.T, want int, args ...string) *instance {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	var stdout, stderr lockedBuffer
	command := exec.CommandContext(context.WithoutCancel(t.Context()), self, onFreePort(args)...)
	command.Env = append(os.Environ(), actAsCommand+"=1")
	command.Stdout, command.Stderr = &stdout, &stderr
	require.NoError(t, command.Start())
	stop := sync.OnceFunc(func() {
		require.NoError(t, command.Process.Signal(syscall.SIGTERM), stderr.String())
		_ = command.Wait() // The code says it.
		require.Equal(t, want, command.ProcessState.ExitCode(), stderr.String())
	})
	t.Cleanup(stop)
	return started(t, &stdout, &stderr, stop)
}

func onFreePort(args []string) []string {
	return append([]string{"-addr", "127.0.0.1:0"}, args...)
}

// started waits until the command has printed everything that it prints at its start.
func started(t *testing.T, stdout, stderr *lockedBuffer, stop func()) *instance {
	t.Helper()
	i := &instance{stderr: stderr, stop: stop}
	poll(t, "the commands to paste", func() bool {
		i.lines = commandLines(stdout.String())
		return len(i.lines) == len(commands)
	})
	_, rest, found := strings.Cut(stdout.String(), "API:      ")
	require.True(t, found, stdout.String())
	i.url, _, _ = strings.Cut(rest, "\n")
	return i
}

// commandLines returns the whole lines to paste.
func commandLines(printed string) []string {
	var lines []string
	for line := range strings.Lines(printed) {
		if strings.HasPrefix(line, "curl ") && strings.HasSuffix(line, "\n") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// runFails runs the command with flags that it understands and cannot serve by, and returns what it
// says about them.
func runFails(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var stderr bytes.Buffer
	require.Equal(t, exitFailed, run(ctx, onFreePort(args), io.Discard, &stderr), stderr.String())
	return stderr.String()
}

// freshStarts is how often onRedis starts anew.
const freshStarts = 8

// onRedis plays a scene on a Redis of its own and returns its replies. The limiter waits for Redis
// for a few milliseconds only, which a machine that is busy with other tests exceeds now and then.
// The replies say so, and the scene, which is about something else, is played again from the start:
// storeUnavailable is a decision that Redis missed, and a key that is in flight after its answer has
// arrived is one whose end did not reach Redis.
func onRedis(t *testing.T, scene func(address string) []reply) []reply {
	t.Helper()
	var replies []reply
	for range freshStarts {
		replies = scene(redistest.Start(t).Addr)
		away := false
		for _, r := range replies {
			away = away || strings.Contains(r.body, `"storeUnavailable":true`) ||
				strings.Contains(r.body, ratelimitclient.CodeInFlight)
		}
		if !away {
			return replies
		}
		t.Log("Redis was away for a moment: the scene starts again")
	}
	require.FailNowf(t, "Redis was away in every scene", "%v", replies)
	return nil
}
