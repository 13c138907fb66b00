package main

import (
	"encoding/json"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

// graphql asks the GraphQL API, and returns what stands under the field that is asked for.
func (r *running) graphql(token, query string) any {
	r.Helper()
	body, err := json.Marshal(map[string]string{"query": query})
	require.NoError(r, err)
	var answer struct {
		Data   map[string]any
		Errors []struct {
			Message    string
			Extensions struct{ Code string }
		}
	}
	text := r.ask(http.StatusOK, http.MethodPost, "/graphql", token, string(body), "Content-Type", "application/json")
	require.NoError(r, json.Unmarshal([]byte(text), &answer), text)
	if len(answer.Errors) > 0 {
		return answer.Errors[0].Extensions.Code + ": " + answer.Errors[0].Message
	}
	for _, value := range answer.Data {
		return value
	}
	return nil
}

// plain asks over HTTP, and returns what is answered.
func (r *running) plain(status int, method, path, token string, headers ...string) map[string]any {
	r.Helper()
	var answer map[string]any
	text := r.ask(status, method, path, token, "", headers...)
	require.NoError(r, json.Unmarshal([]byte(text), &answer), text)
	return answer
}

// flat is an object of the GraphQL API as HTTP has it: what is empty is left out, and what a statement is of stands beside its numbers.
func flat(v any) any {
	switch v := v.(type) {
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = flat(v[i])
		}
		return list
	case map[string]any:
		object := map[string]any{}
		for name, value := range v {
			if summary, ok := value.(map[string]any); ok && name == "summary" {
				maps.Copy(object, flat(summary).(map[string]any))
				continue
			}
			if list, ok := value.([]any); value == nil || value == false || ok && len(list) == 0 && name != "lines" && name != "statements" {
				continue
			}
			object[name] = flat(value)
		}
		return object
	default:
		return v
	}
}

func TestStatementsAreTheSameOverHTTPAndGraphQL(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	r := start(t, data)
	token := r.issue("ada", r.token)
	day := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -5)
	keep(t, data, day)
	searched(t, data)
	const (
		org     = "/v1/orgs/acme%2F1/ratelimit/statements"
		summary = "number tenant from to frozen hash corrects new"
		all     = "summary { " + summary + " } collected unknown previous lines { unit field grade charged givenBack net calls } differences { unit field grade charged givenBack net calls } signed"
	)
	from, to := day.Format(time.DateOnly), day.AddDate(0, 0, 1).Format(time.DateOnly)
	freeze := func(token, period string) any {
		return flat(r.graphql(token, `mutation { freezeUsage(input: {`+period+`, reason: "why", idempotencyKey: "once"}) { statements { `+summary+` } left { tenant problem } next } }`))
	}
	period := `from: "` + from + `", to: "` + to + `"`
	made := r.plain(http.StatusOK, http.MethodPost, org+"?from="+from+"&to="+to, token, "Idempotency-Key", "once")
	require.Equal(t, made, freeze(token, `tenant: "acme/1", `+period), "a repeat by the other way, under the same key")
	require.Equal(t, true, made["statements"].([]any)[0].(map[string]any)["new"])
	// Without a key each says that it was there already.
	again := r.plain(http.StatusOK, http.MethodPost, "/v1/ratelimit/statements?from="+from+"&to="+to, token)
	require.Equal(t, again, flat(r.graphql(token, `mutation { freezeUsage(input: {`+period+`, reason: "why"}) { statements { `+summary+` } left { tenant problem } next } }`)))
	require.NotContains(t, again["statements"].([]any)[0], "new")

	keepLate(t, data, day)
	corrected := freeze(token, `tenant: "acme/1", `+period+`, ticket: "T-2"`)
	require.Equal(t, made, corrected, "the key was used: it is a repeat")
	r.plain(http.StatusOK, http.MethodPost, org+"?from="+from+"&to="+to, token)
	for _, number := range []string{"1", "2"} {
		told := flat(r.graphql(token, `{ statement(tenant: "acme/1", number: `+number+`) { `+all+` } }`))
		require.Equal(t, r.plain(http.StatusOK, http.MethodGet, org+"/"+number, token), told)
		require.NotEmpty(t, told.(map[string]any)["lines"])
	}
	for path, query := range map[string]string{
		org:                                   `{ statements(tenant: "acme/1") { nodes { ` + summary + ` } } }`,
		org + "?below=2":                      `{ statements(tenant: "acme/1", before: 2) { nodes { ` + summary + ` } } }`,
		"/v1/ratelimit/statements?limit=1":    `{ statements(first: 1) { nodes { ` + summary + ` } } }`,
		"/v1/orgs/other/ratelimit/statements": `{ statements(tenant: "other") { nodes { ` + summary + ` } } }`,
	} {
		nodes := r.graphql(token, query).(map[string]any)["nodes"]
		require.Equal(t, r.plain(http.StatusOK, http.MethodGet, path, token)["statements"], flat(nodes), query)
	}
	r.sameRefusals(token, org)
	require.Equal(t, 2, r.frozen(token), "each statement is an entry of the audit log, whoever has asked for it")
}

