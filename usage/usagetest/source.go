package usagetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
)

// Scene is a source with what it reads. Each test has one of its own.
type Scene struct {
	Source usage.Source
	// Store is the store that the source reads.
	Store bucket.Store
	// Refuse has what a run of an instance has refused.
	Refuse func(ctx context.Context, run string, refused []usage.Refused) error
}

// RunSource checks the contract of a source.
func RunSource(t *testing.T, open func(t *testing.T) Scene) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Scene){
		"refusals are those of each run of an instance":       testRefused,
		"refusals of many tenants come in many pages":         testManyRefused,
		"every hour that has counts is found":                 testFound,
		"a correction is counted in the hour of its take":     testCorrection,
		"another cursor and a context that ended are refused": testCursors,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// run and otherRun are runs of instances.
const run, otherRun = "00000000000000b0", "00000000000000b1"

// hour is the present one.
func (s *Scene) hour(t *testing.T) time.Time {
	t.Helper()
	now, err := s.Source.Now(t.Context())
	succeeds(t, err)
	return now.UTC().Truncate(time.Hour)
}

// holds fails the test where something does not hold.
func holds(t *testing.T, ok bool, format string, args ...any) {
	t.Helper()
	if !ok {
		t.Fatalf(format, args...)
	}
}

func succeeds(t *testing.T, err error) {
	t.Helper()
	holds(t, err == nil, "%v", err)
}

// same fails the test where two lists have other elements. Their order says nothing.
func same[T comparable](t *testing.T, want, got []T) {
	t.Helper()
	counts := make(map[T]int)
	for _, one := range want {
		counts[one]++
	}
	for _, one := range got {
		counts[one]--
	}
	for one, n := range counts {
		holds(t, n == 0, "%+v is there %d times less than it is to be, among %d", one, n, len(got))
	}
}

// distinct returns each element once.
func distinct[T comparable](all []T) (once []T) {
	seen := make(map[T]bool)
	for _, one := range all {
		if !seen[one] {
			seen[one], once = true, append(once, one)
		}
	}
	return once
}

// all reads all pages.
func all[T any](t *testing.T, read func(cursor string) ([]T, string, error)) (items []T, pages int) {
	t.Helper()
	const most = 100_000
	for cursor := ""; pages < most; {
		page, next, err := read(cursor)
		succeeds(t, err)
		items, pages = append(items, page...), pages+1
		if next == "" {
			return items, pages
		}
		cursor = next
	}
	t.Fatal("there is no last page")
	return nil, 0
}

func (s *Scene) refused(t *testing.T, hour time.Time) []usage.Refused {
	t.Helper()
	items, _ := all(t, func(cursor string) ([]usage.Refused, string, error) {
		return s.Source.Refused(t.Context(), hour, cursor)
	})
	return items
}

func testRefused(t *testing.T, s Scene) {
	t.Helper()
	hour := s.hour(t)
	row := func(run, limit string, at time.Time, n int64) usage.Refused {
		return usage.Refused{Run: run, Tenant: "acme", Limit: limit, Hour: at, N: n}
	}
	same(t, nil, s.refused(t, hour))
	for _, of := range []struct {
		run string
		all []usage.Refused
	}{
		{run, []usage.Refused{row("", "tenant:minute", hour, 3), row("", "too_expensive", hour, 1)}},
		{otherRun, []usage.Refused{row("", "tenant:minute", hour, 3), row("", "tenant:minute", hour.Add(-time.Hour), 9)}},
		{run, []usage.Refused{row("", "tenant:minute", hour, 5)}},
		{run, nil},
	} {
		succeeds(t, s.Refuse(t.Context(), of.run, of.all))
	}
	same(t, []usage.Refused{row(run, "tenant:minute", hour, 5), row(run, "too_expensive", hour, 1), row(otherRun, "tenant:minute", hour, 3)}, s.refused(t, hour.Add(59*time.Minute)))
	same(t, []usage.Refused{row(otherRun, "tenant:minute", hour.Add(-time.Hour), 9)}, s.refused(t, hour.Add(-time.Hour)))
	same(t, nil, s.refused(t, hour.Add(-2*time.Hour)))
}

// odd are names that a key or a separator could break.
var odd = []string{"", ":", "{x}", "a:b", "\x00\xff", "naïve", "*", "27391:acme", strings.Repeat("long", 64)}

func testManyRefused(t *testing.T, s Scene) {
	t.Helper()
	hour := s.hour(t)
	const many = 3000
	var refused []usage.Refused
	for i := range many {
		tenant, limit := fmt.Sprint("tenant-", i), "tenant:minute"
		if i < len(odd) {
			tenant, limit = odd[i], odd[len(odd)-1-i]
		}
		refused = append(refused, usage.Refused{Run: run, Tenant: tenant, Limit: limit, Hour: hour, N: int64(i + 1)})
	}
	succeeds(t, s.Refuse(t.Context(), run, refused))
	read, pages := all(t, func(cursor string) ([]usage.Refused, string, error) {
		return s.Source.Refused(t.Context(), hour, cursor)
	})
	holds(t, pages > 1, "so many are one page")
	same(t, refused, distinct(read))
}

// take has the store count one request of some points.
func (s *Scene) take(t *testing.T, tenant string, points int64) bucket.Result {
	t.Helper()
	result, err := s.Store.Take(t.Context(), bucket.Take{
		Tenant: tenant, Usage: &bucket.Usage{Fields: []bucket.FieldUsage{{Name: "Query.search", Points: points, Calls: 1}}},
		Amounts: bucket.Amounts{{Unit: bucket.Points, N: points}, {Unit: bucket.Requests, N: 1}, {Unit: "exports", N: 2}},
	})
	succeeds(t, err)
	holds(t, result.Verdict == bucket.Admitted, "it is %v", result.Verdict)
	return result
}

func (s *Scene) found(t *testing.T) []bucket.UsageFound {
	t.Helper()
	items, _ := all(t, func(cursor string) ([]bucket.UsageFound, string, error) { return s.Source.Found(t.Context(), cursor) })
	return distinct(items)
}

func testFound(t *testing.T, s Scene) {
	t.Helper()
	same(t, nil, s.found(t))
	var tenants []string
	for i := range 200 {
		tenants = append(tenants, fmt.Sprint("tenant-", i))
	}
	tenants = append(tenants, odd...)
	for _, tenant := range tenants {
		s.take(t, tenant, 5)
	}
	_, err := s.Store.Take(t.Context(), bucket.Take{Tenant: "nobody counts it", Amounts: bucket.Amounts{{Unit: bucket.Points, N: 1}}})
	succeeds(t, err)
	found := s.found(t)
	var names []string
	for _, c := range found {
		names = append(names, c.Tenant)
		holds(t, c.Grade == bucket.UsageExact, "the grade of %v is exact", c)
		read, err := s.Source.ReadUsage(t.Context(), c.Tenant, c.Hour, c.Grade)
		succeeds(t, err)
		holds(t, read != nil, "%v was found and has no counts", c)
		forgotten, err := s.Source.ForgetUsage(t.Context(), read)
		succeeds(t, err)
		holds(t, forgotten, "%v is forgotten", c)
	}
	// An hour may have ended in the middle.
	same(t, tenants, distinct(names))
	same(t, nil, s.found(t))
}

func testCorrection(t *testing.T, s Scene) {
	t.Helper()
	result := s.take(t, "acme", 100)
	was := s.found(t)
	settled, err := s.Store.Settle(t.Context(), bucket.Settlement{Receipt: result.Receipt, Actual: bucket.Amounts{{Unit: bucket.Points, N: 40}}})
	succeeds(t, err)
	holds(t, settled.Applied, "the settlement is applied")
	same(t, was, s.found(t))
	read, err := s.Source.ReadUsage(t.Context(), "acme", was[0].Hour, bucket.UsageExact)
	succeeds(t, err)
	holds(t, read.Counts[0].Net() == 40, "%d points stay of 100 that are settled to 40", read.Counts[0].Net())
}

func testCursors(t *testing.T, s Scene) {
	t.Helper()
	hour := s.hour(t)
	ended, end := context.WithCancel(t.Context())
	end()
	for _, cursor := range []string{"-1", "no cursor", "0/x", "x/0", strings.Repeat("9", 40), "\x00"} {
		_, _, err := s.Source.Refused(t.Context(), hour, cursor)
		holds(t, errors.Is(err, usage.ErrCursor), "the cursor %q: %v", cursor, err)
		_, _, err = s.Source.Found(t.Context(), cursor)
		holds(t, errors.Is(err, usage.ErrCursor), "the cursor %q: %v", cursor, err)
	}
	_, _, err := s.Source.Refused(ended, hour, "")
	holds(t, err != nil, "a call under a context that has ended succeeds")
	_, _, err = s.Source.Found(ended, "")
	holds(t, err != nil, "a call under a context that has ended succeeds")
}
