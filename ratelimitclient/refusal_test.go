package ratelimitclient_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// codes are all codes of the design, with whether the same request can pass later.
var codes = map[string]bool{
	"RATE_LIMITED":                   true,
	"COST_LIMIT_EXCEEDED":            false,
	"QUERY_LIMIT_EXCEEDED":           false,
	"TENANT_BLOCKED":                 false,
	"RATE_LIMIT_UNAVAILABLE":         true,
	"SUBJECT_UNKNOWN":                false,
	"IDEMPOTENCY_KEY_INVALID":        false,
	"IDEMPOTENCY_KEY_REUSED":         false,
	"IDEMPOTENCY_IN_FLIGHT":          true,
	"IDEMPOTENCY_ANSWER_UNAVAILABLE": false,
	"IDEMPOTENCY_OUTCOME_UNKNOWN":    false,
}

func TestRefusalHasTheDocumentedForm(t *testing.T) {
	t.Parallel()
	const form = `{"code": "RATE_LIMITED", "retryAfter": 1.5, "limit": "minute", "level": "operation",
		"owner": "Mutation.checkout", "unit": "points", "cost": 42, "maxCost": 500, "helpUrl": "https://example.com/limits"}`
	refusal := ratelimitclient.Refusal{
		Code: ratelimitclient.CodeRateLimited, RetryAfter: 1500 * time.Millisecond,
		Limit: "minute", Level: "operation", Owner: "Mutation.checkout", Unit: "points", Cost: 42, MaxCost: 500,
		HelpURL: "https://example.com/limits",
	}

	data, err := json.Marshal(refusal)
	require.NoError(t, err)
	require.JSONEq(t, form, string(data))

	var got ratelimitclient.Refusal
	require.NoError(t, json.Unmarshal([]byte(form), &got))
	require.Equal(t, refusal, got)

	data, err = json.Marshal(&ratelimitclient.Refusal{Code: "TENANT_BLOCKED", Message: "no", RetryAfter: -time.Second})
	require.NoError(t, err)
	require.JSONEq(t, `{"code": "TENANT_BLOCKED"}`, string(data))
}

func TestRefusalSurvivesARoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		millis := rapid.Int64Range(0, math.MaxInt64/int64(time.Millisecond)).Draw(t, "retry after in ms")
		want := ratelimitclient.Refusal{
			Code:       rapid.SampledFrom(codeNames()).Draw(t, "code"),
			Message:    rapid.StringOf(rapid.RuneFrom(nil, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Zs)).Draw(t, "message"),
			RetryAfter: time.Duration(millis) * time.Millisecond,
			Limit:      rapid.String().Draw(t, "limit"),
			Layer:      rapid.String().Draw(t, "layer"),
			Level:      rapid.String().Draw(t, "level"),
			Owner:      rapid.String().Draw(t, "owner"),
			Unit:       rapid.String().Draw(t, "unit"),
			Cost:       rapid.Int64().Draw(t, "cost"),
			MaxCost:    rapid.Int64().Draw(t, "max cost"),
		}
		list, err := json.Marshal([]any{map[string]any{"message": want.Message, "extensions": want}})
		require.NoError(t, err)
		got, ok := ratelimitclient.FromErrors(list)
		require.True(t, ok)
		require.Equal(t, want, *got)
	})
}

func codeNames() []string {
	names := make([]string, 0, len(codes))
	for code := range codes {
		names = append(names, code)
	}
	return names
}

func TestRefusalKeepsItsMessageWhenItsExtensionsAreRead(t *testing.T) {
	t.Parallel()
	got := ratelimitclient.Refusal{Message: "too fast", Unit: "points"}
	require.NoError(t, json.Unmarshal([]byte(`{"code": "RATE_LIMITED"}`), &got))
	require.Equal(t, ratelimitclient.Refusal{Code: "RATE_LIMITED", Message: "too fast"}, got)
	require.Error(t, json.Unmarshal([]byte(`{"code": 1}`), &got))
}

func TestRefusalWaitIsNeverShorterThanTheServerSaid(t *testing.T) {
	t.Parallel()
	for wait, want := range map[time.Duration]time.Duration{
		time.Nanosecond:                    time.Millisecond,
		time.Millisecond + time.Nanosecond: 2 * time.Millisecond,
		1100 * time.Millisecond:            1100 * time.Millisecond,
		1001 * time.Millisecond:            1001 * time.Millisecond,
		// A float64 does not hold these nanoseconds.
		584115552259 * time.Millisecond: 584115552259 * time.Millisecond,
		math.MaxInt64:                   math.MaxInt64,
	} {
		data, err := json.Marshal(ratelimitclient.Refusal{RetryAfter: wait})
		require.NoError(t, err)
		var got ratelimitclient.Refusal
		require.NoError(t, json.Unmarshal(data, &got))
		require.GreaterOrEqual(t, got.RetryAfter, wait)
		require.Equal(t, want, got.RetryAfter)
	}
}

func TestRefusalWaitIsBounded(t *testing.T) {
	t.Parallel()
	for written, want := range map[string]time.Duration{
		"-3":                   0,
		"-1e308":               0,
		"0.0000001":            0,
		"0.00025":              time.Millisecond,
		"1.0001":               1001 * time.Millisecond,
		"9223372036":           9223372036 * time.Second,
		"9223372036.854775807": math.MaxInt64,
		"1e308":                math.MaxInt64,
	} {
		var got ratelimitclient.Refusal
		require.NoError(t, json.Unmarshal([]byte(`{"retryAfter":`+written+`}`), &got))
		require.Equal(t, want, got.RetryAfter, written)
	}
}

func TestTemporaryIsWhatWaitingHelps(t *testing.T) {
	t.Parallel()
	for code, want := range codes {
		require.Equal(t, want, (&ratelimitclient.Refusal{Code: code}).Temporary(), code)
	}
	require.False(t, (&ratelimitclient.Refusal{Code: "FORBIDDEN"}).Temporary())
}

func TestRefusalErrorIsTheMessageElseTheCode(t *testing.T) {
	t.Parallel()
	require.EqualError(t, &ratelimitclient.Refusal{Code: "RATE_LIMITED", Message: "too fast"}, "too fast")
	require.EqualError(t, &ratelimitclient.Refusal{Code: "RATE_LIMITED"}, "ratelimitclient: refused: RATE_LIMITED")
}
