// Package redisdirectory keeps the records of tenants in a Redis, that of the budgets for example: all of a directory in one
// slot of a cluster, so that a record and its place in the history are written at once.
//
// It is for some 100 000 tenants. A Redis that is flushed loses them: instances go on with what they know
// (directory.ErrEmpty), and who has the records elsewhere writes them again.
package redisdirectory

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/internal/redisplace"
	"github.com/gqlgen-ratelimit/ratelimit/policy/directory"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Config says where a [Source] keeps the records.
type Config struct {
	// Client is that of the Redis. It is required, and the caller's to close. redisclient.Open makes one whose calls
	// end when their deadline does.
	Client redis.UniversalClient
	// Namespace is that of bucket.RedisConfig. Empty means main.
	Namespace string
	// Name tells several directories of one namespace apart: 1 to 64 characters of A-Z a-z 0-9 _ . and -. Empty means main.
	Name string
}

// Source is the directory.Source and the directory.Writer of a Redis. It is made by [New] and safe for concurrent use.
type Source struct {
	client redis.UniversalClient
	keys   []string
}

var (
	_ directory.Source = (*Source)(nil)
	_ directory.Writer = (*Source)(nil)
)

// maxHistory is how many tenants with their last change the Redis remembers. Who has not asked since before is told of a gap.
const maxHistory = 100_000

//go:embed tenant.lua
var tenantSource string

//go:embed changes.lua
var changesSource string

//go:embed put.lua
var putSource string

var (
	tenantScript  = redis.NewScript(tenantSource)
	changesScript = redis.NewScript(changesSource)
	putScript     = redis.NewScript(putSource)
)

// New returns the records of a Redis. It does not connect. The error has everything that is wrong with the configuration.
func New(cfg Config) (*Source, error) {
	place := redisplace.Place{Client: cfg.Client, Namespace: cfg.Namespace}
	wrong := place.Complete("redisdirectory")
	keys, err := keysOf(&place, cfg.Name)
	if err := errors.Join(wrong, err); err != nil {
		return nil, err
	}
	return &Source{client: cfg.Client, keys: []string{keys, keys + ":records", keys + ":changes"}}, nil
}

// keysOf is what the keys of a directory begin with, all in one slot of a cluster:
//
//	rl:NAMESPACE:directory:{NAME}          origin, newest revision, and the newest one that is no longer in the history
//	rl:NAMESPACE:directory:{NAME}:records  of each tenant its record
//	rl:NAMESPACE:directory:{NAME}:changes  of each tenant the revision of its last change
//	rl:NAMESPACE:directory:{NAME}:refill:ID  records that are there at once when all have come
func keysOf(place *redisplace.Place, name string) (string, error) {
	return place.Named("redisdirectory", "directory", name)
}

// String returns what the keys begin with.
func (s *Source) String() string { return s.keys[0] }

// run calls a script. The error is that of the call, or of a reply that is none.
func (s *Source) run(ctx context.Context, script *redis.Script, least int, args ...any) ([]string, error) {
	ctx, cancel := redisplace.Bounded(ctx)
	defer cancel()
	reply, err := script.Run(ctx, s.client, s.keys, args...).StringSlice()
	if err != nil {
		return nil, fmt.Errorf("redisdirectory: %w", err)
	}
	if len(reply) > 0 && len(reply) < least {
		return nil, fmt.Errorf("redisdirectory: a reply of %d parts", len(reply))
	}
	return reply, nil
}

// Tenant implements directory.Source, in one call of the master.
func (s *Source) Tenant(ctx context.Context, tenant string) (*directory.Record, error) {
	const found = 2
	reply, err := s.run(ctx, tenantScript, 1, tenant, tiers.MaxRecord)
	switch {
	case err != nil:
		return nil, err
	case len(reply) == 0:
		return nil, directory.ErrEmpty
	case len(reply) < found:
		return nil, nil
	}
	revision, err := strconv.ParseUint(reply[0], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("redisdirectory: the revision of a record is none")
	}
	return &directory.Record{Tenant: tenant, Revision: revision, Document: []byte(reply[1])}, nil
}

// Changes implements directory.Source, in one call of the master.
func (s *Source) Changes(ctx context.Context, since directory.Mark) (page directory.Page, _ error) {
	const head, pair = 4, 2
	reply, err := s.run(ctx, changesScript, head, since.Origin, since.Revision, directory.MaxPage, tiers.MaxLongName)
	if err != nil {
		return page, err
	}
	if len(reply) == 0 {
		return page, directory.ErrEmpty
	}
	page.Through.Origin, page.Gap, page.More = reply[0], reply[2] == "1", reply[3] == "1"
	if page.Through.Revision, err = strconv.ParseUint(reply[1], 10, 64); err != nil {
		return page, fmt.Errorf("redisdirectory: the newest revision is none")
	}
	for i := head; i+pair <= len(reply); i += pair {
		revision, err := strconv.ParseUint(reply[i+1], 10, 64)
		if err != nil {
			return page, fmt.Errorf("redisdirectory: the revision of a change is none")
		}
		page.Changes = append(page.Changes, directory.Change{Tenant: reply[i], Revision: revision})
	}
	return page, nil
}

// Put implements directory.Writer. After an error of the connection nobody knows whether the record was written: write it once
// more.
func (s *Source) Put(ctx context.Context, tenant string, document []byte, expected uint64) (uint64, error) {
	if err := directory.CheckPut(tenant, document); err != nil {
		return 0, err
	}
	const parts = 2
	reply, err := s.run(ctx, putScript, parts, tenant, document, strconv.FormatUint(expected, 10), rand.Text(), maxHistory)
	if err != nil {
		return 0, err
	}
	if len(reply) == 0 {
		return 0, fmt.Errorf("redisdirectory: a reply of no parts")
	}
	revision, err := strconv.ParseUint(reply[1], 10, 64)
	switch {
	case err != nil:
		return 0, fmt.Errorf("redisdirectory: the revision of a record is none")
	case reply[0] != "1":
		return 0, &directory.ConflictError{There: revision}
	}
	return revision, nil
}

// ACLRules returns the least rights in Redis with which everything in this package works, as rules for ACL SETUSER that are
// added to those of bucket.ACLRules. Empty names mean main. The error is that of names which [New] refuses.
func ACLRules(namespace, name string) ([]string, error) {
	place := redisplace.Place{Namespace: namespace}
	wrong := place.CompleteNamespace("redisdirectory")
	keys, err := keysOf(&place, name)
	if err := errors.Join(wrong, err); err != nil {
		return nil, err
	}
	return redisplace.Rules([]string{"~" + keys + "*"},
		"evalsha", "eval", "hmget", "hget", "hset", "hdel", "hstrlen", "exists", "hincrby", "zadd", "zcard", "zrangebyscore",
		"zrange", "zremrangebyrank", "hlen", "pexpire", "persist", "rename", "del"), nil
}
