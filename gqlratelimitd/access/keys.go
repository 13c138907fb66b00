package access

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
)

// algorithms are those with which an issuer may sign: public keys only, so that nobody can sign with what everybody can read.
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.ES256, jose.ES384, jose.ES512, jose.PS256, jose.PS384, jose.PS512, jose.EdDSA,
}

// algorithmNames returns them as the verifier wants them.
func algorithmNames() []string {
	names := make([]string, len(algorithms))
	for i, algorithm := range algorithms {
		names[i] = string(algorithm)
	}
	return names
}

// Bounds of what an issuer is asked for.
const (
	// fetchEvery is how often keys are fetched at most: somebody who sends tokens of unknown keys makes no more requests.
	fetchEvery = 10 * time.Second
	// fetchTimeout is how long that takes at most.
	fetchTimeout = 3 * time.Second
	// keysFresh is for how long keys hold without being fetched again: as long as that a key which the issuer has withdrawn still
	// signs. Where they cannot be fetched then, that is tried again after keysRetry.
	keysFresh = 15 * time.Minute
	keysRetry = time.Minute
	// keysStale is for how long they hold while the issuer does not answer: it is away when something is wrong, and then people have
	// to come in.
	keysStale = 24 * time.Hour
	// maxAnswer is how many bytes of an answer are read.
	maxAnswer = 1 << 20
	// maxKeys is how many keys an issuer has at most.
	maxKeys = 100
)

// keySet has the keys of an issuer. The one of package oidc fetches them for each token of an unknown key, and keeps those that were
// withdrawn. It is safe for concurrent use.
type keySet struct {
	issuer string
	client *http.Client
	now    func() time.Time
	// ctx ends with close, which waits for those that are running.
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu sync.Mutex
	// keys were fetched at a time, the last time that this was tried, and err is why it failed then.
	keys           []jose.JSONWebKey
	fetched, tried time.Time
	err            error
	// fetching is closed when the fetch under way has ended. Nil: none is.
	fetching chan struct{}
}

var _ oidc.KeySet = (*keySet)(nil)

func newKeySet(issuer string, client *http.Client, now func() time.Time) *keySet {
	bounded := &http.Client{Timeout: fetchTimeout}
	if client != nil {
		*bounded = *client
	}
	if bounded.Transport == nil {
		bounded.Transport = http.DefaultTransport
	}
	bounded.Transport = boundedTransport{bounded.Transport}
	ctx, cancel := context.WithCancel(context.Background())
	return &keySet{issuer: issuer, client: bounded, now: now, ctx: ctx, cancel: cancel, err: errNotAsked}
}

// boundedTransport makes requests to secure addresses only, also after a redirect, and cuts their answers.
type boundedTransport struct{ next http.RoundTripper }

var errInsecure = errors.New("the issuer wants its keys to be fetched without https")

// RoundTrip makes a request.
func (b boundedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !secure(r.URL.String()) {
		return nil, errInsecure
	}
	answer, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answer.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(answer.Body, maxAnswer), answer.Body}
	return answer, nil
}

var errNoKey = errors.New("no key of the issuer has signed the token")

// VerifySignature implements oidc.KeySet.
func (s *keySet) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	signed, err := jose.ParseSigned(token, algorithms)
	if err != nil || len(signed.Signatures) != 1 {
		return nil, errNoKey
	}
	id := signed.Signatures[0].Header.KeyID
	for _, again := range []bool{false, true} {
		keys, err := s.with(ctx, again)
		if err != nil {
			return nil, err
		}
		found := false
		for i := range keys {
			if id != "" && keys[i].KeyID != id {
				continue
			}
			found = true
			if payload, err := signed.Verify(&keys[i]); err == nil {
				return payload, nil
			}
		}
		// Where the key is known, other keys would say nothing else.
		if found && id != "" {
			break
		}
	}
	return nil, errNoKey
}

// errNotAsked is why there are no keys before they were fetched.
var errNotAsked = errors.New("access: the issuer was not asked for its keys yet")

// away returns why there are no keys, or nil if there are.
func (s *keySet) away() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.usable(s.now()) {
		return nil
	}
	return s.err
}

// usable says whether there are keys that hold. The lock is held.
func (s *keySet) usable(now time.Time) bool {
	return !s.fetched.IsZero() && now.Sub(s.fetched) < keysStale
}

// due says whether the keys are to be fetched: there are none, they are old, or the token is of another. The lock is held.
func (s *keySet) due(now time.Time, another bool) bool {
	if another || !s.usable(now) {
		return s.tried.IsZero() || now.Sub(s.tried) >= fetchEvery
	}
	return now.Sub(s.fetched) >= keysFresh && now.Sub(s.tried) >= keysRetry
}

// with returns the keys, and fetches them before where that is due, once for all who wait.
func (s *keySet) with(ctx context.Context, another bool) ([]jose.JSONWebKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if s.fetching == nil && s.due(now, another) && s.ctx.Err() == nil {
		s.fetching, s.tried = make(chan struct{}), now
		s.running.Add(1)
		go s.fetch(s.fetching) //nolint:contextcheck // the keys are for all who wait, whatever becomes of who asked first
	}
	if wait := s.fetching; wait != nil {
		s.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
		}
		s.mu.Lock()
	}
	if !s.usable(now) {
		return nil, s.err
	}
	return s.keys, nil
}

// fetch fetches the keys. Its goroutine ends within fetchTimeout, and with close.
func (s *keySet) fetch(done chan struct{}) {
	defer s.running.Done()
	ctx, cancel := context.WithTimeout(s.ctx, fetchTimeout)
	defer cancel()
	keys, err := s.ask(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
	if err == nil {
		s.keys, s.fetched = keys, s.now()
	}
	s.fetching = nil
	close(done)
}

// close ends what is under way, and waits for it.
func (s *keySet) close() {
	s.mu.Lock()
	s.cancel()
	s.mu.Unlock()
	s.running.Wait()
}

// ask asks the issuer where its keys are, and for them. An error may say what the issuer has answered; it is for the log, and short.
func (s *keySet) ask(ctx context.Context) ([]jose.JSONWebKey, error) {
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, s.client), s.issuer)
	if err != nil {
		return nil, fmt.Errorf("access: the issuer %s: %s", s.issuer, brief(err))
	}
	var where struct {
		Keys string `json:"jwks_uri"`
	}
	if err := provider.Claims(&where); err != nil || where.Keys == "" {
		return nil, fmt.Errorf("access: the issuer %s does not say where its keys are", s.issuer)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, where.Keys, nil)
	if err != nil {
		return nil, fmt.Errorf("access: the issuer %s: %s", s.issuer, brief(err))
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("access: the keys of the issuer %s: %s", s.issuer, brief(err))
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("access: the keys of the issuer %s: status %d", s.issuer, answer.StatusCode)
	}
	var set jose.JSONWebKeySet
	if err := json.NewDecoder(answer.Body).Decode(&set); err != nil {
		return nil, fmt.Errorf("access: the keys of the issuer %s: %s", s.issuer, brief(err))
	}
	keys := make([]jose.JSONWebKey, 0, len(set.Keys))
	for i := range set.Keys {
		if key := set.Keys[i].Public(); key.Valid() && key.Use != "enc" {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 || len(keys) > maxKeys {
		return nil, fmt.Errorf("access: the issuer %s has %d keys that sign, want 1 to %d", s.issuer, len(keys), maxKeys)
	}
	return keys, nil
}

// brief returns the beginning of an error.
func brief(err error) string {
	const most = 200
	text := err.Error()
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
