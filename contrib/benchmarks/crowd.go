package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// crowdPolicy has four limits that refill so slowly that a tenant who has spent spentAtFirst is known for an hour.
const crowdPolicy = `
version: 1
default: bench
tiers:
  bench:
    limits:
      minute: {capacity: 80000000, refill: 20, per: minute}
      hour: {capacity: 80000000, refill: 1000, per: hour}
      day: {capacity: 80000000, refill: 24000, per: day}
      requests: {unit: requests, capacity: 80000000, refill: 1000, per: hour}
`

const spentAtFirst = 1000

// crowd is a memory store with a number of tenants, and a server on it.
type crowd struct {
	store  *bucket.Memory
	server http.Handler
	// names are those of the tenants in one text, so that the garbage collector has none of them to look at.
	names string
	size  int
	asked int
	take  bucket.Take
}

// crowded is what a store of many tenants took.
type crowded struct {
	// Bytes is the memory of a tenant, and Objects are those of all.
	Bytes   float64 `json:"bytes"`
	Objects float64 `json:"objects"`
	// Fresh is the processor time of a take of a tenant that was not known, in nanoseconds.
	Fresh float64 `json:"fresh"`
}

// crowdQuestion asks for a crowd of a size, or for a turn of one that is there.
type crowdQuestion struct {
	// Size is the number of tenants, Short how long a turn takes, and Long one that makes garbage.
	Size  int           `json:"size,omitempty"`
	Short time.Duration `json:"short,omitempty"`
	Long  time.Duration `json:"long,omitempty"`
	Turn  string        `json:"turn,omitempty"`
}

// The turns of a crowd.
const (
	turnTake       = "take"
	turnRequest    = "request"
	turnCollection = "collection"
)

var errNoCrowd = errors.New("the store does not know all tenants")

const crowdName = len("tenant-0000000")

// crowds shows what a memory store takes by the number of its tenants. Each is in a process of its own, because the collector
// of garbage looks at all of a process.
func crowds(ctx context.Context, e effort) (*findings, error) {
	kinds := []string{turnTake, turnRequest, turnCollection}
	found := make([]crowded, len(e.crowds))
	var contenders []contender
	for i, size := range e.crowds {
		p, err := startPart(ctx, roleCrowd, crowdQuestion{Size: size, Short: e.turn, Long: e.long}, &found[i])
		if err != nil {
			return nil, err
		}
		defer p.close()
		for _, kind := range kinds {
			contenders = append(contenders, contender{name: kind, turn: func(context.Context) (sample, error) {
				var s sample
				err := p.ask(crowdQuestion{Turn: kind}, &s)
				return s, err
			}})
		}
	}
	outcomes, err := contest(ctx, e, contenders)
	if err != nil {
		return nil, err
	}
	t := &table{
		title: "Tenants in memory",
		note: "Processor time, four limits for each tenant, tenants in no order. A request is one to the whole server, " +
			"garbage collection included. Memory, a whole collection of the process, and objects are those of the store.",
		header: []string{"tenants", "bytes a tenant", "objects", "a collection", "take, new", "take, known", "allocations", "a request", "× the first row"},
	}
	first, last := 0, (len(e.crowds)-1)*len(kinds)
	for i := range found {
		take, request, collection := &outcomes[i*len(kinds)], &outcomes[i*len(kinds)+1], &outcomes[i*len(kinds)+2]
		size := "–"
		if e.crowds[i] > 1 {
			size = digits(found[i].Bytes)
		}
		t.add(fmt.Sprint(e.crowds[i]), size, digits(found[i].Objects), duration(collection.median(processor)), duration(found[i].Fresh),
			duration(take.median(processor)), digits(take.median(allocations)),
			duration(request.median(processor)), digits(request.ratio(&outcomes[first+1], processor)))
	}
	whole := fmt.Sprintf("memory store with %d tenants: ", e.crowds[len(e.crowds)-1])
	return &findings{tables: []*table{t}, aims: []aim{
		atMost(whole+"memory of a tenant", 128, found[len(found)-1].Bytes, inBytes),
		atMost(whole+"processor time of a collection of garbage", float64(10*time.Millisecond), outcomes[last+2].median(processor), duration),
		atMost(whole+"a request to the whole server ÷ that of a store with one", 1.1, outcomes[last+1].ratio(&outcomes[first+1], processor), times),
	}}, nil
}

