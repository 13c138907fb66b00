package show_test

import (
	"net/http"
	"testing"
	"time"

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