// sameRefusals checks that what the one refuses the other refuses too, in the same words.
func (r *running) sameRefusals(token, org string) {
	r.Helper()
	for query, path := range map[string]string{
		`month: "2026-13"`:                     "?month=2026-13",
		`month: "2999-01"`:                     "?month=2999-01",
		`month: "1999-01"`:                     "?month=1999-01",
		`from: "2026-10-01"`:                   "?from=2026-10-01",
		`from: "2026-10-02", to: "2026-10-01"`: "?from=2026-10-02&to=2026-10-01",
	} {
		told := r.plain(http.StatusUnprocessableEntity, http.MethodPost, org+path, token)
		require.Equal(r, "INVALID: "+told["detail"].(string), r.graphql(token, `mutation { freezeUsage(input: {tenant: "acme/1", `+query+`, reason: "why"}) { next } }`), path)
	}
	var issued struct{ Token string }
	answer := r.ask(http.StatusCreated, http.MethodPost, "/v1/tokens", token, `{"subject": "theirs", "roles": ["tenant-admin"], "tenants": ["other"]}`)
	require.NoError(r, json.Unmarshal([]byte(answer), &issued))
	for _, path := range []string{org, org + "/1", "/v1/ratelimit/statements"} {
		r.plain(http.StatusForbidden, http.MethodGet, path, issued.Token)
	}
	r.plain(http.StatusForbidden, http.MethodPost, "/v1/orgs/other/ratelimit/statements?month=2026-01", issued.Token)
	for _, query := range []string{
		`{ statements(tenant: "acme/1") { nodes { number } } }`, `{ statement(tenant: "acme/1", number: 1) { signed } }`, `{ statements { nodes { number } } }`,
		`mutation { freezeUsage(input: {tenant: "other", month: "2026-01", reason: "why"}) { next } }`,
	} {
		require.Contains(r, r.graphql(issued.Token, query), "FORBIDDEN", query)
	}
	r.plain(http.StatusNotFound, http.MethodGet, "/v1/orgs/other/ratelimit/statements/1", issued.Token)
	require.Nil(r, r.graphql(issued.Token, `{ statement(tenant: "other", number: 1) { signed } }`))
}

// frozen is how many entries of the audit log are of statements.
func (r *running) frozen(token string) int {
	r.Helper()
	return len(r.plain(http.StatusOK, http.MethodGet, "/v1/audit/entries?action=usage.freeze", token)["entries"].([]any))
}

// searched has the file of a daemon know that the store of budgets was searched.
func searched(t *testing.T, data string) {
	t.Helper()
	count(t, data, func(tx *store.UsageTx) error {
		for _, pass := range []string{"told", "search"} {
			if err := tx.PutUsagePass(pass, time.Now().Unix()/60); err != nil {
				return err
			}
		}
		return nil
	})
}

// keepLate has it have what was settled late.
func keepLate(t *testing.T, data string, day time.Time) {
	t.Helper()
	count(t, data, func(tx *store.UsageTx) error {
		_, err := tx.PutUsage([]store.UsageCount{{Tenant: "acme/1", Minute: day.Unix() / 60, Unit: "points", Generation: 3, GivenBack: 4}})
		return err
	})
}
