package web_test

import (
	"fmt"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/web"
)

// theDefaults are the limits of a daemon.
var theDefaults = web.LimitConfig{}

const revisions = "/v1/ratelimit/revisions"

// urgents are what an operator has to be able to do whatever others ask for.
func (s *scene) urgents(token string) {
	s.Helper()
	s.want(http.StatusOK, s.ask(http.MethodPut, block, token, first, blocks))
	s.want(http.StatusOK, s.ask(http.MethodDelete, block, token, on(`"1"`), ""))
	s.want(http.StatusOK, s.ask(http.MethodPut, ofAll, token, first, eased()))
	s.want(http.StatusOK, s.ask(http.MethodDelete, ofAll, token, on(theSwitch), ""))
	s.want(http.StatusOK, s.ask(http.MethodPost, policies+"/1/revert", token, on(`"1"`), ""))
}

// count asks so often, and returns how often each status was answered.
func (s *scene) count(n int, method, path, token, body string) map[int]int {
	s.Helper()
	statuses := map[int]int{}
	for range n {
		statuses[s.ask(method, path, token, because(), body).StatusCode]++
	}
	return statuses
}

func TestACustomerTakesNothingFromWhoIssuedItsToken(t *testing.T) {
	t.Parallel()
	s := newScene(t, theDefaults).start().publish()
	_, customer := s.issue(s.admin, "customer", []string{"acme"}, access.Admin)
	_, sibling := s.issue(s.admin, "sibling", []string{"globex"}, access.Viewer)
	s.stop()
	require.Equal(t, map[int]int{200: 600, 429: 10}, s.count(610, http.MethodGet, hooks, customer, ""))
	s.want(http.StatusOK, s.ask(http.MethodGet, "/v1/orgs/globex/ratelimit/overrides", sibling, nil, ""))
	s.want(http.StatusOK, s.ask(http.MethodGet, revisions, s.admin, nil, ""))
	s.urgents(s.admin)
}

func TestDeniedChangesCountAgainstTheirSenderAlone(t *testing.T) {
	t.Parallel()
	s := newScene(t, theDefaults).start().publish()
	for range 5 {
		_, program := s.issue(s.admin, "program", nil, access.Viewer)
		s.stop()
		require.Equal(t, map[int]int{403: 120, 429: 5}, s.count(125, http.MethodPost, "/v1/orgs/rival/ratelimit/webhooks", program, hookHere))
		s.stopped.Store(nil)
	}
	s.stop()
	s.want(http.StatusCreated, s.ask(http.MethodPost, "/v1/tokens", s.admin, because(), `{"subject": "more", "roles": ["viewer"]}`))
}

func TestAPersonHasAsMuchAsFourOfTheirTokens(t *testing.T) {
	t.Parallel()
	s := newScene(t, web.LimitConfig{Actor: 20, Changes: 20}).start().publish()
	tokens := make([]string, 6)
	for i := range tokens {
		_, tokens[i] = s.issue(s.admin, "program", nil, access.Operator)
	}
	s.stop()
	answered := 0
	for _, token := range tokens {
		answered += s.count(21, http.MethodGet, revisions, token, "")[200]
	}
	require.InDelta(t, 80, answered, 9, "six have issued tokens, one has published, and some come back")
	s.want(http.StatusTooManyRequests, s.ask(http.MethodGet, revisions, s.admin, nil, ""))
	s.urgents(s.admin)
}

func TestTokensOfOneTenantTakeNothingFromEachOther(t *testing.T) {
	t.Parallel()
	s := newScene(t, theDefaults).start().publish()
	_, viewer := s.issue(s.admin, "viewer", []string{"acme"}, access.Viewer)
	_, other := s.issue(s.admin, "other", []string{"acme"}, access.Operator)
	s.stop()
	require.Equal(t, map[int]int{403: 120, 429: 5}, s.count(125, http.MethodPost, hooks, viewer, hookHere))
	s.want(http.StatusCreated, s.ask(http.MethodPost, hooks, other, because(), hookHere))
}

