// Package patient lets any Go GraphQL client that takes its own *http.Client, or something with the same
// method Do, wait as a server with package ratelimit tells it. It is written to be copied.
package patient

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"mime"
	"net/http"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// keyHeader is the header that makes it safe to send a mutation again.
const keyHeader = "Idempotency-Key"

// longestRefusal is how many bytes of an answer are looked at: that of a refusal is far shorter.
const longestRefusal = 64 << 10

// Doer sends a request, as [http.Client] does.
type Doer interface {
	Do(request *http.Request) (*http.Response, error)
}

// Client sends requests again that were refused for the time being, when they can pass, whatever the status
// is. A request whose answer was lost it sends again if that is safe: if it is a GET or has an
// Idempotency-Key. Everything else is the caller's. It is ready when zero, and any goroutine may use it.
type Client struct {
	// Doer sends the requests. Nil means [http.DefaultClient].
	Doer Doer
	// Attempts is how often a request is sent at most. Zero means 5.
	Attempts int
	// LongestWait is how long it waits at most before one attempt: who is told to wait longer gets the refusal
	// at once. Zero means 30 s.
	LongestWait time.Duration
}

type contextKey struct{}

// WithKey returns a context whose requests carry the Idempotency-Key. Make one key for each operation that is
// to happen once.
func WithKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, contextKey{}, key)
}

// Do sends the request, and sends it again as [Client] says. It never waits beyond the deadline of the
// request's context: it returns the refusal instead.
func (c *Client) Do(request *http.Request) (*http.Response, error) {
	ctx := request.Context()
	if request.GetBody != nil {
		// Copies of it are sent, and whoever takes a request closes its body.
		defer request.Body.Close()
	}
	if key, ok := ctx.Value(contextKey{}).(string); ok {
		request = request.Clone(ctx)
		request.Header.Set(keyHeader, key)
	}
	for attempt := 1; ; attempt++ {
		again, err := copyOf(request)
		if err != nil {
			return nil, err
		}
		response, err := c.doer().Do(again)
		wait, ok := c.wait(request, response, err, attempt)
		if !ok {
			return response, err
		}
		if response != nil {
			_ = response.Body.Close()
		}
		if err := sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

func (c *Client) doer() Doer {
	if c.Doer == nil {
		return http.DefaultClient
	}
	return c.Doer
}

// copyOf returns the request with a body of its own, where it can be read again.
func copyOf(request *http.Request) (*http.Request, error) {
	if request.GetBody == nil {
		return request, nil
	}
	body, err := request.GetBody()
	if err != nil {
		return nil, err
	}
	again := request.Clone(request.Context())
	again.Body = body
	return again, nil
}

// wait returns how long to wait for the next attempt, and false if there is to be none.
func (c *Client) wait(request *http.Request, response *http.Response, err error, attempt int) (time.Duration, bool) {
	attempts, longest := c.Attempts, c.LongestWait
	if attempts == 0 {
		attempts = 5
	}
	if longest == 0 {
		longest = 30 * time.Second
	}
	readAgain := request.Body == nil || request.Body == http.NoBody || request.GetBody != nil
	if attempt >= attempts || !readAgain || request.Context().Err() != nil {
		return 0, false
	}
	var told time.Duration
	switch {
	case err != nil && request.Method != http.MethodGet && request.Header.Get(keyHeader) == "":
		// It may have run, and would run and be charged once more.
		return 0, false
	case err != nil:
		told = 250 * time.Millisecond << min(attempt-1, 6)
	default:
		refusal := refusalIn(response)
		if refusal == nil || !refusal.Temporary() {
			return 0, false
		}
		told = refusal.RetryAfter
		if told == 0 {
			told = time.Second
		}
	}
	if told > longest {
		return 0, false
	}
	// Never earlier than told, and not all clients at one moment.
	told += time.Duration((0.05 + 0.2*rand.Float64()) * float64(told)) //nolint:gosec // jitter need not be secret
	deadline, ok := request.Context().Deadline()
	return told, !ok || time.Until(deadline) > told
}

// refusalIn returns the refusal in the answer, or nil, and leaves the body to be read from its start.
func refusalIn(response *http.Response) *ratelimitclient.Refusal {
	media, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if media != "application/json" && media != "application/graphql-response+json" {
		return nil
	}
	// Who reads on meets the error once more.
	start, _ := io.ReadAll(io.LimitReader(response.Body, longestRefusal))
	response.Body = &body{Reader: io.MultiReader(bytes.NewReader(start), response.Body), Closer: response.Body}
	read, _ := ratelimitclient.FromResponse(start)
	return read.Refusal
}

// body is a body of which something was read.
type body struct {
	io.Reader
	io.Closer
}

func sleep(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
