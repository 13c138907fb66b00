package bucket_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
)

// limitsOf are four limits, each changed in the same way.
func limitsOf(t *testing.T, capacity int64, change func(l *bucket.Limit)) *bucket.Limits {
	t.Helper()
	var limits []bucket.Limit
	for i, period := range []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour} {
		limit := bucket.Limit{Name: strconv.Itoa(i), Capacity: capacity, Period: period}
		change(&limit)
		limits = append(limits, limit)
	}
	return compile(t, limits...)
}

func TestATakeInMemoryAllocatesNothingButWhatItsAnswerNeeds(t *testing.T) { //nolint:paralleltest // It counts what the process allocates.
	const much = 1 << 30
	window := func(kind bucket.WindowKind) func(l *bucket.Limit) {
		return func(l *bucket.Limit) {
			if l.Window.Kind = kind; kind.Calendar() {
				l.Period = 0
			}
		}
	}
	as := func(mode bucket.Mode) func(l *bucket.Limit) { return func(l *bucket.Limit) { l.Mode = mode } }
	usual := []bucket.Bucket{{Limits: limitsOf(t, much, as(bucket.Enforce))}}
	one := func(limits *bucket.Limits) []bucket.Bucket { return []bucket.Bucket{{Limits: limits}} }
	three := append([]bucket.Bucket{
		{Owner: bucket.Owner{Level: bucket.Team, Name: "core"}, Limits: usual[0].Limits}, {Owner: bucket.Owner{Level: bucket.User, Name: "ann"}, Limits: usual[0].Limits},
	}, usual...)
	soft := limitsOf(t, 100, func(l *bucket.Limit) { l.Soft = true })
	for _, test := range []struct {
		name  string
		take  bucket.Take
		other []bucket.Bucket
		keyed bool
		want  float64
	}{
		{name: "four limits", take: bucket.Take{Buckets: usual}},
		{name: "three owners", take: bucket.Take{Buckets: three}},
		{name: "a refusal", take: bucket.Take{Buckets: one(limitsOf(t, 1, as(bucket.Enforce)))}},
		{name: "a refusal that no waiting helps", take: bucket.Take{Buckets: usual, Amounts: points(2 * much)}},
		{name: "three owners, one of whom is refused", take: bucket.Take{Buckets: append(one(limitsOf(t, 1, as(bucket.Enforce))), three[:2]...)}},
		{name: "limits in shadow mode that are used up", take: bucket.Take{Buckets: one(limitsOf(t, 1, as(bucket.Shadow)))}},
		{name: "soft limits that are used up", take: bucket.Take{Buckets: one(soft)}},
		{name: "fixed windows", take: bucket.Take{Buckets: one(limitsOf(t, much, window(bucket.FixedWindow)))}},
		{name: "sliding windows", take: bucket.Take{Buckets: one(limitsOf(t, 1<<20, window(bucket.SlidingWindow)))}},
		{name: "windows of the calendar", take: bucket.Take{Buckets: one(limitsOf(t, much, window(bucket.DayWindow)))}},
		{name: "windows that are used up", take: bucket.Take{Buckets: one(limitsOf(t, 1, window(bucket.MonthWindow)))}},
		// What is owed in the terms of the other one.
		{name: "under two policies by turns", take: bucket.Take{Buckets: usual}, other: one(soft), want: 2},
		// Its result, and the states of its limits.
		{name: "a candidate", take: bucket.Take{Buckets: usual, Candidate: &bucket.Candidate{ID: "next", Buckets: usual}}, want: 2},
		// Its name, and what is kept of it.
		{name: "a new key", take: bucket.Take{Buckets: usual}, keyed: true, want: 3},
	} {
		c := newClock()
		store := bucket.NewMemory(bucket.MemoryConfig{Clock: c.now})
		take := test.take
		take.Tenant, take.States = "acme", make([]bucket.LimitState, 12)
		if take.Amounts == nil {
			take.Amounts = points(1)
		}
		calls := 0
		claim := idempotency.Claim{TTL: time.Hour}
		got := testing.AllocsPerRun(500, func() {
			c.ms.Add(1)
			calls++
			if test.other != nil && calls%2 == 0 {
				take.Buckets = test.other
			} else {
				take.Buckets = test.take.Buckets
			}
			if test.keyed {
				// Another fingerprint is another record.
				claim.ReuseAsNew = true
				claim.Fingerprint[0], claim.Fingerprint[1] = byte(calls), byte(calls>>8)
				take.Claim = &claim
			}
			if _, err := store.Take(t.Context(), take); err != nil {
				t.Fatal(err)
			}
		})
		require.LessOrEqual(t, got, test.want, test.name)
	}
}