func TestTokensHaveThePartOfTheTokenThatTheyComeFrom(t *testing.T) {
	t.Parallel()
	s := newScene(t, web.LimitConfig{Actor: 20, Changes: 1e6}).start().publish()
	_, sibling := s.issue(s.admin, "sibling", nil, access.Viewer)
	_, program := s.issue(s.admin, "program", nil, access.Viewer)
	family := []string{program}
	for range 7 {
		_, child := s.issue(family[len(family)-1], "child", nil, access.Viewer)
		family = append(family, child)
	}
	s.stop()
	answered := 0
	for _, token := range family {
		answered += s.count(21, http.MethodGet, revisions, token, "")[200]
	}
	require.InDelta(t, 20, answered, 8, "seven have been issued, and some come back")
	for _, token := range []string{sibling, s.admin} {
		require.Equal(t, 15, s.count(15, http.MethodGet, revisions, token, "")[200])
	}
}

func TestATokenThatComesFromAnotherHasNoReserve(t *testing.T) {
	t.Parallel()
	s := newScene(t, web.LimitConfig{Actor: 20, Changes: 20}).start().publish()
	_, program := s.issue(s.admin, "program", nil, access.Operator)
	_, child := s.issue(program, "child", nil, access.Operator)
	s.stop()
	statuses := s.count(30, http.MethodPut, block, child, blocks)
	require.InDelta(t, 20, statuses[428], 1, "one was issued")
	require.Equal(t, 30, statuses[428]+statuses[429])
	s.want(http.StatusTooManyRequests, s.ask(http.MethodGet, revisions, program, nil, ""))
	s.urgents(program)
}

// slowly begins a request whose body never comes.
func (s *scene) slowly(method, path, token string) {
	s.Helper()
	conn, err := (&net.Dialer{}).DialContext(s.Context(), "tcp", s.server.Listener.Addr().String())
	require.NoError(s, err)
	s.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\nRatelimit-Reason: x\r\nIf-None-Match: *\r\nContent-Length: 1000\r\n\r\n{",
		method, path, token)
	require.NoError(s, err)
}

func TestABlockIsPossibleWhileSlowBodiesTakeAllPlaces(t *testing.T) {
	t.Parallel()
	s := newScene(t, web.LimitConfig{Address: 1e6, Actor: 1e6, Changes: 1e6, UnderWay: 6, ActorUnderWay: 2}).start().publish()
	_, customer := s.issue(s.admin, "customer", []string{"acme"}, access.Admin)
	_, program := s.issue(s.admin, "program", nil, access.Operator)
	_, other := s.issue(s.admin, "other", nil, access.Operator)
	for _, slow := range []struct{ path, token string }{
		{record, customer}, {record, customer}, {record, program}, {record, program}, {block, other}, {block, other},
	} {
		s.slowly(http.MethodPut, slow.path, slow.token)
	}
	require.Eventually(t, func() bool { return s.web.Reading() == 6 }, patient, soon)
	s.problem(http.StatusTooManyRequests, s.ask(http.MethodPut, record, s.admin, first, assigned))
	s.want(http.StatusOK, s.ask(http.MethodGet, revisions, s.admin, nil, ""))
	s.want(http.StatusOK, s.ask(http.MethodGet, overrides, customer, nil, ""))
	s.urgents(s.admin)
	// The reserve of one sender is not that of another, and has an end.
	for range 4 {
		s.slowly(http.MethodPut, block, other)
	}
	require.Eventually(t, func() bool {
		return s.ask(http.MethodPut, block, other, first, blocks).StatusCode == http.StatusTooManyRequests
	}, patient, soon)
	require.NotEqual(t, http.StatusTooManyRequests, s.ask(http.MethodPut, block, s.admin, first, blocks).StatusCode)
}

func TestACustomerHasNoReserve(t *testing.T) {
	t.Parallel()
	s := newScene(t, web.LimitConfig{Actor: 20, Changes: 5}).start().publish()
	_, customer := s.issue(s.admin, "customer", []string{"acme"}, access.Admin)
	s.stop()
	require.Equal(t, map[int]int{428: 5, 429: 5}, s.count(10, http.MethodPut, block, customer, blocks))
}

