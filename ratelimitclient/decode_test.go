package ratelimitclient_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

const refused = `{
	"errors": [
		{"message": "something else", "path": ["a", 1], "extensions": {"code": "NOT_FOUND"}},
		{"message": "try again in 1.5s", "extensions": {"code": "RATE_LIMITED", "retryAfter": 1.5,
			"limit": "minute", "level": "tenant", "unit": "points"}},
		{"message": "a second one", "extensions": {"code": "TENANT_BLOCKED"}}
	],
	"data": null,
	"extensions": {"tracing": {}, "rateLimit": ` + admitted + `}
}`

func refusedValue() ratelimitclient.Refusal {
	return ratelimitclient.Refusal{
		Code: "RATE_LIMITED", Message: "try again in 1.5s", RetryAfter: 1500 * time.Millisecond,
		Limit: "minute", Level: "tenant", Unit: "points",
	}
}

func TestFromResponseReadsTheBudgetAndTheFirstRefusal(t *testing.T) {
	t.Parallel()
	want, refusal := admittedValue(), refusedValue()
	got, err := ratelimitclient.FromResponse([]byte(refused))
	require.NoError(t, err)
	require.Equal(t, ratelimitclient.Response{RateLimit: &want, Refusal: &refusal}, got)
}

func TestFromResponseOfOtherServersSaysNothing(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{}`,
		`null`,
		`{"data": {"rateLimit": 1}}`,
		`{"data": null, "errors": [{"message": "no"}], "extensions": {"cost": 1}}`,
		`{"errors": null, "extensions": null}`,
		`{"errors": {"extensions": {"code": "RATE_LIMITED"}}}`,
		`{"extensions": {"rateLimit": null}}`,
	} {
		got, err := ratelimitclient.FromResponse([]byte(body))
		require.NoError(t, err, body)
		require.Zero(t, got, body)
	}
}

func TestFromResponseReturnsTheRefusalEvenIfTheBudgetIsMalformed(t *testing.T) {
	t.Parallel()
	for _, extensions := range []string{`7`, `{"rateLimit": 7}`, `{"rateLimit": {"cost": "x"}}`} {
		got, err := ratelimitclient.FromResponse(
			[]byte(`{"errors": [{"extensions": {"code": "TENANT_BLOCKED"}}], "extensions": ` + extensions + `}`))
		require.Error(t, err, extensions)
		require.Equal(t, ratelimitclient.Response{Refusal: &ratelimitclient.Refusal{Code: "TENANT_BLOCKED"}}, got)
	}
}

func TestFromResponseReportsWhatIsNoResponse(t *testing.T) {
	t.Parallel()
	for _, body := range []string{``, `7`, `[]`, `<html>`, `{"errors": [`, strings.Repeat("[", 20_000)} {
		got, err := ratelimitclient.FromResponse([]byte(body))
		require.Error(t, err)
		require.Zero(t, got)
	}
}

func TestFromExtensionsReadsEveryFormThatClientsHave(t *testing.T) {
	t.Parallel()
	raw := []byte(`{"tracing": {}, "rateLimit": ` + admitted + `}`)
	var decoded map[string]any
	require.NoError(t, json.Unmarshal(raw, &decoded))
	// A map may also hold what cannot be marshalled, as long as it is none of ours.
	decoded["other"] = func() {}
	type named map[string]any

	for form, extensions := range map[string]any{
		"bytes":                  raw,
		"raw JSON":               json.RawMessage(raw),
		"a map":                  decoded,
		"a map of another type":  named{"rateLimit": decoded["rateLimit"]},
		"a struct of the client": struct{ RateLimit json.RawMessage }{json.RawMessage(admitted)},
		"the server's own": map[string]any{
			"rateLimit": admittedValue(),
		},
	} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			got, ok, err := ratelimitclient.FromExtensions(extensions)
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, admittedValue(), got)
		})
	}
}

func TestFromExtensionsReadsASaturatedCostThatWasDecodedIntoAFloat(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(map[string]any{"rateLimit": ratelimitclient.RateLimit{Cost: math.MaxInt64}})
	require.NoError(t, err)
	var extensions map[string]any
	require.NoError(t, json.Unmarshal(data, &extensions))
	got, ok, err := ratelimitclient.FromExtensions(extensions)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, ratelimitclient.RateLimit{Cost: math.MaxInt64}, got)
}

func TestFromExtensionsTellsAbsentFromMalformed(t *testing.T) {
	t.Parallel()
	for _, absent := range []any{
		nil, map[string]any(nil), map[string]any{"rateLimit": nil}, []byte(nil), []byte(`{}`), json.RawMessage(`null`),
	} {
		_, ok, err := ratelimitclient.FromExtensions(absent)
		require.NoError(t, err)
		require.False(t, ok)
	}
	for _, malformed := range []any{
		7, []byte(`{`), []byte(`[]`), map[string]any{"rateLimit": "x"}, map[string]any{"rateLimit": func() {}}, func() {},
	} {
		got, ok, err := ratelimitclient.FromExtensions(malformed)
		require.Error(t, err)
		require.False(t, ok)
		require.Zero(t, got)
	}
}

func TestFromErrorsReadsEveryFormThatClientsHave(t *testing.T) {
	t.Parallel()
	var response struct {
		Errors json.RawMessage `json:"errors"`
	}
	require.NoError(t, json.Unmarshal([]byte(refused), &response))
	var genqlient gqlerror.List
	require.NoError(t, json.Unmarshal(response.Errors, &genqlient))
	// The list of hasura/go-graphql-client has these fields and tags.
	var hasura []struct {
		Message    string         `json:"message"`
		Extensions map[string]any `json:"extensions"`
		Path       []any          `json:"path"`
	}
	require.NoError(t, json.Unmarshal(response.Errors, &hasura))

	for form, list := range map[string]any{
		"bytes":                 []byte(response.Errors),
		"raw JSON":              response.Errors,
		"the list of genqlient": genqlient,
		"the list of hasura":    hasura,
	} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			got, ok := ratelimitclient.FromErrors(list)
			require.True(t, ok)
			require.Equal(t, refusedValue(), *got)
		})
	}
}

func TestFromErrorsKnowsEveryCodeAndNoOther(t *testing.T) {
	t.Parallel()
	list := func(code string) []byte { return []byte(`[{"extensions":{"code":"` + code + `"}}]`) }
	for code := range codes {
		got, ok := ratelimitclient.FromErrors(list(code))
		require.True(t, ok, code)
		require.Equal(t, &ratelimitclient.Refusal{Code: code}, got)
	}
	for _, code := range []string{"", "rate_limited", "UNAUTHENTICATED", "RATE_LIMITED "} {
		_, ok := ratelimitclient.FromErrors(list(code))
		require.False(t, ok, code)
	}
}

func TestFromErrorsLeavesOutWhatIsMalformed(t *testing.T) {
	t.Parallel()
	got, ok := ratelimitclient.FromErrors([]byte(`[
		7, null, [], "x", {"extensions": []}, {"extensions": {"code": 7}},
		{"message": 7, "extensions": {"retryAfter": "soon", "limit": 7, "cost": "much", "maxCost": 1.5,
			"level": {}, "unit": "points", "code": "COST_LIMIT_EXCEEDED"}}]`))
	require.True(t, ok)
	require.Equal(t, &ratelimitclient.Refusal{Code: "COST_LIMIT_EXCEEDED", Unit: "points"}, got)
}

func TestFromErrorsOfWhatIsNoListReturnsNone(t *testing.T) {
	t.Parallel()
	for _, list := range []any{nil, 7, func() {}, []byte(nil), []byte(`{}`), []byte(`[`), []byte(`[{]`), []byte(`[]`)} {
		got, ok := ratelimitclient.FromErrors(list)
		require.False(t, ok)
		require.Nil(t, got)
	}
}

func FuzzFromResponse(f *testing.F) {
	f.Add([]byte(refused))
	f.Add([]byte(`{"extensions": {"rateLimit": {"cost": 1e999, "limits": [{}]}}}`))
	f.Add([]byte(`{"errors": [{"extensions": {"code": "RATE_LIMITED", "retryAfter": -1e308}}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		response, err := ratelimitclient.FromResponse(body)
		if response.RateLimit != nil {
			require.NoError(t, err)
			written, err := json.Marshal(map[string]any{"rateLimit": response.RateLimit})
			require.NoError(t, err)
			again, ok, err := ratelimitclient.FromExtensions(written)
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, *response.RateLimit, again)
		}
		if response.Refusal != nil {
			require.GreaterOrEqual(t, response.Refusal.RetryAfter, time.Duration(0))
			require.Contains(t, codes, response.Refusal.Code)
			require.NotEmpty(t, response.Refusal.Error())
		}
	})
}
