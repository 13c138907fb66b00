package faults_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

const (
	// pause is that of each client between its operations.
	pause = 10 * time.Millisecond
	// patience is for what has to come about however busy the machine is.
	patience = time.Minute
	// operation costs as much as it can at most cost: nothing is given back.
	operation = `{"query":"{ me { id } }"}`
)

// seen is what the clients of one tenant saw, by the outcome that it can only have come from.
type seen struct {
	outcomes map[ratelimit.Outcome]int64
	// took is how long each answer took.
	took []time.Duration
}

func newSeen() *seen { return &seen{outcomes: map[ratelimit.Outcome]int64{}} }

// slowest returns how long the slowest took of so large a share of the answers.
func (s *seen) slowest(share float64) time.Duration {
	if len(s.took) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s.took))
	return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
}

func (s *seen) decisions() int64 {
	n := int64(0)
	for _, of := range s.outcomes {
		n += of
	}
	return n
}

// admitted is how many operations ran.
func (s *seen) admitted() int64 {
	return s.outcomes[ratelimit.OutcomeAdmitted] + s.outcomes[ratelimit.OutcomeUnjudged] + s.outcomes[ratelimit.OutcomeAdmittedLocally]
}

// load are clients of a fleet: one of each tenant at each replica.
type load struct {
	end func()

	mu   sync.Mutex
	seen map[string]*seen
	errs []error
}

// startLoad lets the clients ask until the load is ended.
func startLoad(t *testing.T, f *fleet, tenants []string) *load {
	t.Helper()
	l := &load{seen: map[string]*seen{}}
	ctx, cancel := context.WithCancel(context.Background())
	for _, tenant := range tenants {
		l.seen[tenant] = newSeen()
	}
	var clients sync.WaitGroup
	for _, tenant := range tenants {
		for _, handler := range f.handlers {
			clients.Go(func() {
				ticks := time.NewTicker(pause)
				defer ticks.Stop()
				for {
					l.ask(handler, tenant)
					select {
					case <-ticks.C:
					case <-ctx.Done():
						return
					}
				}
			})
		}
	}
	l.end = sync.OnceFunc(func() { cancel(); clients.Wait() })
	t.Cleanup(l.end)
	return l
}

// ask sends one operation and counts what came of it.
func (l *load) ask(handler http.Handler, tenant string) {
	request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(operation))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Tenant", tenant)
	recorder := httptest.NewRecorder()
	start := time.Now()
	handler.ServeHTTP(recorder, request)
	took := time.Since(start)
	outcome, err := outcomeOf(recorder.Body.Bytes())
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.errs = append(l.errs, err)
		return
	}
	s := l.seen[tenant]
	s.outcomes[outcome]++
	s.took = append(s.took, took)
}

// outcomeOf returns the outcome that an answer tells its client.
func outcomeOf(body []byte) (ratelimit.Outcome, error) {
	answer, err := ratelimitclient.FromResponse(body)
	if err != nil || answer.RateLimit == nil {
		return "", fmt.Errorf("an answer without a rate limit: %w: %s", err, body)
	}
	away, open := answer.RateLimit.StoreUnavailable, answer.RateLimit.Tier == "open"
	switch {
	case answer.Refusal == nil:
		return pick(away, pick(open, ratelimit.OutcomeUnjudged, ratelimit.OutcomeAdmittedLocally), ratelimit.OutcomeAdmitted), nil
	case answer.Refusal.Code == ratelimitclient.CodeRateLimited:
		return pick(away, ratelimit.OutcomeLimitedLocally, ratelimit.OutcomeLimited), nil
	case answer.Refusal.Code == ratelimitclient.CodeOverloaded:
		return ratelimit.OutcomeOverloaded, nil
	case answer.Refusal.Code == ratelimitclient.CodeUnavailable:
		return ratelimit.OutcomeUnavailable, nil
	default:
		return "", fmt.Errorf("an unexpected refusal: %s", body)
	}
}

func pick(condition bool, yes, no ratelimit.Outcome) ratelimit.Outcome {
	if condition {
		return yes
	}
	return no
}

// turn returns what the clients have seen so far and begins anew.
func (l *load) turn() map[string]*seen {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.seen
	l.seen = map[string]*seen{}
	for tenant := range was {
		l.seen[tenant] = newSeen()
	}
	return was
}

// around is how many operations of each tenant the store admits, and how many it refuses, before a fault and
// again after it.
const around = 10

// waitAround waits until the store has admitted and has refused each tenant so many more times.
func (l *load) waitAround(t *testing.T) {
	t.Helper()
	outcomes := []ratelimit.Outcome{ratelimit.OutcomeAdmitted, ratelimit.OutcomeLimited}
	was := map[string]map[ratelimit.Outcome]int64{}
	l.mu.Lock()
	for tenant, s := range l.seen {
		was[tenant] = maps.Clone(s.outcomes)
	}
	l.mu.Unlock()
	require.Eventually(t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		for tenant, s := range l.seen {
			for _, outcome := range outcomes {
				if s.outcomes[outcome] < was[tenant][outcome]+around {
					return false
				}
			}
		}
		return true
	}, patience, 5*time.Millisecond)
}

// away is how many operations were decided without the store.
func (s *seen) away() int64 {
	return s.decisions() - s.outcomes[ratelimit.OutcomeAdmitted] - s.outcomes[ratelimit.OutcomeLimited]
}

// waitAway waits until each of the tenants has noticed that the store is away.
func (l *load) waitAway(t *testing.T, tenants ...string) {
	t.Helper()
	require.Eventually(t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, tenant := range tenants {
			if l.seen[tenant].away() == 0 {
				return false
			}
		}
		return true
	}, patience, time.Millisecond)
}

// waitSettled waits, after the end of the load, until the store has been told all that was admitted without it.
func (l *load) waitSettled(t *testing.T, f *fleet, admin redis.UniversalClient) {
	t.Helper()
	for tenant, s := range l.seen {
		tier, _, _ := strings.Cut(tenant, "-")
		if tier != "local" && tier != "bounded" {
			continue
		}
		price := f.told[tier].price
		require.Eventually(t, func() bool {
			return f.knows(t, admin, tenant).spent >= price*s.admitted()
		}, patience, 10*time.Millisecond, "what was admitted locally is settled")
	}
}

// last keeps a fault up for a while under load.
func last(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
}
