package redisusage

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redisrun"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
)

//go:embed page.lua
var pageSource string

var pageScript = redis.NewScript(pageSource)

const (
	// pageMembers and pageFields are about how much a page has.
	pageMembers = 512
	pageFields  = 16
	// pageReports is how many reports of tenants and minutes are returned at once, about.
	pageReports = 256
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
	cfg = cfg.withDefaults()
	err := cfg.validate()
	if store == nil {
		err = fmt.Errorf("%w\nredisusage: the store is nil: give the result of bucket.NewRedis", err)
	}
	if err != nil {
		return nil, err
	}
	return &Reader{UsageStore: store, cfg: cfg}, nil
}

// Now implements [usage.Source]: it is the time of the server that has the runs of the instances.
func (r *Reader) Now(ctx context.Context) (time.Time, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	now, err := r.cfg.runs().Now(ctx)
	if err != nil {
		return time.Time{}, fmt.Errorf("redisusage: %w", err)
	}
	return now, nil
}

// place is where a page begins: a part of what there is, and the cursor of the server in it.
type place struct {
	part   string
	cursor uint64
}

func (p place) String() string { return p.part + "/" + strconv.FormatUint(p.cursor, 10) }

// readPlace reads a cursor that is not empty.
func readPlace(cursor string) (p place, err error) {
	const decimal, bits = 10, 64
	part, number, ok := strings.Cut(cursor, "/")
	n, err := strconv.ParseUint(number, decimal, bits)
	if !ok || err != nil || part == "" {
		return p, usage.ErrCursor
	}
	return place{part, n}, nil
}

// readNumbered reads a cursor whose parts are numbers below a bound.
func readNumbered(cursor string, most int) (part int, inside uint64, err error) {
	if cursor == "" {
		return 0, 0, nil
	}
	p, err := readPlace(cursor)
	if err != nil {
		return 0, 0, err
	}
	if part, err = strconv.Atoi(p.part); err != nil || part < 0 || part >= most {
		return 0, 0, usage.ErrCursor
	}
	return part, p.cursor, nil
}

// page reads one page of a set or a hash.
func (r *Reader) page(ctx context.Context, key, command string, cursor uint64, most int) (page []string, next uint64, err error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	page, err = pageScript.Run(ctx, r.cfg.Client, []string{key}, command, strconv.FormatUint(cursor, 10), most, maxName, maxValue).StringSlice()
	if err == nil && len(page) == 0 {
		err = errUnreadable
	}
	if err == nil {
		next, err = strconv.ParseUint(page[0], 10, 64)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("redisusage: %w", err)
	}
	return page[1:], next, nil
}

// Counted implements [usage.Source].
func (r *Reader) Counted(ctx context.Context, told time.Time, cursor string) (counted []usage.Counted, next string, err error) {
	shard, inside, err := readNumbered(cursor, shards)
	if err != nil {
		return nil, "", err
	}
	minute := told.Unix() / secondsOfMinute
	for shard < shards && len(counted) < pageMembers {
		var page []string
		page, inside, err = r.page(ctx, r.cfg.keys().told(minute, shard), "SSCAN", inside, pageMembers)
		if err != nil {
			return nil, "", err
		}
		for _, text := range page {
			if c, ok := readMember(text); ok {
				counted = append(counted, c)
			}
		}
		if inside == 0 {
			shard++
		}
	}
	if shard < shards {
		next = place{strconv.Itoa(shard), inside}.String()
	}
	return counted, next, nil
}

// Reports implements [usage.Source].
func (r *Reader) Reports(ctx context.Context, told time.Time, cursor string) (reports []usage.Report, next string, err error) {
	at := place{}
	if cursor != "" {
		if at, err = readPlace(cursor); err != nil || !redisrun.Valid(at.part) {
			return nil, "", usage.ErrCursor
		}
	}
	runs, err := r.runs(ctx, told)
	if err != nil {
		return nil, "", err
	}
	fields := 0
	i, _ := slices.BinarySearch(runs, at.part)
	for i < len(runs) {
		run, inside := runs[i], uint64(0)
		if run == at.part {
			inside = at.cursor
		}
		report, n, after, err := r.report(ctx, run, told, inside)
		if err != nil {
			return nil, "", err
		}
		if n > 0 {
			reports = append(reports, report)
		}
		if at = (place{run, after}); after == 0 {
			i++
		}
		if fields += n; fields >= pageReports && i < len(runs) {
			return reports, place{runs[i], after}.String(), nil
		}
	}
	return reports, "", nil
}

// runs returns those that were there in a minute or later, by name.
func (r *Reader) runs(ctx context.Context, told time.Time) ([]string, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	// One that has written in the minute was seen in it, before that.
	runs, err := r.cfg.runs().Since(ctx, told.Truncate(time.Minute))
	if err != nil {
		return nil, fmt.Errorf("redisusage: %w", err)
	}
	slices.Sort(runs)
	return runs, nil
}

// report reads a page of what a run has told in a minute, and returns of how many tenants and minutes it is.
func (r *Reader) report(ctx context.Context, run string, told time.Time, inside uint64) (report usage.Report, n int, next uint64, err error) {
	page, next, err := r.page(ctx, r.cfg.keys().report(run, told.Unix()/secondsOfMinute), "HSCAN", inside, pageFields)
	if err != nil {
		return report, 0, 0, err
	}
	if len(page) == 0 {
		return report, 0, next, nil
	}
	_, instance, _ := cutNumber(page[0])
	report = usage.Report{Instance: instance, Boot: run}
	for i := 1; i+1 < len(page); i += 2 {
		if page[i] == mark {
			continue
		}
		tenant, minute, ok := readField(page[i])
		if ok && decode(page[i+1], tenant, minute, &report) == nil {
			n++
		}
	}
	return report, n, next, nil
}

// Found implements [usage.Source].
func (r *Reader) Found(ctx context.Context, cursor string) (found []usage.Counted, next string, err error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	nodes, err := r.nodes(ctx)
	if err != nil {
		return nil, "", err
	}
	part, inside, err := readNumbered(cursor, len(nodes))
	if err != nil {
		return nil, "", err
	}
	there, inside, err := bucket.FindUsage(ctx, nodes[part], r.cfg.Namespace, inside)
	if err != nil {
		return nil, "", fmt.Errorf("redisusage: %w", err)
	}
	for _, one := range there {
		found = append(found, usage.Counted(one))
	}
	if inside == 0 {
		part++
	}
	if part < len(nodes) {
		next = place{strconv.Itoa(part), inside}.String()
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
