package access

import (
	"context"
	"crypto/sha256"
	"net/http"
	"sync"
	"time"
)

const (
	// strangerLookups is how many tokens of strangers are asked for at once, and knownLookups how many that were good lately. Strangers may show as many
	// as they like, and hold up nobody who works.
	strangerLookups, knownLookups = 2, 4
	// knownTokens is how many tokens are remembered as good at most, and knownLife for how long at most after they were.
	knownTokens = 4096
	knownLife   = 10 * time.Minute
)

// lookups bound how the store of tokens is asked, and remember which tokens were good lately. It lets nobody in: each token is asked for each time.
type lookups struct {
	// strangers and lately are the lookups that are under way.
	strangers, lately chan struct{}

	mu sync.Mutex
	// good are actors by the hash of their tokens, and older those of the half of [knownLife] before.
	good, older map[[sha256.Size]byte]Actor
	// since is from when on good are.
	since time.Time
}

func newLookups() *lookups {
	return &lookups{
		strangers: make(chan struct{}, strangerLookups), lately: make(chan struct{}, knownLookups), good: map[[sha256.Size]byte]Actor{},
	}
}

// token asks for a token, when it is its turn.
func (l *lookups) token(ctx context.Context, tokens TokenStore, id string, known bool) (*Token, error) {
	turns := l.strangers
	if known {
		turns = l.lately
	}
	select {
	case turns <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-turns }()
	return tokens.Token(ctx, id)
}

// known returns whose token it was when it was good lately, and the zero value if it was not.
func (l *lookups) known(hash [sha256.Size]byte, now time.Time) Actor {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn(now)
	if actor, ok := l.good[hash]; ok {
		return actor
	}
	return l.older[hash]
}

// remember notes that a token was good.
func (l *lookups) remember(hash [sha256.Size]byte, actor Actor, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn(now)
	l.good[hash] = actor
}

// forget notes that a token is not good.
func (l *lookups) forget(hash [sha256.Size]byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.good, hash)
	delete(l.older, hash)
}

// turn drops the older ones when half of the life or of the places is over. The mutex is held.
func (l *lookups) turn(now time.Time) {
	over := now.Sub(l.since)
	if over < knownLife/2 && over >= 0 && len(l.good) < knownTokens/2 {
		return
	}
	l.older, l.good, l.since = l.good, map[[sha256.Size]byte]Actor{}, now
	if over >= knownLife || over < 0 {
		l.older = nil
	}
}

// Lookup reports whether the store of tokens is asked for a request, and who has shown the same token when it was good lately: the zero value if nobody
// has. It asks nothing and lets nobody in, and is for bounds on [Authenticator.Authenticate]: a token that was good lately waits for no stranger there, and
// how many may wait is for the caller to bound.
func (a *Authenticator) Lookup(r *http.Request) (was Actor, asks bool) {
	headers := r.Header.Values("Authorization")
	if len(headers) == 0 || a.cfg.Tokens == nil {
		return Actor{}, false
	}
	credential, ok := bearer(headers)
	if _, whole := tokenID(credential); !ok || !whole {
		return Actor{}, false
	}
	return a.lookups.known(sha256.Sum256([]byte(credential)), a.cfg.Now()), true
}
