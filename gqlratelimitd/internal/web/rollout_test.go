package web_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
)

const (
	rollouts  = "/v1/ratelimit/rollout"
	gradually = rollouts + "?plan=gradual"
)

// grown is document with more of a limit: it takes no second person.
var grown = strings.Replace(document, "1000", "2000", 1)

// started begins a roll-out.
func started(s *scene) string {
	s.want(http.StatusOK, s.ask(http.MethodPost, gradually, s.admin, on(`"1"`), grown))
	return ""
}

// halted begins a roll-out and halts it.
func halted(s *scene) string {
	started(s)
	s.want(http.StatusOK, s.ask(http.MethodPost, rollouts+"/halt", s.admin, on(`"2"`), ""))
	return ""
}

// rolloutAttempts are those of roll-outs, once the policy of revision 2 is there.
func rolloutAttempts() []attempt {
	const get, start = "GET " + rollouts, "POST " + rollouts
	all := []attempt{
		{status: 404, route: get},
		{status: 400, route: get, path: "?nothing=1"},
		{status: 428, route: start, path: gradually, h: because(), body: grown},
		{status: 400, route: start, path: gradually + "&nothing=1", h: on(`"2"`), body: grown},
		{status: 412, route: start, path: gradually, h: on(`"1"`), body: grown},
		{status: 413, route: start, path: gradually, h: on(`"2"`), body: strings.Repeat("#", 17<<20)},
		{status: 422, route: start, h: on(`"2"`), body: grown},
		{status: 422, route: start, path: rollouts + "?plan=5:1s", h: on(`"2"`), body: grown},
		{status: 200, route: start, path: gradually, h: on(`"2"`), body: grown},
		{status: 200, route: get},
	}
	for _, path := range []string{"/halt", "/resume", "/abort"} {
		route := "POST " + rollouts + path
		all = append(all,
			attempt{status: 428, route: route, h: because()},
			attempt{status: 400, route: route, path: rollouts + path + "?plan=gradual", h: on(`"3"`)},
			attempt{status: 412, route: route, h: on(`"2"`)},
			attempt{status: 422, route: route, h: header{"If-Match": `"3"`}},
			attempt{status: 200, route: route, h: on(`"3"`)},
		)
	}
	return all
}

func TestARollOutIsStartedHaltedAndTakenBackOverHTTP(t *testing.T) {
	t.Parallel()
	s := newScene(t, plenty).start().publish()
	type rollout struct {
		ID, Phase, Why, By, Reason, Until string
		Document                          policy.Hash
		Plan                              []struct {
			Percent int
			For     string
		}
		Step     int
		Revision uint64
	}
	ask := func(method, path string, h header, body string) (r rollout) {
		t.Helper()
		a := s.want(http.StatusOK, s.ask(method, path, s.admin, h, body))
		s.read(a, &r)
		require.Equal(t, a.Header.Get("ETag"), `"`+string(rune('0'+r.Revision))+`"`)
		return r
	}
	r := ask(http.MethodPost, rollouts+"?plan=0:1h,25:30m", on(`"1"`), grown)
	require.Equal(t, []any{"running", 1, uint64(2), "why"}, []any{r.Phase, r.Step, r.Revision, r.Reason})
	require.Equal(t, policy.HashOf([]byte(grown)), r.Document)
	require.Len(t, r.Plan, 2)
	require.Equal(t, []any{25, "30m0s"}, []any{r.Plan[1].Percent, r.Plan[1].For})
	until, err := time.Parse(time.RFC3339, r.Until)
	require.NoError(t, err)
	require.True(t, until.After(time.Now()))
	require.Equal(t, r, ask(http.MethodGet, rollouts, nil, ""))
	require.Contains(t, s.want(http.StatusOK, s.ask(http.MethodGet, "/v1/orgs/acme/ratelimit/policies", s.admin, nil, "")).body, `"rollout":"rollout-2"`)

	p := s.problem(http.StatusUnprocessableEntity, s.ask(http.MethodPost, gradually, s.admin, on(`"2"`), grown))
	require.Equal(t, "roll-out", p.Field)
	require.Contains(t, p.Detail, "rollout-2 is running")
	r = ask(http.MethodPost, rollouts+"/halt", on(`"2"`), "")
	require.Equal(t, "halted", r.Phase)
	require.Contains(t, r.Why, "why")
	require.Equal(t, "running", ask(http.MethodPost, rollouts+"/resume", on(`"2"`), "").Phase)
	r = ask(http.MethodPost, rollouts+"/abort", on(`"2"`), "")
	require.Equal(t, []any{"aborted", uint64(3)}, []any{r.Phase, r.Revision})
	require.Equal(t, document, s.want(http.StatusOK, s.ask(http.MethodGet, policies, s.admin, nil, "")).body)
	_, viewer := s.issue(s.admin, "viewer", nil, access.Viewer)
	require.Equal(t, "aborted", ask(http.MethodGet, rollouts, nil, "").Phase)
	s.want(http.StatusOK, s.ask(http.MethodGet, rollouts, viewer, nil, ""))
}
