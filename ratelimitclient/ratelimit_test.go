package ratelimitclient_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// admitted is a response as the server sends it.
const admitted = `{
	"cost": 42, "charged": 42, "limit": "minute", "unit": "points", "capacity": 1000, "remaining": 958, "resetAfter": 2.52,
	"limits": [
		{"name": "minute", "level": "tenant", "unit": "points", "capacity": 1000, "remaining": 958, "resetAfter": 2.52},
		{"name": "burst", "level": "operation", "owner": "Mutation.checkout", "unit": "requests",
		 "capacity": 5, "remaining": 0, "resetAfter": 0.25, "exceeded": true}
	],
	"tier": "free", "mode": "shadow", "replayed": false, "wouldRefuse": "RATE_LIMITED"
}`

func admittedValue() ratelimitclient.RateLimit {
	return ratelimitclient.RateLimit{
		Cost: 42, Charged: 42, Limit: "minute", Unit: "points", Capacity: 1000, Remaining: 958, ResetAfter: 2.52,
		Limits: []ratelimitclient.Limit{
			{Name: "minute", Level: "tenant", Unit: "points", Capacity: 1000, Remaining: 958, ResetAfter: 2.52},
			{
				Name: "burst", Level: "operation", Owner: "Mutation.checkout", Unit: "requests",
				Capacity: 5, Remaining: 0, ResetAfter: 0.25, Exceeded: true,
			},
		},
		Tier: "free", Mode: "shadow", WouldRefuse: "RATE_LIMITED",
	}
}

func TestRateLimitHasTheDocumentedForm(t *testing.T) {
	t.Parallel()

	t.Run("encoded", func(t *testing.T) {
		t.Parallel()
		data, err := json.Marshal(admittedValue())
		require.NoError(t, err)
		require.JSONEq(t, admitted, string(data))
	})

	t.Run("decoded", func(t *testing.T) {
		t.Parallel()
		var got ratelimitclient.RateLimit
		require.NoError(t, json.Unmarshal([]byte(admitted), &got))
		require.Equal(t, admittedValue(), got)
	})

	t.Run("optional facts are left out when there is nothing to say", func(t *testing.T) {
		t.Parallel()
		data, err := json.Marshal(ratelimitclient.RateLimit{Limits: []ratelimitclient.Limit{{Name: "day"}}})
		require.NoError(t, err)
		require.JSONEq(t, `{
			"cost": 0, "charged": 0, "capacity": 0, "remaining": 0, "resetAfter": 0, "tier": "", "mode": "", "replayed": false,
			"limits": [{"name": "day", "level": "", "unit": "", "capacity": 0, "remaining": 0, "resetAfter": 0}]
		}`, string(data))
	})

	t.Run("what happened to the store and to the retry is told", func(t *testing.T) {
		t.Parallel()
		want := ratelimitclient.RateLimit{
			Limits: []ratelimitclient.Limit{}, Replayed: true, RetryAfter: 1.5, StoreUnavailable: true,
		}
		data, err := json.Marshal(want)
		require.NoError(t, err)
		require.JSONEq(t, `{
			"cost": 0, "charged": 0, "capacity": 0, "remaining": 0, "resetAfter": 0, "tier": "", "mode": "",
			"limits": [], "replayed": true, "retryAfter": 1.5, "storeUnavailable": true
		}`, string(data))
		var got ratelimitclient.RateLimit
		require.NoError(t, json.Unmarshal(data, &got))
		require.Equal(t, want, got)
	})
}

