package show_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
	"github.com/gqlgen-ratelimit/ratelimit/internal/show"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// left is the state of a limit of a tenant of which so much is left.
func left(name string, unit bucket.Unit, capacity, remaining int64) bucket.LimitState {
	limit := &bucket.Limit{Name: name, Unit: unit, Capacity: capacity, Refill: capacity, Period: time.Minute}
	return bucket.LimitState{Limit: limit, Remaining: remaining}
}

// ran is a decision about an operation of 30 points that ran.
func ran(limits ...bucket.LimitState) *decision.Decision {
	return &decision.Decision{
		Outcome: decision.Admitted, Subject: tiers.Subject{Tenant: "acme"}, Tier: "pro", Points: 30, Rules: &tiers.Rules{}, Limits: limits,
	}
}

// told is what a client is told of a decision.
type told struct {
	extension, state, policy string
}

func tell(t *testing.T, d *decision.Decision) told {
	t.Helper()
	extension, err := json.Marshal(show.Extension(d))
	require.NoError(t, err)
	header := http.Header{}
	show.Headers(header, d, show.Draft10, &show.Policies{}, nil)
	return told{string(extension), header.Get("RateLimit"), header.Get("RateLimit-Policy")}
}

func TestALimitThatWouldRefuseTheOperationNextIsToldAlsoWhereAnotherOneIsTighter(t *testing.T) {
	t.Parallel()
	second, minute := left("second", bucket.Points, 40, 29), left("minute", bucket.Points, 1000, 300)
	next := tell(t, ran(second, minute))
	require.Contains(t, next.extension, `"limit":"minute"`)
	require.Contains(t, next.extension, `{"name":"second","level":"tenant","unit":"points","capacity":40,"remaining":29,`)
	require.Equal(t, `"second";r=29, "minute";r=300`, next.state)

	second.Remaining = 30
	enough := tell(t, ran(second, minute))
	require.NotContains(t, enough.extension, `"limits"`)
	require.Equal(t, `"minute";r=300`, enough.state)

	alone := tell(t, ran(left("minute", bucket.Points, 1000, 20)))
	require.NotContains(t, alone.extension, `"limits"`, "the limit at the top says it itself")

	exports := left("exports", "exports", 1000, 600)
	exports.Asked = 700
	require.Contains(t, tell(t, ran(minute, exports)).extension, `"limits"`, "whatever it counts")
}
