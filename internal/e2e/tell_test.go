package e2e_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// message returns that of the first error.
func (r reply) message(t *testing.T) string {
	t.Helper()
	var body struct {
		Errors []struct{ Message string }
	}
	require.NoError(t, json.Unmarshal([]byte(r.Body), &body))
	require.NotEmpty(t, body.Errors, r.Body)
	return body.Errors[0].Message
}

// TestEveryRefusalSaysWhatHelps has the whole texts, with and without their numbers: what it is, how much, when to
// come back, what to change.
func TestEveryRefusalSaysWhatHelps(t *testing.T) {
	t.Parallel()
	everything := tiers.Hide{Cost: true, Limits: true, Remaining: true, Owners: true}
	for name, test := range map[string]struct {
		before, last     request
		away             bool
		code, text, bare string
	}{
		"limited": {
			request{Query: listQuery},
			request{Query: listQuery},
			false, ratelimitclient.CodeRateLimited,
			`rate limit "minute" of this tenant exceeded: 62 points needed, 38 of 100 left, try again in 14.4s or ask for less`,
			`rate limit "minute" of this tenant exceeded: try again in 14.4s or ask for less`,
		},
		"never": {
			request{Query: cheapQuery},
			request{Query: `{ users(first: 100) { name } }`},
			false, ratelimitclient.CodeCostLimitExceeded,
			`the operation needs 102 points, more than the limit "minute" of this tenant can ever hold (100): ask for less at a time; 99 % of that is Query.users, a list of 100 (first)`,
			`the operation needs more points than the limit "minute" of this tenant can ever hold: ask for less at a time`,
		},
		"too expensive": {
			request{Query: cheapQuery},
			request{Query: `{ users(first: 1000) { name } }`},
			false, ratelimitclient.CodeCostLimitExceeded,
			"the operation costs 1002 points, the limit for one operation is 500: ask for fewer list items or fields; " +
				"99 % of that is Query.users, a list of 1000 (first)",
			"the operation costs more than one operation may: ask for fewer list items or fields",
		},
		"shape": {
			request{Query: cheapQuery},
			request{Query: `{ a: me { b: name } }`},
			false, ratelimitclient.CodeQueryLimitExceeded,
			"there are too many aliases: 2 given, 1 allowed", "there are too many aliases: 2 given",
		},
		"blocked": {
			request{Query: cheapQuery},
			request{Query: cheapQuery, Tenant: "blocked"},
			false, ratelimitclient.CodeTenantBlocked,
			"this account may not use the API: contact support", "",
		},
		"store away": {
			request{Query: cheapQuery},
			request{Query: cheapQuery, Tenant: "closed"},
			true, ratelimitclient.CodeUnavailable,
			"rate limiting is temporarily unavailable: nothing was run, try again", "",
		},
	} {
		for _, hide := range []tiers.Hide{{}, everything} {
			want := test.text
			if hide == everything && test.bare != "" {
				want = test.bare
			}
			var decided *ratelimit.RefusedError
			f := newFixture(t, func(cfg *ratelimit.Config) {
				cfg.Response.Hide, cfg.Pricing.Cost.Shape = hide, cost.Shape{MaxAliases: 1}
			})
			see(f.server, func(d ratelimit.Decision) { decided = d.Refusal })
			f.post(test.before)
			if test.away {
				f.store.Fail(bucket.ErrUnavailable)
			}
			reply := f.post(test.last)
			require.Equal(t, test.code, reply.errorCode(t), name)
			require.Equal(t, want, reply.message(t), name)
			require.Equal(t, test.code, decided.Code)
			if name == "too expensive" {
				require.EqualValues(t, 500, decided.MaxCost, "the operator sees what the client does not")
			}
		}
	}
}

func TestALimitInRequestsIsNotToldToAskForLess(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	var last reply
	for range 21 {
		last = f.post(request{Query: `{ __typename }`})
	}
	require.Equal(t, `rate limit "requests" of this tenant exceeded: 0 of 20 requests left, try again in 3s`, last.message(t))
}

func TestARefusalOfAChargeHidesWhatThatOfAnOperationDoes(t *testing.T) {
	t.Parallel()
	for _, hidden := range []bool{false, true} {
		f := newFixture(t, func(cfg *ratelimit.Config) {
			cfg.Response.Hide = tiers.Hide{Cost: hidden, Limits: hidden, Remaining: hidden, Owners: hidden}
		})
		f.resolver.OnExport = func(ctx context.Context, rows int) error {
			if err := ratelimit.Charge(ctx, "exports", 6); err != nil {
				return err
			}
			return ratelimit.Charge(ctx, "exports", int64(rows))
		}
		want := `rate limit "exports" of this operation exceeded: 7 exports needed, 4 of 10 left, try again in 18m0s or ask for less`
		if hidden {
			want = `rate limit "exports" of this operation exceeded: try again in 18m0s or ask for less`
		}
		reply := f.post(request{Query: `{ export(rows: 7) }`})
		require.Equal(t, want, reply.message(t))
		refusal, refused := ratelimitclient.FromErrors(json.RawMessage(errorsOf(t, reply)))
		require.True(t, refused)
		require.Equal(t, map[bool]string{false: "Query.export", true: "1"}[hidden], refusal.Owner)
	}
}

// errorsOf returns the errors of an answer as they stand there.
func errorsOf(t *testing.T, r reply) []byte {
	t.Helper()
	var body struct{ Errors json.RawMessage }
	require.NoError(t, json.Unmarshal([]byte(r.Body), &body))
	return body.Errors
}
