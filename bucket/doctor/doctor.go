package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
)

// defaultPatience is how long an examination takes at most.
const defaultPatience = 10 * time.Second

// callsInPatience is how many answers of one node may fail to come in an examination.
const callsInPatience = 10

// Config says what is to be examined. Client is required.
type Config struct {
	// Client is the client of the limiter. Its options are examined as they are. The servers are examined
	// through connections of the doctor's own, made with the same addresses and credentials, so that neither
	// the pool nor the breakers of the client notice. It stays the caller's to close.
	Client redis.UniversalClient
	// Namespace is that of [bucket.RedisConfig]. Empty means main.
	Namespace string
	// Timeout is that of [bucket.RedisConfig], to which answers are compared. Zero means
	// [bucket.DefaultTimeout].
	Timeout time.Duration
	// Patience is how long the examination may take in all; one answer may take a tenth of it. Zero means
	// ten seconds.
	Patience time.Duration
	// Clock is the time of this machine, to which that of the servers is compared. Nil means [time.Now].
	Clock func() time.Time
}

// callTimeout is how long a node may take for one answer.
func (c *Config) callTimeout() time.Duration { return c.Patience / callsInPatience }

// complete fills in the defaults. The error names everything that is wrong.
func (c Config) complete() (Config, error) {
	var errs []error
	if c.Client == nil {
		errs = append(errs, errors.New("doctor: Config.Client is nil; redisclient.Open makes one"))
	}
	c.Namespace = cmp.Or(c.Namespace, "main")
	c.Timeout = cmp.Or(c.Timeout, bucket.DefaultTimeout)
	c.Patience = cmp.Or(c.Patience, defaultPatience)
	if _, err := bucket.ACLRules(c.Namespace, false); err != nil {
		errs = append(errs, err)
	}
	if c.Timeout < time.Millisecond {
		errs = append(errs, fmt.Errorf("doctor: a Timeout of %v; at least 1ms fits, and 0 is the default", c.Timeout))
	}
	if c.Patience < time.Millisecond {
		errs = append(errs, fmt.Errorf("doctor: a Patience of %v; at least 1ms fits, and 0 is the default", c.Patience))
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	return c, errors.Join(errs...)
}

// Examine returns what is to be said about the client and the servers behind it: first about the client, and
// then node by node. Nothing means that all is well. What is wrong with Redis is a finding; an error means
// that the configuration is wrong. It is safe for concurrent use.
func Examine(ctx context.Context, config Config) ([]Finding, error) {
	config, err := config.complete()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, config.Patience)
	defer cancel()
	e := &examination{config: &config}
	e.add(Client(config.Client)...)
	e.breaker(ctx)
	e.servers(ctx)
	return e.result(), nil
}

// Client returns what is dangerous in the options of a client, without connecting.
func Client(client redis.UniversalClient) []Finding {
	var found []Finding
	for _, h := range redisclient.Hazards(client) {
		severity := Warning
		switch h.Code {
		case "deadline-ignored":
			severity = Error
		case "unknown-client":
			severity = Note
		}
		found = append(found, Finding{Severity: severity, Code: h.Code, Seen: h.Seen, Why: h.Why, Remedy: h.Remedy})
	}
	return found
}

// examination collects what several nodes at once have to say.
type examination struct {
	config *Config

	mu    sync.Mutex
	found []Finding
}

func (e *examination) add(found ...Finding) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.found = append(e.found, found...)
}

// result returns the findings, those of the client first and those of a node in the order of their discovery.
func (e *examination) result() []Finding {
	slices.SortStableFunc(e.found, func(a, b Finding) int { return cmp.Compare(a.Node, b.Node) })
	return e.found
}

// breaker asks the client itself, with one call.
func (e *examination) breaker(ctx context.Context) {
	if slices.ContainsFunc(e.found, func(f Finding) bool { return f.Code == "deadline-ignored" || f.Code == "unknown-client" }) {
		// The call could last, and that there is no breaker is the smaller evil.
		return
	}
	ctx, cancel := context.WithTimeout(ctx, e.config.callTimeout())
	defer cancel()
	if has, err := redisclient.HasBreaker(ctx, e.config.Client); err == nil && !has {
		e.add(Finding{
			Severity: Warning, Code: "no-breaker", Seen: "no breaker stands before the node that was asked",
			Why:    "each call into a store that is too slow costs a connection, and with TLS a handshake",
			Remedy: "use redisclient.Open, or redisclient.AddBreaker on a client of your own before its first call",
		})
	}
}
