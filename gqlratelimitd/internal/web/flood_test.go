package web_test

import (
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/web"
)

func TestWhoWaitsLeavesRoomForWhoDoesNot(t *testing.T) {
	t.Parallel()
	s := newScene(t, web.LimitConfig{Address: 1e6, Actor: 1e6, Changes: 1e6, UnderWay: 4, ActorUnderWay: 4}).start().publish()
	_, second := s.issue(s.admin, "program", nil, access.Viewer)
	answers := make(chan answer, 2)
	for _, token := range []string{s.admin, second} {
		go func() {
			answers <- s.ask(http.MethodGet, policies+"?wait=55", token, header{"If-None-Match": `"1"`}, "")
		}()
	}
	for s.web.Waiting() < 2 {
		runtime.Gosched()
	}
	s.problem(http.StatusTooManyRequests, s.ask(http.MethodGet, policies+"?wait=55", second, header{"If-None-Match": `"1"`}, ""))
	s.want(http.StatusNotModified, s.ask(http.MethodGet, policies, second, header{"If-None-Match": `"1"`}, ""))
	s.want(http.StatusOK, s.ask(http.MethodPut, policies, s.admin, on(`"1"`), document+"# two\n"))
	for range 2 {
		s.want(http.StatusOK, <-answers)
	}
}

func TestAPathThatIsNotCleanLeadsNowhere(t *testing.T) {
	t.Parallel()
	s := newScene(t, plenty).start().publish()
	client := s.server.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for _, path := range []string{
		"//v1/tokens", "/v1//tokens", "/v1/./tokens", "/v1/x/../tokens", "/v1/orgs//ratelimit/policies", "/v1/orgs/../tokens", "/v1/tokens/",
		"/v1/orgs/acme/ratelimit/policies/", "/v1/orgs/acme/x/../ratelimit/policies", "/", "//", "/..",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodPost, http.MethodDelete} {
			s.problem(http.StatusNotFound, s.ask(method, path, s.admin, first, ""))
		}
	}
}

func TestATenantIsTheOneOfThePathHoweverItIsEscaped(t *testing.T) {
	t.Parallel()
	s := newScene(t, plenty).start().publish()
	_, admin := s.issue(s.admin, "boss", []string{"acme"}, access.Operator)
	_, odd := s.issue(s.admin, "odd", []string{"acme/../globex"}, access.Operator)
	tenants := map[string]int{
		"acme": http.StatusOK, "%61cme": http.StatusOK, "acme%2F..%2Fglobex": http.StatusForbidden, "..%2Fglobex": http.StatusForbidden,
		"%2e%2e": http.StatusForbidden, "acme%00": http.StatusForbidden, "acme%ff": http.StatusForbidden, "acme%20": http.StatusForbidden, "ACME": http.StatusForbidden,
		"acme%252F": http.StatusForbidden, "acme;globex": http.StatusForbidden, "acme,globex": http.StatusForbidden, strings.Repeat("a", 9000): http.StatusForbidden,
	}
	for tenant, status := range tenants {
		for _, path := range []string{"/policies", "/overrides", "/usage"} {
			s.want(status, s.ask(http.MethodGet, "/v1/orgs/"+tenant+"/ratelimit"+path, admin, nil, ""))
		}
		s.problem(http.StatusForbidden, s.ask(http.MethodPut, "/v1/orgs/"+tenant+"/ratelimit/overrides?level=tenant&limit=minute", admin, first, raise))
	}
	s.want(http.StatusOK, s.ask(http.MethodGet, "/v1/orgs/acme%2F..%2Fglobex/ratelimit/policies", odd, nil, ""))
	for _, other := range []string{"globex", "acme"} {
		s.problem(http.StatusForbidden, s.ask(http.MethodGet, "/v1/orgs/"+other+"/ratelimit/policies", odd, nil, ""))
	}
	for _, wrong := range []string{"acme%00", "acme%ff", strings.Repeat("a", 9000)} {
		for _, path := range []string{"/policies", "/usage"} {
			p := s.problem(http.StatusUnprocessableEntity, s.ask(http.MethodGet, "/v1/orgs/"+wrong+"/ratelimit"+path, s.admin, nil, ""))
			require.Equal(t, "tenant", p.Field)
		}
	}
}

func TestAPageOfAnotherSiteChangesNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t, plenty).start().publish()
	before := s.entries()
	for _, h := range []header{
		{"Sec-Fetch-Site": "cross-site", "Content-Type": "text/plain"}, {"Sec-Fetch-Site": "same-site"}, {"Origin": "https://evil.example.org"}, {"Origin": "null"},
	} {
		h["Ratelimit-Reason"] = "why"
		s.problem(http.StatusForbidden, s.ask(http.MethodPost, "/v1/tokens?reason=why", s.admin, h, `{"subject": "s", "roles": ["viewer"]}`))
	}
	require.Equal(t, before, s.entries())
	own := header{"Sec-Fetch-Site": "same-origin", "Origin": s.server.URL, "Ratelimit-Reason": "why"}
	s.want(http.StatusCreated, s.ask(http.MethodPost, "/v1/tokens", s.admin, own, `{"subject": "s", "roles": ["viewer"]}`))
}

func TestStrangersFillNoLogWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	s := newScene(t, plenty).start()
	s.logged.Store(0)
	require.NoError(t, s.db.Close())
	for range 50 {
		s.problem(http.StatusServiceUnavailable, s.ask(http.MethodGet, policies, s.admin, nil, ""))
		s.want(http.StatusServiceUnavailable, s.ask(http.MethodGet, "/readyz", "", nil, ""))
	}
	require.LessOrEqual(t, s.logged.Load(), int64(5))
}
