package show_test

import (
	"net/http"
	"runtime"
	"strconv"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
	"github.com/gqlgen-ratelimit/ratelimit/internal/show"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

func TestTheConstantPartOfTheHeadersIsMadeOncePerRuleSet(t *testing.T) {
	t.Parallel()
	var known show.Policies
	first, second := &tiers.Snapshot{}, &tiers.Snapshot{}
	header := http.Header{}
	told := func(limit *bucket.Limit, overridden bool, of *tiers.Snapshot) string {
		d := &decision.Decision{Limits: []bucket.LimitState{{Limit: limit, Remaining: 100, Overridden: overridden}}}
		show.Headers(header, d, show.Draft10, &known, of)
		return header.Get("RateLimit-Policy")
	}
	limit := &bucket.Limit{Name: "minute", Unit: bucket.Points, Capacity: 1000, Refill: 1000, Period: time.Minute}
	require.Equal(t, `"minute";q=1000;w=60;qu="points"`, told(limit, false, first))

	// What no limit of a policy does shows what is remembered.
	limit.Capacity, limit.Refill = 500, 500
	require.Equal(t, `"minute";q=1000;w=60;qu="points"`, told(limit, false, first))
	require.Equal(t, `"minute";q=500;w=60;qu="points"`, told(limit, true, first), "that of an override record is nobody else's")
	require.Equal(t, `"minute";q=500;w=60;qu="points"`, told(limit, false, second), "another rule set has others")
}

func TestLimitsThatAreGoneMakeRoomForThoseThatAreAskedFor(t *testing.T) {
	t.Parallel()
	var known show.Policies
	policy, header := &tiers.Snapshot{}, http.Header{}
	limit := func(name string) *bucket.Limit {
		return &bucket.Limit{Name: name, Capacity: 10, Refill: 10, Period: time.Minute}
	}
	told := func(limit *bucket.Limit) string {
		show.Headers(header, &decision.Decision{Limits: []bucket.LimitState{{Limit: limit, Remaining: 10}}}, show.Draft10, &known, policy)
		return header.Get("RateLimit-Policy")
	}
	first, record := limit("first"), limit("record")
	told(record)
	kept := weak.Make(record)
	for i := range 20_000 {
		// The records of tenants are compiled anew whenever they are read.
		told(limit(strconv.Itoa(i)))
		require.Equal(t, `"first";q=10;w=60;qu=""`, told(first))
	}
	runtime.GC()
	require.Nil(t, kept.Value(), "limits that are not asked for are kept by nobody")

	// What no limit does shows what is remembered.
	first.Capacity = 20
	require.Equal(t, `"first";q=10;w=60;qu=""`, told(first), "what is asked for is remembered all the time")
	last := limit("last")
	told(last)
	last.Capacity = 20
	require.Equal(t, `"last";q=10;w=60;qu=""`, told(last), "and what comes after all of them is too")
}
