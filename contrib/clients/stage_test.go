package clients_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// patience is how long a client may take for everything, on a machine that is busy with other tests.
const patience = 2 * time.Minute

// example returns the path of the example server, which is built once.
var example = sync.OnceValues(func() (string, error) {
	path := filepath.Join(scratch, "example")
	build := exec.Command("go", "build", "-o", path, "./example")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, nil
})

// scratch is a directory for what all tests share.
var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "clients"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(scratch)
	os.Exit(code)
}

// startExample starts the example server on a free port until the test ends, and returns the URL of its API.
func startExample(t *testing.T, args ...string) string {
	t.Helper()
	path, err := example()
	require.NoError(t, err)
	command := exec.CommandContext(context.WithoutCancel(t.Context()), path, append([]string{"-addr", "127.0.0.1:0"}, args...)...)
	stdout, err := command.StdoutPipe()
	require.NoError(t, err)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	require.NoError(t, command.Start())
	url := ""
	lines := bufio.NewScanner(stdout)
	for url == "" && lines.Scan() {
		url, _ = strings.CutPrefix(lines.Text(), "API:      ")
		if url == lines.Text() {
			url = ""
		}
	}
	read := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, stdout)
		read <- err
	}()
	t.Cleanup(func() {
		require.NoError(t, command.Process.Signal(syscall.SIGTERM))
		require.NoError(t, <-read)
		require.NoError(t, command.Wait(), stderr.String())
	})
	require.NotEmpty(t, url, "the example says where its API is")
	return url
}

// attempt is one request of a client, as the gate saw it.
type attempt struct {
	// early says that the client had been told to come later.
	early bool
	// method is that of the request, and status and media are those of the answer.
	method, media string
	status        int
	// code is that of the refusal. Empty means that nothing was refused.
	code string
	// charged is what the operation was charged, and ran says whether its resolvers did.
	charged int64
	ran     bool
}

// gate stands between a client and the example server, and notes what passes.
type gate struct {
	t *testing.T
	// api is the URL of the example server.
	api string
	// spend empties the budget just before the first request.
	spend bool
	// lose keeps the first answer from the client.
	lose bool
	// store is the way to Redis, which heals when the first answer has been made. Nil means that nothing heals.
	store *redistest.Proxy

	mu       sync.Mutex
	attempts []attempt
	// notBefore is when the client may come again.
	notBefore time.Time
}

// serve returns the URL at which clients find the gate until the test ends.
func (g *gate) serve() string {
	server := httptest.NewServer(g)
	g.t.Cleanup(server.Close)
	return server.URL
}

// ServeHTTP passes a request on and returns the answer.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	first := len(g.attempts) == 0
	if first && g.spend {
		g.spendAll(r)
	}
	if !first && g.store != nil {
		g.awaitStore(r)
	}
	// Clocks of timers are not so fine that a few milliseconds told anything.
	early := time.Now().Add(5 * time.Millisecond).Before(g.notBefore)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		g.t.Errorf("gate: %v", err)
		return
	}
	got, err := g.forward(r, body)
	if err != nil {
		g.t.Errorf("gate: %v", err)
		return
	}
	read, err := ratelimitclient.FromResponse(firstEvent(got.body))
	if err != nil || read.RateLimit == nil {
		g.t.Errorf("gate: %v in %s", err, got.body)
		return
	}
	media, _, _ := strings.Cut(got.header.Get("Content-Type"), ";")
	noted := attempt{
		early: early, method: r.Method, status: got.status, media: media, charged: read.RateLimit.Charged,
	}
	if read.Refusal != nil {
		noted.code = read.Refusal.Code
		g.notBefore = time.Now().Add(read.Refusal.RetryAfter)
	} else {
		noted.ran = !read.RateLimit.Replayed
	}
	g.attempts = append(g.attempts, noted)
	if g.store != nil {
		g.store.Heal()
	}
	if first && g.lose {
		panic(http.ErrAbortHandler)
	}
	for name, values := range got.header {
		w.Header()[name] = values
	}
	w.WriteHeader(got.status)
	_, _ = w.Write(got.body)
}

// answer is what the example server answered.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (g *gate) forward(r *http.Request, body []byte) (answer, error) {
	// A client that goes away does not take the answer from the notes.
	ctx := context.WithoutCancel(r.Context())
	request, err := http.NewRequestWithContext(ctx, r.Method, g.api+"?"+r.URL.RawQuery, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	for _, name := range []string{"Accept", "Content-Type", "Idempotency-Key", "X-Api-Key"} {
		if value := r.Header.Get(name); value != "" {
			request.Header.Set(name, value)
		}
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	whole, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, whole}, err
}

// spendAll spends the whole budget, before a request is passed on.
func (g *gate) spendAll(before *http.Request) {
	got, err := g.ask(before, apiKey, everything)
	read, readErr := ratelimitclient.FromResponse(got.body)
	if err = errors.Join(err, readErr); err != nil || read.RateLimit == nil || read.RateLimit.Charged != budget {
		g.t.Errorf("gate: the budget was not spent: %v in %s", err, got.body)
	}
}

// awaitStore waits until the example server reaches its store again, which the breaker puts off and a busy
// machine does too.
func (g *gate) awaitStore(before *http.Request) {
	ctx, cancel := context.WithTimeout(before.Context(), patience)
	defer cancel()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		got, err := g.ask(before, otherKey, cheap)
		if err != nil || ctx.Err() != nil {
			g.t.Errorf("gate: the store is not back: %v in %s", err, got.body)
			return
		}
		if got.status != http.StatusServiceUnavailable {
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

// ask sends a query of its own, before a request is passed on.
func (g *gate) ask(before *http.Request, key, query string) (answer, error) {
	r := httptest.NewRequestWithContext(before.Context(), http.MethodPost, "/", nil)
	r.Header = http.Header{"Content-Type": {"application/json"}, "X-Api-Key": {key}}
	body, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		return answer{}, err
	}
	return g.forward(r, body)
}

// firstEvent returns the data of the first event with data, or the whole of a body that is no stream of events.
func firstEvent(body []byte) []byte {
	for line := range bytes.Lines(body) {
		if data, found := bytes.CutPrefix(line, []byte("data: ")); found {
			return data
		}
	}
	return body
}

// seen returns the requests so far.
func (g *gate) seen() []attempt {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]attempt(nil), g.attempts...)
}
