package ratelimit

import (
	"cmp"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/claims"
)

// IdempotencyConfig configures idempotency keys. The zero value is the default in each field.
// docs/guide/idempotency.md says what the choices mean.
type IdempotencyConfig struct {
	// Keys says what is done with keys. Zero means [KeysAccepted].
	Keys KeyUse
	// Headers are the headers that may carry the key, at most 8. A request that has several of them has
	// to give the same key in each. Nil means Idempotency-Key. An operation may carry its key as extensions.idempotencyKey
	// as well, and has to on a WebSocket: the headers of the upgrade are the same for all its operations, and are not read.
	Headers []string
	// ReuseAsNew lets one key be sent with several operations, as a gateway does that passes the key of
	// its client on to several requests of its own: each operation is charged and replayed by itself. By
	// default the second one under a key is refused with [ratelimitclient.CodeKeyReused]. To change it forgets the keys
	// that are known: an operation that is repeated across the change runs again.
	ReuseAsNew bool
	// RefuseAbandoned refuses to run a mutation again whose attempt was abandoned, because its server died
	// or lost the store, with [ratelimitclient.CodeOutcomeUnknown]: its effect happens at most once. By default the next
	// attempt runs when the lease has run out, uncharged: the effect happens at least once.
	RefuseAbandoned bool
	// MutationTTL is how long a mutation's key is remembered from its charge, and its answer with it: from the lease to 30
	// days. Zero means [idempotency.DefaultMutationTTL].
	MutationTTL time.Duration
	// QueryTTL is how long a query's key is remembered, and its answer with it, in the same bounds. Zero means
	// [idempotency.DefaultQueryTTL].
	QueryTTL time.Duration
	// Lease is how long an attempt is believed to be running without a sign of life, at least a second;
	// it renews its lease three times as often. Zero means [idempotency.DefaultLease].
	Lease time.Duration
	// MaxAnswer is the size in bytes of the largest answer that is stored, as the Codec leaves it. A
	// repeat of a mutation with a larger one is refused with [ratelimitclient.CodeAnswerUnavailable], and that of a
	// query runs again at its price. Zero means [idempotency.DefaultMaxAnswer], [None] stores none. At most 16 MiB.
	MaxAnswer int
	// MaxAnswers is how many bytes of answers are stored of a tenant within the life of their records: MutationTTL
	// for mutations, and QueryTTL for queries, which are counted by themselves. Each instance counts what it stores,
	// up to its share by the number of instances that it knows to share the store. Beyond it answers are not stored.
	// An enforced limit of the policy that counts [bucket.AnswerBytes] holds in its place. Zero means
	// [idempotency.DefaultMaxAnswers], [None] means no bound.
	MaxAnswers int
	// Codec compresses or encrypts answers before they are stored. It is not given those of more than 64
	// times MaxAnswer. All replicas need the same; one without it refuses the replay. Nil stores them as JSON.
	Codec idempotency.Codec
	// Answers keeps the answers in another place, such as bucket.NewRedisAnswers; the record of the key
	// holds only a digest. An answer is there before the record says so, and before the client gets it.
	// Nil keeps them in the records.
	Answers idempotency.AnswerStore
	// AdmitUnclaimed lets a keyed mutation run while the store is away and its limits admit it. By
	// default it is refused, because nobody can tell whether it is a repeat.
	AdmitUnclaimed bool
}

// KeyUse says what is done with idempotency keys.
type KeyUse uint8

const (
	// KeysAccepted honours keys that are sent.
	KeysAccepted KeyUse = iota
	// KeysRequired refuses mutations without a key besides, with [ratelimitclient.CodeKeyInvalid]. Those of anonymous
	// subjects and those with uploads, which cannot have one, run all the same.
	KeysRequired
	// KeysIgnored ignores all keys.
	KeysIgnored
)

// The bounds and defaults of an [IdempotencyConfig].
const (
	defaultKeyHeader = "Idempotency-Key"
	maxKeyHeaders    = 8
	minLease         = time.Second
	maxKeyTTL        = 30 * 24 * time.Hour
	// largestMaxAnswer is such that the product with claims.MaxCodecRatio is an int of any machine.
	largestMaxAnswer = 16 << 20
)

func (c IdempotencyConfig) withDefaults() IdempotencyConfig {
	names := c.Headers
	if names == nil {
		names = []string{defaultKeyHeader}
	}
	c.Headers = make([]string, len(names))
	for i, name := range names {
		c.Headers[i] = http.CanonicalHeaderKey(name)
	}
	c.MutationTTL = cmp.Or(c.MutationTTL, idempotency.DefaultMutationTTL)
	c.QueryTTL = cmp.Or(c.QueryTTL, idempotency.DefaultQueryTTL)
	c.Lease = cmp.Or(c.Lease, idempotency.DefaultLease)
	c.MaxAnswer = cmp.Or(c.MaxAnswer, idempotency.DefaultMaxAnswer)
	c.MaxAnswers = cmp.Or(c.MaxAnswers, idempotency.DefaultMaxAnswers)
	return c
}

func (c *IdempotencyConfig) validate(fail failFunc) {
	within(fail, "Idempotency.Lease", c.Lease, minLease, maxKeyTTL)
	if n := len(c.Headers); n < 1 || n > maxKeyHeaders {
		fail("Idempotency.Headers are %d, want 1 to %d; KeysIgnored ignores all keys", n, maxKeyHeaders)
	}
	for _, name := range c.Headers {
		if !headerName(name) {
			fail("Idempotency.Headers has %.40q, which is not a name that a header can have", name)
		}
	}
	if c.Keys > KeysIgnored {
		fail("Idempotency.Keys is %d, which is none of the KeyUse constants", c.Keys)
	}
	countOrNone(fail, "Idempotency.MaxAnswers", int64(c.MaxAnswers))
	orNone(fail, "Idempotency.MaxAnswer", c.MaxAnswer, largestMaxAnswer)
	// A lease that is wrong itself is no measure for the rest.
	shortest := max(c.Lease, minLease)
	within(fail, "Idempotency.MutationTTL", c.MutationTTL, shortest, maxKeyTTL)
	within(fail, "Idempotency.QueryTTL", c.QueryTTL, shortest, maxKeyTTL)
}

// claims is the configuration of what keeps keys.
func (c *IdempotencyConfig) claims(schema *ast.Schema, logger *slog.Logger) claims.Config {
	return claims.Config{
		Schema:  schema,
		Headers: c.Headers, Required: c.Keys == KeysRequired, ReuseAsNew: c.ReuseAsNew, RefuseAbandoned: c.RefuseAbandoned,
		MutationTTL: c.MutationTTL, QueryTTL: c.QueryTTL, Lease: c.Lease,
		MaxAnswer: max(0, c.MaxAnswer), Codec: c.Codec, Answers: c.Answers, Logger: logger,
	}
}

// headerName says whether the text is a token, as the name of a header has to be (RFC 9110, section
// 5.6.2).
func headerName(text string) bool {
	for i := range len(text) {
		c := text[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return text != ""
}
