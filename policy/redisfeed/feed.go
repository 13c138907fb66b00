package redisfeed

import (
	"bytes"
	"cmp"
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

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
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
	cfg.Namespace, cfg.Name = cmp.Or(cfg.Namespace, "main"), cmp.Or(cfg.Name, "main")
	var errs []error
	if cfg.Client == nil {
		errs = append(errs, errors.New("redisfeed: Config.Client is nil: set the result of redisclient.Open"))
	}
	keys, err := keysOf(cfg.Namespace, cfg.Name)
	errs = append(errs, err)
	if cfg.MaxDocument < 0 || cfg.MaxDocument > tiers.MaxDocument {
		errs = append(errs, fmt.Errorf("redisfeed: Config.MaxDocument is %d: write at most %d, or 0 for %d",
			cfg.MaxDocument, tiers.MaxDocument, tiers.DefaultMaxDocument))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &Feed{
		maxDocument: cfg.MaxDocument, client: cfg.Client, scripted: readsReplicas(cfg.Client), revision: keys, hint: keys + ":hint",
	}, nil
}

// bounded gives a call a deadline, without which clients for budgets give it a tenth of a second. One that the caller has
// set holds if it is sooner.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, bucket.DefaultAdminTimeout)
}

// keysOf is the key of the revision:
//
//	rl:NAMESPACE:policy:{NAME}
//
// The channel of hints is rl:NAMESPACE:policy:{NAME}:hint.
func keysOf(namespace, name string) (string, error) {
	// A name is judged as a namespace is.
	_, err := bucket.ACLRules(namespace, false)
	if err != nil {
		err = fmt.Errorf("redisfeed: Config.Namespace: %w", err)
	}
	if _, wrong := bucket.ACLRules(name, false); wrong != nil {
		err = errors.Join(err, fmt.Errorf("redisfeed: Config.Name %.80q: 1 to 64 characters of A-Z a-z 0-9 _ . - fit", name))
	}
	return "rl:" + namespace + ":policy:{" + name + "}", err
}

// String returns the key of the revision.
func (f *Feed) String() string { return f.revision }

// Newest implements policy.Feed. It asks the master, in one call if the follower has the newest revision, else in two at most.
func (f *Feed) Newest(ctx context.Context, have policy.Head) (*policy.Revision, error) {
	ctx, cancel := bounded(ctx)
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
	keys, err := keysOf(cmp.Or(namespace, "main"), cmp.Or(name, "main"))
	if err != nil {
		return nil, err
	}
	rules := []string{"~" + keys, "&" + keys + ":hint"}
	for _, command := range [...]string{
		"evalsha", "eval", "ping", "subscribe", "unsubscribe", "publish", "hexists", "hmget", "hstrlen", "hset", "del",
	} {
		rules = append(rules, "+"+command)
	}
	return rules, nil
}
