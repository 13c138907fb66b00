package web_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/web"
)

// tokenStore counts what it is asked for, and may hold up who asks.
type tokenStore struct {
	access.TokenStore

	asked atomic.Int64
	// held is closed when nobody is held up any more. Nil holds up nobody.
	held atomic.Pointer[chan struct{}]
}

// Token implements access.TokenStore.
func (s *tokenStore) Token(ctx context.Context, id string) (*access.Token, error) {
	s.asked.Add(1)
	if held := s.held.Load(); held != nil {
		select {
		case <-*held:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return s.TokenStore.Token(ctx, id)
}

// wrongToken is a token of another control plane.
func wrongToken() string {
	_, text := access.TokenKey{}.NewBootstrapToken(time.Now())
	return text
}

// strange asks from an address, and returns the status.
func (s *scene) strange(ctx context.Context, address, token string) int {
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, revisions, http.NoBody)
	request.RemoteAddr = address + ":1234"
	request.Header.Set("Authorization", "Bearer "+token)
	recorder := httptest.NewRecorder()
	s.web.ServeHTTP(recorder, request)
	return recorder.Code
}

// hold has a database that does not answer, until the function is called.
func (s *scene) hold() (release func()) {
	held := make(chan struct{})
	s.tokens.held.Store(&held)
	return func() { close(held) }
}

// crowd asks at once, so often with each token, while the database does not answer. So many of these wait, the others were answered, and the statuses of those
// who wait come later.
func (s *scene) crowd(tokens []string, each, waiting int) (statuses chan int) {
	s.Helper()
	statuses = make(chan int, len(tokens)*each)
	for i, token := range tokens {
		for range each {
			go func() { statuses <- s.strange(s.Context(), fmt.Sprintf("192.0.2.%d", i), token) }()
		}
	}
	for range len(tokens)*each - waiting {
		require.Equal(s, http.StatusTooManyRequests, <-statuses)
	}
	require.Eventually(s, func() bool { return s.web.LookingUp() == waiting }, patient, soon)
	return statuses
}

// served requires that so many are answered, of whom the database has kept some too long on a slow machine.
func (s *scene) served(statuses chan int, n int) {
	s.Helper()
	for range n {
		require.Contains(s, []int{http.StatusOK, http.StatusServiceUnavailable}, <-statuses)
	}
	require.Zero(s, s.web.LookingUp())
}

func TestStrangersWaitForNoDatabase(t *testing.T) {
	t.Parallel()
	s := newScene(t, theDefaults).start()
	s.stop()
	asked := s.tokens.asked.Load()
	release := s.hold()
	wrong, statuses := wrongToken(), map[int]int{}
	for i := range 8000 {
		statuses[s.strange(t.Context(), fmt.Sprintf("192.0.2.%d", i%4), wrong)]++
	}
	require.Equal(t, map[int]int{401: 4 * 1200, 429: 8000 - 4*1200}, statuses)
	require.Equal(t, asked, s.tokens.asked.Load())
	release()
	s.want(http.StatusOK, s.ask(http.MethodGet, revisions, s.admin, nil, ""))
}

func TestOneTokenHasAPartOfThePlacesToWait(t *testing.T) {
	t.Parallel()
	s := newScene(t, plenty).start()
	_, other := s.issue(s.admin, "other", nil, access.Viewer)
	release := s.hold()
	statuses := s.crowd([]string{other}, 1000, web.TokenLookups)
	others := s.crowd([]string{s.admin}, 1, web.TokenLookups+1)
	release()
	status := <-others
	s.served(statuses, web.TokenLookups)
	require.Contains(t, []int{http.StatusOK, http.StatusServiceUnavailable}, status)
}

func TestABlockIsLookedUpWhileAllPlacesAreTaken(t *testing.T) {
	t.Parallel()
	s := newScene(t, plenty).start().publish()
	tokens := make([]string, web.Lookups/web.TokenLookups+1)
	for i := range tokens {
		_, tokens[i] = s.issue(s.admin, "program", nil, access.Viewer)
	}
	release := s.hold()
	statuses := s.crowd(tokens, web.TokenLookups, web.Lookups)
	require.Equal(t, http.StatusTooManyRequests, s.strange(t.Context(), "192.0.2.99", s.admin))
	blocked := make(chan answer, 1)
	go func() { blocked <- s.ask(http.MethodPut, block, s.admin, first, blocks) }()
	require.Eventually(t, func() bool { return s.web.LookingUpInReserve(s.admin) == 1 }, patient, soon, "it is not refused")
	release()
	s.want(http.StatusOK, <-blocked)
	s.served(statuses, web.Lookups)
}

func TestWhoLeavesWhileItWaitsIsNoFailure(t *testing.T) {
	t.Parallel()
	s := newScene(t, plenty).start()
	release := s.hold()
	statuses := s.crowd([]string{s.admin}, 8, 8)
	s.logged.Store(0)
	leaving, leave := context.WithCancel(t.Context())
	left := make(chan struct{})
	go func() {
		defer close(left)
		s.strange(leaving, "192.0.2.9", s.admin)
	}()
	require.Eventually(t, func() bool { return s.web.LookingUp() == 9 }, patient, soon)
	leave()
	<-left
	require.Equal(t, 8, s.web.LookingUp())
	require.Zero(t, s.logged.Load())
	release()
	s.served(statuses, 8)
}
