package usagetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	// Tell tells a batch of a run of an instance in a minute.
	Tell func(ctx context.Context, told time.Time, instance, boot string, batch usage.Batch) error
}

// RunSource checks the contract of a source.
func RunSource(t *testing.T, open func(t *testing.T) Scene) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Scene){
		"who was counted is told in the minute in which it was told":         testCounted,
		"hours of tenants of any name are told in many pages":                testManyCounted,
		"a report is what an instance told last of a minute":                 testReports,
		"reports of many tenants come in many pages":                         testManyReports,
		"what nobody told is found":                                          testFound,
		"a correction is counted in the hour of its take":                    testCorrection,
		"a cursor that is none is refused, and a context that has ended too": testCursors,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// boot and otherBoot are runs of instances.
const boot, otherBoot = "00000000000000b0", "00000000000000b1"

// minute is one that is over, and hour the one that it is in.
func (s *Scene) minute(t *testing.T) (minute, hour time.Time) {
	t.Helper()
	now, err := s.Source.Now(t.Context())
	succeeds(t, err)
	minute = now.UTC().Add(-time.Hour).Truncate(time.Minute)
	return minute, minute.Truncate(time.Hour)
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

func (s *Scene) counted(t *testing.T, told time.Time) []usage.Counted {
	t.Helper()
	items, _ := all(t, func(cursor string) ([]usage.Counted, string, error) {
		return s.Source.Counted(t.Context(), told, cursor)
	})
	return items
}

func (s *Scene) reports(t *testing.T, told time.Time) []usage.Report {
	t.Helper()
	items, _ := all(t, func(cursor string) ([]usage.Report, string, error) {
		return s.Source.Reports(t.Context(), told, cursor)
	})
	return items
}

func (s *Scene) tell(t *testing.T, told time.Time, boot string, batch usage.Batch) {
	t.Helper()
	succeeds(t, s.Tell(t.Context(), told, "instance-"+boot, boot, batch))
}

func testCounted(t *testing.T, s Scene) {
	t.Helper()
	minute, hour := s.minute(t)
	acme := usage.Counted{Tenant: "acme", Hour: hour}
	before := usage.Counted{Tenant: "acme", Hour: hour.Add(-time.Hour)}
	local := usage.Counted{Tenant: "acme", Hour: hour, Grade: bucket.UsageLocal}
	same(t, nil, s.counted(t, minute))
	s.tell(t, minute, boot, usage.Batch{Counted: []usage.Counted{acme, before}})
	s.tell(t, minute.Add(59*time.Second), otherBoot, usage.Batch{Counted: []usage.Counted{acme, local}})
	s.tell(t, minute.Add(time.Minute), boot, usage.Batch{Counted: []usage.Counted{before}})
	same(t, []usage.Counted{acme, before, local}, s.counted(t, minute))
	same(t, []usage.Counted{acme, before, local}, s.counted(t, minute.Add(30*time.Second)))
	same(t, []usage.Counted{before}, s.counted(t, minute.Add(time.Minute)))
	same(t, nil, s.counted(t, minute.Add(-time.Minute)))
	holds(t, len(s.reports(t, minute)) == 0, "there are reports that nobody told")
}

// odd are names that a key or a separator could break.
var odd = []string{"", ":", "{x}", "a:b", "\x00\xff", "naïve", "*", "27391:acme", strings.Repeat("long", 64)}

func testManyCounted(t *testing.T, s Scene) {
	t.Helper()
	minute, hour := s.minute(t)
	const many = 3000
	var told []usage.Counted
	for i := range many {
		name := fmt.Sprint("tenant-", i)
		if i < len(odd) {
			name = odd[i]
		}
		told = append(told, usage.Counted{Tenant: name, Hour: hour.Add(-time.Duration(i%3) * time.Hour), Grade: bucket.UsageGrade(i % 2)})
	}
	s.tell(t, minute, boot, usage.Batch{Counted: told})
	read, pages := all(t, func(cursor string) ([]usage.Counted, string, error) {
		return s.Source.Counted(t.Context(), minute, cursor)
	})
	holds(t, pages > 1, "so many are one page")
	same(t, told, distinct(read))
}

// decided is one row of decisions.
func decided(tenant string, at time.Time, by usage.Dimension, name string, n int64) usage.Decisions {
	return usage.Decisions{Tenant: tenant, Minute: at, By: by, Name: name, Numbers: usage.Numbers{Admitted: n, WouldRefuse: n / 2, Refused: n / 3, Points: 10 * n}}
}

// rows are those of a run, the last of each. A page may come again.
func rows(reports []usage.Report, boot string) (decisions []usage.Decisions, reached []usage.Reached) {
	for i := range reports {
		if r := &reports[i]; r.Boot == boot && r.Instance == "instance-"+boot {
			decisions, reached = append(decisions, r.Decisions...), append(reached, r.Reached...)
		}
	}
	return decisions, reached
}

func testReports(t *testing.T, s Scene) {
	t.Helper()
	minute, _ := s.minute(t)
	late := minute.Add(-5 * time.Minute)
	first := usage.Batch{Decisions: []usage.Decisions{decided("acme", minute, usage.ByTenant, "", 3), decided("acme", late, usage.ByTenant, "", 9)}}
	s.tell(t, minute, boot, first)
	s.tell(t, minute, boot, first)
	last := usage.Batch{
		Decisions: []usage.Decisions{
			decided("acme", minute, usage.ByTenant, "", 8), decided("acme", minute, usage.ByOperation, "Query.search", 5),
			decided("acme", minute, usage.ByOperation, "", 3), decided("acme", minute, usage.ByUser, "naïve", 1<<52),
		},
		Reached: []usage.Reached{
			{Tenant: "acme", Minute: minute, Level: "user", Owner: "h:1", Limit: "minute", Threshold: 80, Times: 2},
			{Tenant: "acme", Minute: minute, Level: "tenant", Limit: "hour", Threshold: 100, Times: 1},
		},
	}
	s.tell(t, minute.Add(time.Second), boot, last)
	other := []usage.Decisions{decided("acme", minute, usage.ByTenant, "", 1)}
	s.tell(t, minute, otherBoot, usage.Batch{Decisions: other})
	again := []usage.Decisions{decided("acme", minute, usage.ByTenant, "", 10)}
	s.tell(t, minute.Add(time.Minute), boot, usage.Batch{Decisions: again})

	read := s.reports(t, minute)
	decisions, reached := rows(read, boot)
	same(t, append(slices.Clone(last.Decisions), first.Decisions[1]), decisions)
	same(t, last.Reached, reached)
	decisions, _ = rows(read, otherBoot)
	same(t, other, decisions)
	decisions, reached = rows(s.reports(t, minute.Add(time.Minute)), boot)
	same(t, again, decisions)
	same(t, nil, reached)
	holds(t, len(s.reports(t, minute.Add(-time.Minute))) == 0, "there are reports that nobody told")
}

func testManyReports(t *testing.T, s Scene) {
	t.Helper()
	minute, _ := s.minute(t)
	const many = 2000
	var told []usage.Decisions
	for i := range many {
		told = append(told, decided(fmt.Sprint("tenant-", i), minute, usage.ByTenant, "", int64(i+1)))
	}
	s.tell(t, minute, boot, usage.Batch{Decisions: told})
	read, pages := all(t, func(cursor string) ([]usage.Report, string, error) {
		return s.Source.Reports(t.Context(), minute, cursor)
	})
	holds(t, pages > 1, "so many are one page")
	decisions, _ := rows(read, boot)
	same(t, told, distinct(decisions))
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

func (s *Scene) found(t *testing.T) []usage.Counted {
	t.Helper()
	items, _ := all(t, func(cursor string) ([]usage.Counted, string, error) { return s.Source.Found(t.Context(), cursor) })
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
	minute, _ := s.minute(t)
	ended, end := context.WithCancel(t.Context())
	end()
	ctx := t.Context()
	for _, cursor := range []string{"-1", "no cursor", "0/x", "16/0", strings.Repeat("9", 40), "\x00"} {
		_, _, err := s.Source.Counted(ctx, minute, cursor)
		holds(t, errors.Is(err, usage.ErrCursor), "the cursor %q: %v", cursor, err)
		_, _, err = s.Source.Reports(ctx, minute, cursor)
		holds(t, errors.Is(err, usage.ErrCursor), "the cursor %q: %v", cursor, err)
		_, _, err = s.Source.Found(ctx, cursor)
		holds(t, errors.Is(err, usage.ErrCursor), "the cursor %q: %v", cursor, err)
	}
	s.take(t, "acme", 1)
	s.tell(t, minute, boot, usage.Batch{Decisions: []usage.Decisions{decided("acme", minute, usage.ByTenant, "", 1)}})
	_, _, err := s.Source.Counted(ended, minute, "")
	holds(t, err != nil, "a call under a context that has ended succeeds")
	_, _, err = s.Source.Reports(ended, minute, "")
	holds(t, err != nil, "a call under a context that has ended succeeds")
	_, _, err = s.Source.Found(ended, "")
	holds(t, err != nil, "a call under a context that has ended succeeds")
}