// newCrowd lets so many tenants take from an empty store.
func newCrowd(ctx context.Context, size int) (*crowd, *crowded, error) {
	if size < 1 {
		return nil, nil, errNoCrowd
	}
	c := &crowd{size: size, take: bucket.Take{States: make([]bucket.LimitState, bucket.MaxLimits)}}
	var names strings.Builder
	// A server has just read the name of who asks: it is near, and what is known of the tenant is anywhere.
	for i := range size {
		fmt.Fprintf(&names, "tenant-%07d", scattered(i, size))
	}
	c.names = names.String()
	policy, err := tiers.Load([]byte(crowdPolicy), 1)
	if err != nil {
		return nil, nil, err
	}
	rules := policy.Rules(tiers.Subject{Tenant: "tenant"}, tiers.Selection{})
	c.take.Buckets = rules.Buckets
	c.take.Amounts = bucket.Amounts{{Unit: bucket.Points, N: spentAtFirst}, {Unit: bucket.Requests, N: spentAtFirst}}
	server, err := limitedServer(func(config *ratelimit.Config) {
		// Room for all, whatever the size.
		c.store = bucket.NewMemory(bucket.MemoryConfig{MaxEntries: 2_000_000, MaxBytes: 1 << 30})
		config.Store, config.Policy = c.store, policy
	})
	if err != nil {
		return nil, nil, err
	}
	c.server = server
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	spent := processorTime()
	for i := range size {
		// They come in another order than the one in which they are asked for later.
		if err := c.decide(ctx, scattered(i, size)); err != nil {
			return nil, nil, err
		}
	}
	spent = processorTime() - spent
	c.take.Amounts = bucket.Amounts{{Unit: bucket.Points, N: amount}, {Unit: bucket.Requests, N: amount}}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if err := c.complete(ctx); err != nil {
		return nil, nil, err
	}
	of := float64(size)
	return c, &crowded{
		Bytes: (float64(after.HeapAlloc) - float64(before.HeapAlloc)) / of, Objects: float64(after.HeapObjects) - float64(before.HeapObjects),
		Fresh: float64(spent) / of,
	}, nil
}

// complete returns an error if the store has forgotten what a tenant has spent. It looks at a hundred of them.
func (c *crowd) complete(ctx context.Context) error {
	if n := c.store.Evicted(); n > 0 {
		return fmt.Errorf("%w: %d made room", errNoCrowd, n)
	}
	for i := 0; i < c.size; i += max(1, c.size/100) {
		states, err := c.store.Peek(ctx, c.name(i), c.take.Buckets)
		if err != nil {
			return err
		}
		for k := range states {
			if states[k].Remaining >= states[k].Limit.Capacity {
				return fmt.Errorf("%w: %s has spent nothing", errNoCrowd, c.name(i))
			}
		}
	}
	return nil
}

func (c *crowd) name(i int) string { return c.names[i*crowdName : (i+1)*crowdName] }

func (c *crowd) next() int {
	c.asked = (c.asked + 1) % c.size
	return c.asked
}

func (c *crowd) decide(ctx context.Context, i int) error {
	c.take.Tenant = c.name(i)
	result, err := c.store.Take(ctx, c.take)
	return admitted(err == nil && result.Verdict == bucket.Admitted, err)
}

// turns are what a crowd is asked for.
func (c *crowd) turns(ctx context.Context, e effort) map[string]contender {
	take := func() error { return c.decide(ctx, c.next()) }
	request := func() error {
		recorder := answer(ctx, c.server, requestBody, c.name(c.next()))
		return check(recorder.Code, recorder.Body.Bytes(), tellsOne)
	}
	collect := func() error {
		runtime.GC()
		return nil
	}
	return map[string]contender{
		turnTake: alone(e, "", take), turnRequest: alone(effort{turn: e.long}, "", request), turnCollection: alone(e, "", collect),
	}
}

// answerCrowd is the part of a process with a crowd: its first question is for one, and the others are for turns.
func answerCrowd(in io.Reader, out io.Writer) error {
	ctx := context.Background()
	var turns map[string]contender
	return answering(in, out, func(question json.RawMessage) (any, error) {
		var q crowdQuestion
		if err := json.Unmarshal(question, &q); err != nil {
			return nil, err
		}
		if turns != nil {
			return turns[q.Turn].turn(ctx)
		}
		c, found, err := newCrowd(ctx, q.Size)
		if err != nil {
			return nil, err
		}
		turns = c.turns(ctx, effort{turn: q.Short, long: q.Long})
		return found, nil
	})
}
