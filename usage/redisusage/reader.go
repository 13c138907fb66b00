package redisusage

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redisplace"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
)

// Reader is a source of usage in a Redis. It is made by [NewReader] and safe for concurrent use.
type Reader struct {
	bucket.UsageStore

	cfg Config
}

var _ usage.Source = (*Reader)(nil)

// NewReader returns a reader. store is that of the same Redis and namespace, where counts are read. It does not connect. The error has everything that is
// wrong with the configuration.
func NewReader(cfg Config, store bucket.UsageStore) (*Reader, error) {
	err := cfg.complete()
	if store == nil {
		err = fmt.Errorf("%w\nredisusage: the store is nil: give the result of bucket.NewRedis", err)
	}
	if err != nil {
		return nil, err
	}
	return &Reader{UsageStore: store, cfg: cfg}, nil
}

// Now implements [usage.Source]: it is the time of a server that has keys of the namespace.
func (r *Reader) Now(ctx context.Context) (time.Time, error) {
	ctx, cancel := redisplace.Bounded(ctx)
	defer cancel()
	now, err := redisplace.Now(ctx, r.cfg.Client, r.cfg.prefix())
	if err != nil {
		return time.Time{}, fmt.Errorf("redisusage: %w", err)
	}
	return now, nil
}

// readCursor reads the cursor of a page of keys: which of so many nodes it is of, and where it begins there.
func readCursor(cursor string, nodes int) (node int, inside uint64, err error) {
	if cursor == "" {
		return 0, 0, nil
	}
	const decimal, bits = 10, 64
	number, at, ok := strings.Cut(cursor, "/")
	node, err = strconv.Atoi(number)
	inside, bad := strconv.ParseUint(at, decimal, bits)
	if !ok || err != nil || bad != nil || node < 0 || node >= nodes {
		return 0, 0, usage.ErrCursor
	}
	return node, inside, nil
}

// Found implements [usage.Source].
func (r *Reader) Found(ctx context.Context, cursor string) (found []bucket.UsageFound, next string, err error) {
	ctx, cancel := redisplace.Bounded(ctx)
	defer cancel()
	nodes, err := r.nodes(ctx)
	if err != nil {
		return nil, "", err
	}
	part, inside, err := readCursor(cursor, len(nodes))
	if err != nil {
		return nil, "", err
	}
	found, inside, err = bucket.FindUsage(ctx, nodes[part], r.cfg.Namespace, inside)
	if err != nil {
		return nil, "", fmt.Errorf("redisusage: %w", err)
	}
	if inside == 0 {
		part++
	}
	if part < len(nodes) {
		next = strconv.Itoa(part) + "/" + strconv.FormatUint(inside, 10)
	}
	return found, next, nil
}

// nodes returns a client of each node that has keys, in an order of their addresses.
func (r *Reader) nodes(ctx context.Context) (nodes []*redis.Client, err error) {
	var mu sync.Mutex
	add := func(_ context.Context, node *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		nodes = append(nodes, node)
		return nil
	}
	switch client := r.cfg.Client.(type) {
	case *redis.Client:
		return []*redis.Client{client}, nil
	case *redis.ClusterClient:
		err = client.ForEachMaster(ctx, add)
	case *redis.Ring:
		err = client.ForEachShard(ctx, add)
	default:
		err = fmt.Errorf("the nodes of a client of type %T are not known; use a *redis.Client, *redis.ClusterClient or *redis.Ring", client)
	}
	if err == nil && len(nodes) == 0 {
		err = bucket.ErrUnavailable
	}
	if err != nil {
		return nil, fmt.Errorf("redisusage: %w", err)
	}
	slices.SortFunc(nodes, func(a, b *redis.Client) int { return cmp.Compare(a.Options().Addr, b.Options().Addr) })
	return nodes, nil
}
