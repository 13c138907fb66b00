package show_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
	"github.com/gqlgen-ratelimit/ratelimit/internal/show"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// byRule is a decision that a limit of one of two operation rules has refused.
func byRule(hide tiers.Hide) *decision.Decision {
	limit := &bucket.Limit{Name: "minute", Unit: bucket.Points, Capacity: 1000, Refill: 1000, Period: time.Minute}
	first, second := bucket.Owner{Level: bucket.Operation, Name: "Query.a*"}, bucket.Owner{Level: bucket.Operation, Name: "Query.b*"}
	d := &decision.Decision{
		Subject: tiers.Subject{Tenant: "acme"}, Tier: "pro", Points: 30, Hide: hide,
		Rules:  &tiers.Rules{Buckets: []bucket.Bucket{{}, {Owner: first}, {Owner: second}}},
		Limits: []bucket.LimitState{{Owner: second, Limit: limit, Asked: 30, Remaining: 20, Exceeded: true, RetryAfter: time.Second}},
	}
	d.Refuse(decision.RefusedBy(d.Limits))
	d.Refusal.ID = "3R2FISY5QO7WUCFQ3E2EEUFWSX"
	return d
}

func TestARefusalSaysTheSameInItsErrorItsHeadersAndTheExtension(t *testing.T) {
	t.Parallel()
	d := byRule(tiers.Hide{})
	shown := show.Error(d, d.Refusal, "")
	require.Equal(t, `rate limit "minute" of this operation exceeded: 30 points needed, 20 of 1000 left, try again in 1s or ask for less`,
		shown.Message)
	require.Equal(t, map[string]any{
		"code": ratelimitclient.CodeRateLimited, "refusalId": d.Refusal.ID, "retryAfter": 1.0,
		"limit": "minute", "level": "operation", "owner": "Query.b*", "unit": "points",
	}, shown.Extensions)
	header := http.Header{}
	show.Headers(header, d, show.Draft10, &show.Policies{}, nil)
	require.Equal(t, []string{"1"}, header["Retry-After"])
	require.Equal(t, []string{`"operation:Query.b*:minute";r=20;t=1`}, header["Ratelimit"])
	extension, whole := show.Extension(d).(ratelimitclient.RateLimit)
	require.True(t, whole)
	require.InDelta(t, 1, extension.RetryAfter, 0)
	require.EqualValues(t, 20, extension.Remaining)
}

func TestAHiddenOperationRuleHasItsNumberAmongTheRulesAlsoWhereNoOtherWasJudged(t *testing.T) {
	t.Parallel()
	d := byRule(tiers.Hide{Cost: true, Limits: true, Remaining: true, Owners: true})
	shown := show.Error(d, d.Refusal, "")
	require.Equal(t, `rate limit "minute" of this operation exceeded: try again in 1s or ask for less`, shown.Message)
	require.Equal(t, "2", shown.Extensions["owner"])
}

func TestPartsOfAnOperationAreToldApartByNumbersAndNeverNamed(t *testing.T) {
	t.Parallel()
	d := byRule(tiers.Hide{})
	for i, part := range []string{"ann", "0a1b2c"} {
		l := d.Limits[0]
		l.Owner.Part = part
		d.Rules.Buckets = append(d.Rules.Buckets, bucket.Bucket{Owner: l.Owner})
		d.Limits = append(d.Limits[:i+1:i+1], l)
	}
	d.Refuse(decision.RefusedBy(d.Limits[2:]))
	shown := show.Error(d, d.Refusal, "")
	require.Equal(t, "Query.b*#2", shown.Extensions["owner"])
	header := http.Header{}
	show.Headers(header, d, show.Draft10, &show.Policies{}, nil)
	require.Equal(t, []string{`"operation:Query.b*:minute";r=20;t=1, "operation:Query.b*#1:minute";r=20;t=1, "operation:Query.b*#2:minute";r=20;t=1`},
		header["Ratelimit"])
	require.NotContains(t, shown.Message+fmt.Sprint(header, show.Extension(d)), "0a1b2c")
}

func TestEveryRefusalWithoutNumbersHasAText(t *testing.T) {
	t.Parallel()
	for _, outcome := range []decision.Outcome{
		decision.Blocked, decision.Unavailable, decision.Busy, decision.Limited, decision.SubjectUnknown, decision.KeyReused,
		decision.InFlight, decision.OutcomeUnknown, decision.AnswerUnavailable, decision.CostRequestForbidden,
	} {
		require.NotEmpty(t, show.Message(&decision.Decision{}, &decision.Refusal{Outcome: outcome}), outcome)
	}
}

func TestWhoIsBlockedReadsWhatIsBlocked(t *testing.T) {
	t.Parallel()
	for want, owner := range map[string]bucket.Owner{
		"this account may not use the API: contact support":                            {},
		"this team may not use the API: contact support":                               {Level: bucket.Team, Name: "web"},
		"this user may not use the API: contact support":                               {Level: bucket.User, Name: "mallory"},
		"Mutation.login is blocked for now, other operations are not: contact support": {Level: bucket.Operation, Name: "Mutation.login", Part: "user:mallory"},
	} {
		r := &decision.Refusal{Outcome: decision.Blocked, BlockedBy: &bucket.Override{Owner: owner, Blocked: true, Reason: "secret", Actor: "ops"}}
		require.Equal(t, want, show.Message(&decision.Decision{}, r))
		hidden := show.Message(&decision.Decision{Hide: tiers.Hide{Owners: true}}, r)
		require.NotContains(t, hidden, "Mutation.login")
		require.Equal(t, owner.Level == bucket.Operation, hidden != want)
	}
}