func TestNoTokenIsKeptOutByItsAddress(t *testing.T) {
	t.Parallel()
	s := newScene(t, theDefaults).start().publish()
	_, unused := s.issue(s.admin, "unused", nil, access.Operator)
	id, ended := s.issue(s.admin, "ended", nil, access.Viewer)
	s.want(http.StatusOK, s.ask(http.MethodDelete, "/v1/tokens/"+id, s.admin, because(), ""))
	s.stop()
	asked := s.tokens.asked.Load()
	require.Equal(t, map[int]int{401: 1200, 429: 60}, s.count(1260, http.MethodGet, revisions, wrongToken(), ""))
	require.Equal(t, asked, s.tokens.asked.Load(), "a token that nobody has issued is looked up by nobody")
	s.urgents(unused)
	s.want(http.StatusOK, s.ask(http.MethodGet, revisions, s.admin, nil, ""))
	// What has ended counts for its address, which has nothing left.
	asked = s.tokens.asked.Load()
	require.Equal(t, map[int]int{429: 25}, s.count(25, http.MethodGet, revisions, ended, ""))
	require.Equal(t, asked+25, s.tokens.asked.Load())
	require.Equal(t, http.StatusUnauthorized, s.strange(t.Context(), "192.0.2.1", ended))
}

// confined are tokens that a viewer issues, each confined to a tenant that there is not.
func (s *scene) confined(viewer string, n int) (kids []string) {
	s.Helper()
	for i := range n {
		_, kid := s.issue(viewer, "kid", []string{fmt.Sprint("made-up-", i)}, access.Viewer)
		kids = append(kids, kid)
	}
	return kids
}

func TestAViewerHasOneBudgetHoweverItConfinesItsTokens(t *testing.T) {
	t.Parallel()
	s := newScene(t, theDefaults).start().publish()
	_, viewer := s.issue(s.admin, "viewer", nil, access.Viewer)
	s.stop()
	served := 0
	for i, kid := range s.confined(viewer, 30) {
		served += s.count(25, http.MethodGet, fmt.Sprintf("/v1/orgs/made-up-%d/ratelimit/overrides", i), kid, "")[200]
	}
	require.Equal(t, 600-30, served, "30 were issued with it")
	s.want(http.StatusTooManyRequests, s.ask(http.MethodGet, revisions, viewer, nil, ""))
	require.Equal(t, map[int]int{200: 300}, s.count(300, http.MethodGet, revisions, s.admin, ""))
}

func TestAViewerTakesNothingFromTheAdminOfATenant(t *testing.T) {
	t.Parallel()
	s := newScene(t, theDefaults).start().publish()
	_, admin := s.issue(s.admin, "boss", []string{"acme"}, access.Admin)
	_, viewer := s.issue(s.admin, "support", nil, access.Viewer)
	s.stop()
	_, kid := s.issue(viewer, "kid", []string{"acme"}, access.Viewer)
	require.Equal(t, map[int]int{200: 599, 429: 41}, s.count(640, http.MethodGet, overrides, kid, ""))
	s.want(http.StatusOK, s.ask(http.MethodPut, block, admin, first, blocks))
	s.want(http.StatusOK, s.ask(http.MethodGet, overrides, admin, nil, ""))
}

func TestSlowBodiesOfAViewerLeaveRoomForOthers(t *testing.T) {
	t.Parallel()
	s := newScene(t, web.LimitConfig{Address: 1e6, Actor: 1e6, Changes: 1e6, UnderWay: 80}).start().publish()
	_, viewer := s.issue(s.admin, "viewer", nil, access.Viewer)
	kids := s.confined(viewer, 30)
	for _, kid := range kids {
		for range 3 {
			s.slowly(http.MethodPost, "/v1/tokens", kid)
		}
	}
	require.Eventually(t, func() bool { return s.web.Reading() >= 64 }, patient, soon)
	for _, kid := range kids {
		s.problem(http.StatusTooManyRequests, s.ask(http.MethodPost, "/v1/tokens", kid, because(), `{}`))
	}
	s.want(http.StatusCreated, s.ask(http.MethodPost, "/v1/tokens", s.admin, because(), `{"subject": "more", "roles": ["viewer"]}`))
	s.want(http.StatusOK, s.ask(http.MethodPut, record, s.admin, first, assigned))
}
