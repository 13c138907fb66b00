package access_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
)

// TestKeysAreFetchedOnceInAWhileWhateverIsSent is the attack of who sends tokens of keys that there are not.
func TestKeysAreFetchedOnceInAWhileWhateverIsSent(t *testing.T) {
	t.Parallel()
	d, p, key := oidcDoor(t, nil)
	_, err := d.enter(p.token(t, key, nil))
	require.NoError(t, err)
	for i := range 100 {
		_, err := d.enter(p.token(t, newSigningKey(t, "k"+strings.Repeat("x", i)), nil))
		requireReason(t, access.ReasonUnknown, err)
	}
	require.EqualValues(t, 1, p.fetches.Load())
	d.now = noon.Add(10 * time.Second)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { _, _ = d.enter(p.token(t, newSigningKey(t, "k9"), nil)) })
	}
	wg.Wait()
	require.EqualValues(t, 2, p.fetches.Load())
}

func TestANewKeyIsFoundAndAWithdrawnOneIsForgotten(t *testing.T) {
	t.Parallel()
	d, p, old := oidcDoor(t, nil)
	_, err := d.enter(p.token(t, old, nil))
	require.NoError(t, err)
	next := newSigningKey(t, "k2")
	p.show(old, next)
	d.now = noon.Add(11 * time.Second)
	_, err = d.enter(p.token(t, next, nil))
	require.NoError(t, err)
	p.show(next)
	d.now = noon.Add(14 * time.Minute)
	_, err = d.enter(p.token(t, old, nil))
	require.NoError(t, err)
	d.now = noon.Add(16 * time.Minute)
	_, err = d.enter(p.token(t, old, nil))
	requireReason(t, access.ReasonUnknown, err)
}

func TestAnIssuerThatIsAwayKeepsNobodyOutWhoseKeyIsKnown(t *testing.T) {
	t.Parallel()
	d, p, key := oidcDoor(t, nil)
	p.fail(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	day := claims{"exp": noon.Add(48 * time.Hour).Unix()}
	for range 3 {
		_, err := d.enter(p.token(t, key, day))
		requireReason(t, access.ReasonUnavailable, err)
	}
	require.EqualValues(t, 1, p.fetches.Load(), "one question in ten seconds")
	require.Contains(t, d.log.String(), "status 502")
	p.show(key)
	d.now = d.now.Add(10 * time.Second)
	_, err := d.enter(p.token(t, key, day))
	require.NoError(t, err)
	p.fail(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	d.now = d.now.Add(23 * time.Hour)
	for range 3 {
		_, err = d.enter(p.token(t, key, day))
		require.NoError(t, err)
	}
	require.EqualValues(t, 3, p.fetches.Load(), "one question in a minute")
	d.now = d.now.Add(2 * time.Hour)
	_, err = d.enter(p.token(t, key, day))
	requireReason(t, access.ReasonUnavailable, err)
}

func TestWhatAnIssuerAnswersIsBounded(t *testing.T) {
	t.Parallel()
	for problem, answer := range map[string]http.HandlerFunc{
		"invalid character":    func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		"has 0 keys that sign": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"keys":[]}`)) },
		"has 0 keys": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"keys":[{"kty":"oct","k":"AAAA","kid":"k1"}]}`))
		},
		"without https": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://192.0.2.1/keys", http.StatusFound)
		},
		"10 redirects": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/keys", http.StatusFound) },
	} {
		d, p, key := oidcDoor(t, nil)
		p.fail(answer)
		_, err := d.enter(p.token(t, key, nil))
		requireReason(t, access.ReasonUnavailable, err)
		require.Contains(t, d.log.String(), problem)
		require.Less(t, d.log.Len(), 1000, problem)
	}
	for name, metadata := range map[string]any{"issuer": "https://other.example.org", "jwks_uri": "http://192.0.2.1/keys", "id_token_signing_alg_values_supported": 7} {
		d, p, key := oidcDoor(t, nil)
		p.metadata[name] = metadata
		_, err := d.enter(p.token(t, key, nil))
		requireReason(t, access.ReasonUnavailable, err)
	}
	d, p, key := oidcDoor(t, nil)
	p.metadata["jwks_uri"] = nil
	_, err := d.enter(p.token(t, key, nil))
	requireReason(t, access.ReasonUnavailable, err)
}

func TestAnAnswerWithoutEndIsCut(t *testing.T) {
	t.Parallel()
	d, p, key := oidcDoor(t, nil)
	written := make(chan int, 1)
	p.fail(func(w http.ResponseWriter, _ *http.Request) {
		n, spaces := 0, []byte(strings.Repeat(" ", 64<<10))
		for {
			more, err := w.Write(spaces)
			if n += more; err != nil {
				written <- n
				return
			}
		}
	})
	_, err := d.enter(p.token(t, key, nil))
	requireReason(t, access.ReasonUnavailable, err)
	require.Contains(t, d.log.String(), "EOF")
	// What a socket holds beyond the mebibyte that is read.
	require.Less(t, <-written, 32<<20)
}

func TestCloseEndsAQuestionThatIsUnderWay(t *testing.T) {
	t.Parallel()
	d, p, key := oidcDoor(t, nil)
	asked, over := make(chan struct{}), make(chan struct{})
	p.fail(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		select {
		case <-r.Context().Done():
		case <-over:
		}
	})
	defer close(over)
	done := make(chan error)
	go func() {
		_, err := d.enter(p.token(t, key, nil))
		done <- err
	}()
	<-asked
	d.Close()
	requireReason(t, access.ReasonUnavailable, <-done)
	_, err := d.enter(p.token(t, key, nil))
	requireReason(t, access.ReasonUnavailable, err)
}
