package redisfeed

import (
	"bytes"
	"context"
	"crypto/sha1" //nolint:gosec // What scripts of Redis can compute.
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/internal/redisplace"
	"github.com/gqlgen-ratelimit/ratelimit/internal/subscription"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Config says where a [Feed] keeps the revision.
type Config struct {
	// Client is that of the Redis. It is required, and the caller's to close. redisclient.Open makes one whose calls
	// end when their deadline does.
	Client redis.UniversalClient
	// Namespace is that of bucket.RedisConfig. Empty means main.
	Namespace string
	// Name tells several policies of one namespace apart: 1 to 64 characters of A-Z a-z 0-9 _ . and -. Empty means main.
	Name string
	// MaxDocument is the size in bytes of the largest document that [Feed.Publish] takes, as in policy.Config: what it
	// takes, followers have to take too. Zero means [tiers.DefaultMaxDocument].
	MaxDocument int
}

// Feed is the policy.Feed and the policy.Publisher of a Redis. It is made by [New] and safe for concurrent use. Several followers may share one.
type Feed struct {
	client         redis.UniversalClient
	revision, hint string
	maxDocument    int
	// last is what was read last. One that is refused is asked for again and again, and not sent again.
	last atomic.Pointer[read]
	// scripted says that each question has to be the script's.
	scripted bool
	// compared counts the questions that may be answered by the marker, and hinted says that a hint has come since.
	compared atomic.Uint64
	hinted   atomic.Bool
}

// read is a revision whose document has its hash, and the stamp of everything else of it.
type read struct {
	stamp    string
	revision policy.Revision
}

// stampOf is what newest.lua compares: of number, hash, author, reason, time and signature.
func stampOf(parts []string) string {
	beside := []string{parts[0], parts[1], parts[3], parts[4], parts[5], parts[6]}
	sum := sha1.Sum([]byte(strings.Join(beside, "\x00"))) //nolint:gosec // It tells apart what one writer has written: nothing secret depends on it.
	return hex.EncodeToString(sum[:])
}

var (
	_ policy.Restorer  = (*Feed)(nil)
	_ policy.Publisher = (*Feed)(nil)
)

// maxField is how many bytes a part of a revision has besides the document.
const maxField = 1024

//go:embed newest.lua
var newestSource string

var newestScript = redis.NewScript(newestSource)

// New returns the feed of a Redis. It does not connect. The error has everything that is wrong with the configuration.
func New(cfg Config) (*Feed, error) {
	place := redisplace.Place{Client: cfg.Client, Namespace: cfg.Namespace}
	errs := []error{place.Complete("redisfeed")}
	key, err := keyOf(&place, cfg.Name)
	errs = append(errs, err)
	if cfg.MaxDocument < 0 || cfg.MaxDocument > tiers.MaxDocument {
		errs = append(errs, fmt.Errorf("redisfeed: Config.MaxDocument is %d: write at most %d, or 0 for %d",
			cfg.MaxDocument, tiers.MaxDocument, tiers.DefaultMaxDocument))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &Feed{
		maxDocument: cfg.MaxDocument, client: cfg.Client, scripted: readsReplicas(cfg.Client), revision: key, hint: key + ":hint",
	}, nil
}

// keyOf is the key of the revision:
//
//	rl:NAMESPACE:policy:{NAME}
//
// The channel of hints is rl:NAMESPACE:policy:{NAME}:hint.
func keyOf(place *redisplace.Place, name string) (string, error) {
	return place.Named("redisfeed", "policy", name)
}

// String returns the key of the revision.
func (f *Feed) String() string { return f.revision }

// Newest implements policy.Feed. It asks the master, in one call if the follower has the newest revision, else in two at most.
func (f *Feed) Newest(ctx context.Context, have policy.Head) (*policy.Revision, error) {
	ctx, cancel := redisplace.Bounded(ctx)
	defer cancel()
	if same, err := f.compare(ctx, have); same || err != nil {
		return nil, err
	}
	last := f.last.Load()
	if last == nil {
		last = &read{}
	}
	reply, err := newestScript.Run(ctx, f.client, []string{f.revision},
		have.Number, have.Hash.String(), tiers.MaxDocument, maxField, last.stamp).StringSlice()
	if err != nil {
		// The script was to say what no marker says, because of a hint perhaps: it has to say so yet.
		f.hinted.Store(true)
		return nil, fmt.Errorf("redisfeed: %w", err)
	}
	const none, same, large, again, whole = 0, 1, 2, 3, 7
	switch len(reply) {
	case none:
		return nil, policy.ErrEmpty
	case same:
		f.last.Store(nil)
		return nil, nil
	case large:
		return nil, malformed(reply, errors.New("the document, or what stands beside it, is larger than what fits"))
	case again:
		r := last.revision
		r.Document, r.Signature = bytes.Clone(r.Document), bytes.Clone(r.Signature)
		return &r, nil
	case whole:
		r, err := decode(reply)
		if err != nil {
			return nil, err
		}
		// What has not its hash may be mended without another word beside it.
		if policy.HashOf(r.Document) == r.Hash {
			kept := *r
			kept.Document, kept.Signature = bytes.Clone(r.Document), bytes.Clone(r.Signature)
			f.last.Store(&read{stampOf(reply), kept})
		}
		return r, nil
	default:
		return nil, fmt.Errorf("redisfeed: a reply of %d parts", len(reply))
	}
}

// decode reads number, hash, document, author, reason, time and signature. What a follower checks is not checked here.
func decode(parts []string) (*policy.Revision, error) {
	number, err := strconv.ParseUint(parts[0], 10, 64)
	if err != nil {
		return nil, malformed(parts, errors.New("its number is none"))
	}
	r := &policy.Revision{Number: number, Document: []byte(parts[2]), Author: parts[3], Reason: parts[4]}
	if err := r.Hash.UnmarshalText([]byte(parts[1])); err != nil {
		return nil, malformed(parts, err)
	}
	if parts[5] != "" && parts[5] != "0" {
		ms, err := strconv.ParseInt(parts[5], 10, 64)
		if err != nil {
			return nil, malformed(parts, errors.New("its time is none"))
		}
		r.Published = time.UnixMilli(ms).UTC()
	}
	if parts[6] != "" {
		r.Signature = []byte(parts[6])
	}
	return r, nil
}

// malformed is the refusal of what is no revision.
func malformed(parts []string, err error) error {
	refused := &policy.RefusedError{Reason: policy.ReasonMalformed, Err: err}
	refused.Revision.Number, _ = strconv.ParseUint(parts[0], 10, 64)
	// Of a hash that is none there is nothing to say.
	_ = refused.Revision.Hash.UnmarshalText([]byte(parts[1]))
	return refused
}

// Hints implements policy.Feed: it subscribes, and wakes at each message. A connection that has broken without a word is noticed
// within some seconds.
func (f *Feed) Hints(ctx context.Context, wake func()) error {
	hinted := func() {
		f.hinted.Store(true)
		wake()
	}
	if err := subscription.Listen(ctx, f.client, f.hint, hinted); err != nil {
		return fmt.Errorf("redisfeed: %w", err)
	}
	return nil
}

// ACLRules returns the least rights in Redis with which everything in this package works, as rules for ACL SETUSER that are
// added to those of bucket.ACLRules. Empty names mean main. The error is that of names which [New] refuses.
func ACLRules(namespace, name string) ([]string, error) {
	place := redisplace.Place{Namespace: namespace}
	wrong := place.CompleteNamespace("redisfeed")
	key, err := keyOf(&place, name)
	if err := errors.Join(wrong, err); err != nil {
		return nil, err
	}
	return redisplace.Rules([]string{"~" + key, "&" + key + ":hint"},
		"evalsha", "eval", "ping", "subscribe", "unsubscribe", "publish", "hexists", "hmget", "hstrlen", "hset", "del"), nil
}
