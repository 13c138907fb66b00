package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// ownEvery is how many tenants there are for each that has a limit of its own.
const ownEvery = 10

var errOtherRules = errors.New("a tenant has other rules than the document says")

// listedPolicy is a document that assigns so many tenants to a tier. One of ten has a limit that no other has.
func listedPolicy(tenants int) []byte {
	var b strings.Builder
	b.WriteString("version: 1\ndefault: free\ntiers:\n")
	for _, tier := range []string{"free", "pro"} {
		fmt.Fprintf(&b, "  %s: {limits: {minute: {capacity: 1000, per: minute}}}\n", tier)
	}
	b.WriteString("tenants:\n")
	for i := range tenants {
		fmt.Fprintf(&b, "  %s: {tier: pro", listedName(i))
		if i%ownEvery == 0 {
			fmt.Fprintf(&b, ", limits: {minute: {capacity: %d, per: minute}}", listedCapacity(i))
		}
		b.WriteString("}\n")
	}
	return []byte(b.String())
}

func listedName(i int) string { return fmt.Sprintf("tenant-%06d", i) }

func listedCapacity(i int) int64 {
	if i%ownEvery == 0 {
		return 2000 + int64(i)
	}
	return 1000
}

// scattered is the ith of n numbers, each of which comes once and none of which is near the one before.
func scattered(i, n int) int {
	const step = 7919
	return i * step % n
}

// listed looks tenants of such a document up.
type listed struct {
	policy   *tiers.Snapshot
	subjects []tiers.Subject
	asked    int
}

// look looks the next tenant up.
func (l *listed) look() error {
	l.asked = (l.asked + 1) % len(l.subjects)
	if len(l.policy.Rules(l.subjects[l.asked], tiers.Selection{}).Buckets) != 1 {
		return errOtherRules
	}
	return nil
}

// check looks all tenants up, and at what they have.
func (l *listed) check() error {
	for i := range l.subjects {
		if err := l.look(); err != nil {
			return err
		}
		limits := l.policy.Rules(l.subjects[i], tiers.Selection{}).Buckets[0].Limits.All()
		if len(limits) != 1 || limits[0].Capacity != listedCapacity(scattered(i, len(l.subjects))) {
			return fmt.Errorf("%w: %s", errOtherRules, l.subjects[i].Tenant)
		}
	}
	return nil
}

// largePolicy shows what it takes to change a policy that lists many tenants, and to look one of them up.
func largePolicy(ctx context.Context, e effort) (*findings, error) {
	document := listedPolicy(e.listed)
	load := func() (*tiers.Snapshot, error) {
		return tiers.ParseConfig{MaxDocument: len(document)}.Load(document, 1)
	}
	l := &listed{subjects: make([]tiers.Subject, e.listed)}
	// A server has just read the name of who asks: it is near, and what is known of the tenant is anywhere.
	for i := range l.subjects {
		l.subjects[i].Tenant = listedName(scattered(i, e.listed))
	}
	before := heapInUse()
	var err error
	if l.policy, err = load(); err != nil {
		return nil, err
	}
	unasked := (heapInUse() - before) / float64(e.listed)
	// An exception is compiled when it is first looked up.
	if err := l.check(); err != nil {
		return nil, err
	}
	size := (heapInUse() - before) / float64(e.listed)
	outcomes, err := contest(ctx, e, []contender{
		alone(e, "load", func() error {
			_, err := load()
			return err
		}),
		alone(e, "look-up", l.look),
	})
	if err != nil {
		return nil, err
	}
	loading, looking := outcomes[0].median(processor), outcomes[1].median(processor)
	t := &table{
		title: "A policy that lists tenants",
		note: fmt.Sprintf("Each tenant is assigned to a tier, and one of %d has a limit that nobody else has. Processor time; memory before any tenant has "+
			"asked, and when each has.", ownEvery),
		header: []string{"tenants", "document", "read, checked and compiled", "look-up", "allocations", "bytes a tenant, before", "after"},
	}
	t.add(fmt.Sprint(e.listed), digits(float64(len(document))/(1<<20))+" MiB", duration(loading), duration(looking),
		digits(outcomes[1].median(allocations)), digits(unasked), digits(size))
	whole := fmt.Sprintf("policy of %d tenants: ", e.listed)
	return &findings{tables: []*table{t}, aims: []aim{
		atMost(whole+"a change, processor time", float64(time.Second), loading, duration),
		atMost(whole+"a look-up", 200, looking, duration),
		atMost(whole+"memory of a tenant, when each has asked", 200, size, inBytes),
	}}, nil
}

// heapInUse is what is in use, in bytes, when what is not has been collected.
func heapInUse() float64 {
	// What has a finalizer takes two collections.
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}