func TestAShortAnswerIsReadAsOneAndWrittenWithoutAListOfLimits(t *testing.T) {
	t.Parallel()
	const short = `{"cost": 42, "charged": 42, "actual": 17, "limit": "minute", "level": "user", "unit": "points",
		"capacity": 1000, "remaining": 983, "resetAfter": 1.02}`
	var got ratelimitclient.RateLimit
	require.NoError(t, json.Unmarshal([]byte(short), &got))
	actual := int64(17)
	require.Equal(t, ratelimitclient.RateLimit{
		Cost: 42, Charged: 42, Actual: &actual, Limit: "minute", Level: "user", Unit: "points",
		Capacity: 1000, Remaining: 983, ResetAfter: 1.02,
	}, got)
	data, err := json.Marshal(got)
	require.NoError(t, err)
	require.NotContains(t, string(data), `"limits"`)

	require.NoError(t, json.Unmarshal([]byte(`{"limits": []}`), &got))
	require.NotNil(t, got.Limits, "a full answer without limits is no short one")
}

func TestRateLimitIgnoresUnknownFields(t *testing.T) {
	t.Parallel()
	var got ratelimitclient.RateLimit
	require.NoError(t, json.Unmarshal([]byte(`{"cost": 3, "actual": 2e2, "refunded": 1e30, "new": {"deep": [1, {}]}, "limits": [
		{"name": "day", "capacity": 9, "mode": "warn", "pace": "slow"}]}`), &got))
	actual := int64(200)
	require.Equal(t, ratelimitclient.RateLimit{
		Cost: 3, Actual: &actual, Refunded: math.MaxInt64, Limits: []ratelimitclient.Limit{{Name: "day", Capacity: 9, Mode: "warn"}},
	}, got)
}

func TestRateLimitReadsAnyWholeNumberAndSaturates(t *testing.T) {
	t.Parallel()
	for written, want := range map[string]int64{
		"7":                    7,
		"7.0":                  7,
		"7e2":                  700,
		"-7":                   -7,
		"null":                 0,
		"9007199254740993":     9007199254740993,
		"9223372036854775807":  math.MaxInt64,
		"9223372036854775808":  math.MaxInt64,
		"1e999":                math.MaxInt64,
		"-9223372036854775808": math.MinInt64,
		"-1e999":               math.MinInt64,
	} {
		t.Run(written, func(t *testing.T) {
			t.Parallel()
			var got ratelimitclient.RateLimit
			require.NoError(t, json.Unmarshal([]byte(`{"cost":`+written+`,"charged":`+written+`,"capacity":`+written+
				`,"remaining":`+written+`,"limits":[{"capacity":`+written+`,"remaining":`+written+`}]}`), &got))
			require.Equal(t, ratelimitclient.RateLimit{
				Cost: want, Charged: want, Capacity: want, Remaining: want,
				Limits: []ratelimitclient.Limit{{Capacity: want, Remaining: want}},
			}, got)
		})
	}
}

func TestRateLimitRefusesWhatIsNoWholeNumber(t *testing.T) {
	t.Parallel()
	for _, field := range []string{"cost", "charged", "capacity", "remaining"} {
		for _, written := range []string{"1.5", `"7"`, "true", "[]", "{}"} {
			t.Run(field+" "+written, func(t *testing.T) {
				t.Parallel()
				var got ratelimitclient.RateLimit
				require.Error(t, json.Unmarshal([]byte(`{"`+field+`":`+written+`}`), &got))
			})
		}
	}
	for _, field := range []string{"capacity", "remaining"} {
		t.Run("limits "+field, func(t *testing.T) {
			t.Parallel()
			var got ratelimitclient.RateLimit
			require.Error(t, json.Unmarshal([]byte(`{"limits":[{"`+field+`":0.5}]}`), &got))
		})
	}
}

func TestRateLimitKeepsFieldsThatTheJSONDoesNotHave(t *testing.T) {
	t.Parallel()
	got := admittedValue()
	require.NoError(t, json.Unmarshal([]byte(`{"remaining": 1}`), &got))
	want := admittedValue()
	want.Remaining = 1
	require.Equal(t, want, got)
}

func TestALimitThatIsANumberIsAnErrorAndNotTheNameOfOne(t *testing.T) {
	t.Parallel()
	var r ratelimitclient.RateLimit
	require.ErrorContains(t, json.Unmarshal([]byte(`{"cost": 62, "charged": 62, "limit": 100, "remaining": 38, "resetAfter": 37.2}`), &r), "limit")
}
