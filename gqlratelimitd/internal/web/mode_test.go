package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/web"
)

const (
	modes    = "/v1/ratelimit/modes"
	ofAll    = modes + "?scope=all"
	ofTenant = modes + "?scope=tenant&name=acme"
	// theSwitch stands for the tag of the switch that was set last.
	theSwitch = "the switch"
)

// eased is a switch for an hour.
func eased() string {
	return `{"mode": "shadow", "until": "` + time.Now().Add(time.Hour).UTC().Format(time.RFC3339) + `"}`
}

// switched switches the mode of all.
func switched(s *scene) string {
	s.Helper()
	s.want(http.StatusOK, s.ask(http.MethodPut, ofAll, s.admin, first, eased()))
	return ""
}

// modeAttempts are requests for the statuses of the routes of mode switches.
func modeAttempts() []attempt {
	const get, set, end = "GET " + modes, "PUT " + modes, "DELETE " + modes
	return []attempt{
		{status: 200, route: get},
		{status: 400, route: get, path: "?after=x"},
		{status: 404, route: end, path: ofAll, h: on(`"1"`)},
		{status: 400, route: set, path: ofAll, h: first, body: `{"mod": "off"}`},
		{status: 412, route: set, path: ofAll, h: on(`"9000"`), body: eased()},
		{status: 413, route: set, path: ofAll, h: first, body: `"` + strings.Repeat("x", web.MaxJSON) + `"`},
		{status: 422, route: set, path: ofAll, h: first, body: `{"mode": "enforce"}`},
		{status: 428, route: set, path: ofAll, h: because(), body: eased()},
		{status: 200, route: set, path: ofAll, h: first, body: eased()},
		{status: 400, route: end, path: ofAll + "&nothing=1", h: on(`"1"`)},
		{status: 412, route: end, path: ofAll, h: on(`"9000"`)},
		{status: 422, route: end, path: modes + "?scope=everything", h: on(`"1"`)},
		{status: 428, route: end, path: ofAll, h: because()},
		{status: 200, route: end, path: ofAll, h: on(theSwitch)},
	}
}

func TestModeSwitches(t *testing.T) {
	t.Parallel()
	type answered struct {
		Scope, Name, Mode string
		Until             time.Time
		Ended, Holds      bool
		Revision          uint64
	}
	t.Run("are set, listed and ended", func(t *testing.T) {
		t.Parallel()
		s := newScene(t, plenty).start().publish()
		for _, path := range []string{ofAll, ofTenant, modes + "?scope=operation&name=" + url.QueryEscape("Mutation.createOrder")} {
			a := s.want(http.StatusOK, s.ask(http.MethodPut, path, s.admin, first, eased()))
			var one answered
			s.read(a, &one)
			require.Equal(t, "shadow", one.Mode)
			require.True(t, one.Holds)
			require.Equal(t, web.Tag(one.Revision), a.Header.Get("ETag"))
			s.problem(http.StatusPreconditionFailed, s.ask(http.MethodPut, path, s.admin, first, eased()))
		}
		var list struct{ Modes []answered }
		listed := func() []answered {
			s.read(s.want(http.StatusOK, s.ask(http.MethodGet, modes, s.admin, nil, "")), &list)
			return list.Modes
		}
		there := listed()
		require.Equal(t, []string{"", "Mutation.createOrder", "acme"}, []string{there[0].Name, there[1].Name, there[2].Name})
		s.problem(http.StatusPreconditionFailed, s.ask(http.MethodDelete, ofTenant, s.admin, on(web.Tag(there[0].Revision)), ""))
		var ended answered
		s.read(s.want(http.StatusOK, s.ask(http.MethodDelete, ofTenant, s.admin, on(web.Tag(there[2].Revision)), "")), &ended)
		want := there[2]
		want.Ended, want.Holds = true, false
		require.Equal(t, want, ended)
		require.Equal(t, there[:2], listed())
	})
	t.Run("of a tenant are for its admin", func(t *testing.T) {
		t.Parallel()
		s := newScene(t, plenty).start().publish()
		_, admin := s.issue(s.admin, "theirs", []string{"acme"}, access.Admin)
		_, operator := s.issue(s.admin, "less", []string{"acme"}, access.Operator)
		s.problem(http.StatusForbidden, s.ask(http.MethodPut, ofAll, admin, first, eased()))
		s.problem(http.StatusForbidden, s.ask(http.MethodPut, ofTenant, operator, first, eased()))
		s.want(http.StatusOK, s.ask(http.MethodPut, ofTenant, admin, first, eased()))
		s.want(http.StatusOK, s.ask(http.MethodDelete, ofTenant, admin, on(theSwitch), ""))
	})
	t.Run("say what does not fit", func(t *testing.T) {
		t.Parallel()
		s := newScene(t, plenty).start().publish()
		for body, field := range map[string]string{
			`{"mode": "enforce"}`: "mode", `{"mode": "off"}`: "until", `{"mode": "off", "until": "2001-01-01T00:00:00Z"}`: "until",
		} {
			require.Equal(t, field, s.problem(http.StatusUnprocessableEntity, s.ask(http.MethodPut, ofAll, s.admin, first, body)).Field)
		}
	})
}
