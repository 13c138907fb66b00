package crashtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// price is what the mutation costs.
const price = 14

// outcome is how an operation ended for its client.
type outcome string

const (
	answered outcome = "answered"
	unknown  outcome = "unknown"
	// wrong is followed by what must not be.
	wrong outcome = "wrong: "
)

// client sends operations one after the other, each under a key of its own, until it is told how each
// ended.
type client struct {
	lane  *lane
	count *counts
	http  *http.Client
}

func newClientOf(l *lane, count *counts) *client {
	return &client{lane: l, count: count, http: &http.Client{Timeout: patience, Transport: &http.Transport{}}}
}

// pause is between two attempts.
const pause = 20 * time.Millisecond

// operate sends one operation under one key until it has ended, and then once more until the answer is
// replayed.
func (c *client) operate(name string) outcome {
	first, how := c.until(name, false)
	if how != answered {
		return how
	}
	again, how := c.until(name, true)
	if how != answered || again != first {
		return wrong + outcome(fmt.Sprintf("%s as %s was answered %s", how, first, again))
	}
	c.count.answered.Add(1)
	c.count.replayed.Add(1)
	return answered
}

// reply is what the client looks at.
type reply struct {
	Data       json.RawMessage
	Errors     []struct{ Extensions struct{ Code string } }
	Extensions struct {
		RateLimit struct {
			Replayed bool
			Charged  int64
		}
	}
}

// until repeats an attempt until it is told how the operation ended.
func (c *client) until(name string, ended bool) (data string, how outcome) {
	for deadline := time.Now().Add(10 * patience); time.Now().Before(deadline); <-time.After(pause) {
		status, body, err := c.attempt(name)
		if err != nil {
			c.count.broken.Add(1)
			continue
		}
		var got reply
		if err := json.Unmarshal(body, &got); err != nil {
			return "", wrong + outcome(fmt.Sprintf("%d %s", status, body))
		}
		limits := got.Extensions.RateLimit
		switch {
		case status == http.StatusOK && len(got.Errors) == 0:
			// An answer that got lost on its way is replayed to an attempt that does not expect it.
			if ended && !limits.Replayed || limits.Replayed && limits.Charged > 0 {
				return "", wrong + outcome(fmt.Sprintf("the answer was not replayed: %s", body))
			}
			return string(got.Data), answered
		case len(got.Errors) == 1 && got.Errors[0].Extensions.Code == ratelimitclient.CodeOutcomeUnknown && !ended:
			c.count.unknown.Add(1)
			return "", unknown
		case len(got.Errors) == 1 && got.Errors[0].Extensions.Code == ratelimitclient.CodeInFlight && !ended:
			c.count.inFlight.Add(1)
		default:
			return "", wrong + outcome(fmt.Sprintf("%d %s", status, body))
		}
	}
	return "", wrong + "it never ended"
}

func (c *client) attempt(name string) (status int, body []byte, err error) {
	query := fmt.Sprintf(`{"query": "mutation { createUser(input: {name: \"%s\"}) { id name } }"}`, name)
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, *c.lane.url.Load(), strings.NewReader(query))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", name)
	request.Header.Set("X-User", name)
	response, err := c.http.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err = io.ReadAll(response.Body)
	return response.StatusCode, body, err
}
