package show_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
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

func TestHiddenNumbersDoNotChangeTheFormOfAnAnswerNorWhatItsHeadersName(t *testing.T) {
	t.Parallel()
	numbers := regexp.MustCompile(`[=:][0-9.]+`)
	for name, hide := range map[string]tiers.Hide{
		"remaining": {Remaining: true}, "remaining and limits": {Remaining: true, Limits: true},
		"cost and remaining": {Cost: true, Remaining: true}, "everything": {Cost: true, Limits: true, Remaining: true, Owners: true},
	} {
		var first told
		for i := range 64 {
			// Every combination of much and little that is left of two limits in points and one in requests.
			share := func(bit int) int64 { return []int64{900, 600, 200, 10}[i>>(2*bit)&3] }
			d := ran(left("second", bucket.Points, 1000, share(0)), left("minute", bucket.Points, 1000, share(1)),
				left("requests", bucket.Requests, 1000, share(2)))
			d.Hide = hide
			got := tell(t, d)
			if i == 0 {
				first = got
			}
			require.Equal(t, first, got, "%s is hidden: %d", name, i)
		}
		require.NotContains(t, first.extension, `"limits"`)
	}

	// Of what is shown no more can be told than it says itself.
	for name, test := range map[string]struct {
		hide   tiers.Hide
		change func(d *decision.Decision)
	}{
		"limits": {tiers.Hide{Limits: true}, func(d *decision.Decision) {
			for i := range d.Limits {
				d.Limits[i].Limit.Capacity *= int64(10 * (3 - i))
			}
		}},
		"cost": {tiers.Hide{Cost: true}, func(d *decision.Decision) { d.Points *= 10 }},
	} {
		d := ran(left("second", bucket.Points, 400, 250), left("minute", bucket.Points, 1000, 400), left("requests", bucket.Requests, 1000, 450))
		d.Hide = test.hide
		before := tell(t, d)
		test.change(d)
		require.Equal(t, numbers.ReplaceAllString(fmt.Sprint(before), ""), numbers.ReplaceAllString(fmt.Sprint(tell(t, d)), ""), name)
	}
}

func TestAShortAnswerHasAtMost195BytesAtTheLargestNumbersAnd28MoreWherePointsComeBack(t *testing.T) {
	t.Parallel()
	const (
		// The largest limit holds less than the largest price in a number that is as long.
		points, capacity = int64(cost.MaxPoints), int64(1 << 52)
		// Ten years to fill, twice: whoever has overdrawn a limit waits for as long as that.
		longest = 2*10*366*24*time.Hour - time.Millisecond
	)
	actual := points
	d := ran(left("minute", bucket.Points, capacity, capacity))
	d.Points, d.Charged, d.Actual, d.Correctable = points, points, &actual, true
	d.Limits[0].ResetAfter = longest
	require.Len(t, tell(t, d).extension, 195)
	d.Refunded = points
	require.Len(t, tell(t, d).extension, 195+28)

	// Names are the operator's.
	d.Limits[0].Limit.Name, d.Limits[0].Limit.Unit = strings.Repeat("n", 64), bucket.Unit(strings.Repeat("u", 64))
	d.Limits[0].Owner.Level, d.Limits[0].Limit.Mode = bucket.Operation, bucket.Shadow
	d.Mode, d.ShowShadow = bucket.Shadow, true
	require.Len(t, tell(t, d).extension, 195+28+len(`"level":"operation","mode":"shadow",`)+(64-len("minute"))+(64-len("points")))
}

// The numbers of A5: the requests were used up, and the answer spoke of the points.
func TestTheLimitThatRefusedStandsAtTheTop(t *testing.T) {
	t.Parallel()
	minute, requests := left("minute", bucket.Points, 1000, 926), left("requests", bucket.Requests, 60, 0)
	requests.Exceeded = true
	d := ran(minute, requests)
	d.Refuse(&decision.Refusal{Outcome: decision.Limited, Limit: requests.Limit, Owner: requests.Owner})
	require.Contains(t, tell(t, d).extension, `"limit":"requests","unit":"requests","capacity":60,"remaining":0,`)
	header := http.Header{}
	show.Headers(header, d, show.Draft6, &show.Policies{}, nil)
	require.Equal(t, "60", header.Get("RateLimit-Limit"))
}

func TestACallerIsToldWhyItsKeyIsIgnored(t *testing.T) {
	t.Parallel()
	for _, full := range []bool{false, true} {
		d := ran(left("minute", bucket.Points, 1000, 900))
		d.Full = full
		require.NotContains(t, tell(t, d).extension, "idempotencyKeyIgnored")
		d.KeyIgnored = true
		d.Subject.Anonymous = true
		require.Contains(t, tell(t, d).extension, `"idempotencyKeyIgnored":"you are anonymous`)
		d.Subject.Anonymous = false
		require.Contains(t, tell(t, d).extension, `"idempotencyKeyIgnored":"the headers of a WebSocket`)
		d.Points = 0
		require.Contains(t, tell(t, d).extension, `"idempotencyKeyIgnored":"the operation costs nothing`)
	}
}
