package web_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/web"
)

// tokenStore counts what it is asked for, and may hold up who asks for a token that there is not.
type tokenStore struct {
	access.TokenStore

	asked atomic.Int64
	// held is closed when nobody is held up any more. Nil holds up nobody.
	held chan struct{}
}

// Token implements access.TokenStore.
func (s *tokenStore) Token(ctx context.Context, id string) (*access.Token, error) {
	s.asked.Add(1)
	token, err := s.TokenStore.Token(ctx, id)
	if token == nil && s.held != nil {
		select {
		case <-s.held:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return token, err
}

// wrongToken is whole, and nobody has issued it.
func wrongToken(t *testing.T) string {
	t.Helper()
	_, text := access.NewBootstrapToken(time.Now())
	return text
}

// strange asks from an address, and returns the status.
func (s *scene) strange(ctx context.Context, address, token string) int {
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/v1/ratelimit/revisions", http.NoBody)
	request.RemoteAddr = address + ":1234"
	request.Header.Set("Authorization", "Bearer "+token)
	recorder := httptest.NewRecorder()
	s.web.ServeHTTP(recorder, request)
	return recorder.Code
}

// strangers ask at once, n of them from so many addresses, and wait for a database that does not answer. Those who may not wait were answered.
func (s *scene) strangers(n, addresses, waiting int) (release func()) {
	s.Helper()
	s.tokens.held = make(chan struct{})
	wrong, statuses := wrongToken(s.T), make(chan int, n)
	for i := range n {
		go func() { statuses <- s.strange(s.Context(), fmt.Sprintf("192.0.2.%d", i%addresses), wrong) }()
	}
	for range n - waiting {
		require.Equal(s, http.StatusTooManyRequests, <-statuses)
	}
	for s.web.Unseen() < waiting {
		runtime.Gosched()
	}
	return func() {
		close(s.tokens.held)
		for range waiting {
			// On a slow machine their patience may have ended.
			require.Contains(s, []int{http.StatusUnauthorized, http.StatusServiceUnavailable}, <-statuses)
		}
	}
}

func TestAGoodTokenWaitsForNoStranger(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct{ strangers, addresses, waiting int }{
		"of many addresses": {8000, 200, web.Lookups},
		"of one address":    {1000, 1, web.SenderLookups},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, plenty).start().publish()
			release := s.strangers(of.strangers, of.addresses, of.waiting)
			require.Equal(t, http.StatusOK, s.strange(t.Context(), "192.0.2.0", s.admin))
			s.urgents(s.admin)
			release()
			require.Zero(t, s.web.Unseen())
		})
	}
}

func TestWhoLeavesWhileItWaitsIsNoFailure(t *testing.T) {
	t.Parallel()
	s := newScene(t, plenty).start()
	release := s.strangers(8, 8, 8)
	s.logged.Store(0)
	leaving, leave := context.WithCancel(t.Context())
	left, wrong := make(chan struct{}), wrongToken(t)
	go func() {
		defer close(left)
		s.strange(leaving, "192.0.2.9", wrong)
	}()
	for s.web.Unseen() < 9 {
		runtime.Gosched()
	}
	leave()
	<-left
	require.Equal(t, 8, s.web.Unseen())
	require.Zero(t, s.logged.Load())
	release()
}
