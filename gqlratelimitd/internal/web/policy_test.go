package web_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
)

func TestWhatWasPublishedIsReadByteForByte(t *testing.T) {
	t.Parallel()
	s := newScene(t, plenty).start()
	s.problem(http.StatusNotFound, s.ask(http.MethodGet, policies, s.admin, nil, ""))
	s.publish()
	got := s.want(http.StatusOK, s.ask(http.MethodGet, policies, s.admin, nil, ""))
	require.Equal(t, document, got.body)
	require.Equal(t, `"1"`, got.Header.Get("ETag"))
	require.Equal(t, policy.HashOf([]byte(document)).String(), got.Header.Get("Ratelimit-Policy-Hash"))

	var revision policy.Revision
	file := s.want(http.StatusOK, s.ask(http.MethodGet, policies+"?form=revision", s.admin, nil, ""))
	require.NoError(t, revision.UnmarshalBinary([]byte(file.body)))
	require.Equal(t, uint64(1), revision.Number)
	require.Equal(t, "why", revision.Reason)
	require.Equal(t, document, string(revision.Document))

	same := s.want(http.StatusNotModified, s.ask(http.MethodGet, policies, s.admin, header{"If-None-Match": `W/"1"`}, ""))
	require.Empty(t, same.body)
}

func TestAPublisherSaysWhatTheyReplace(t *testing.T) {
	t.Parallel()
	s := newScene(t, plenty).start().publish()
	for _, path := range []struct{ method, path, body string }{
		{http.MethodPut, policies, document},
		{http.MethodPost, policies + "/1/revert", ""},
		{http.MethodPut, onTenant, raise},
		{http.MethodDelete, onTenant, ""},
	} {
		p := s.problem(http.StatusPreconditionRequired, s.ask(path.method, path.path, s.admin, because(), path.body))
		require.Contains(t, p.Detail, "If-Match")
		for _, wrong := range []string{`*`, `1`, `W/"1"`, `"1", "2"`, `"-1"`} {
			s.problem(http.StatusBadRequest, s.ask(path.method, path.path, s.admin, on(wrong), path.body))
		}
	}
	p := s.problem(http.StatusPreconditionFailed, s.ask(http.MethodPut, policies, s.admin, first, document))
	require.Equal(t, uint64(1), *p.Current)
	require.True(t, strings.HasPrefix(p.By, "admin"), p.By)
	require.False(t, p.At.IsZero())
	s.want(http.StatusOK, s.ask(http.MethodPut, policies, s.admin, on(`"1"`), document))
}

func TestADocumentThatDoesNotCompileIsRefusedWithAllMistakes(t *testing.T) {
	t.Parallel()
	s := newScene(t, plenty).start()
	wrong := strings.NewReplacer("capacity: 1000", "capacity: -1", "default: free", "default: gold").Replace(document)
	for _, a := range []answer{
		s.ask(http.MethodPut, policies, s.admin, first, wrong), s.ask(http.MethodPost, policies+"/check", s.admin, nil, wrong),
	} {
		p := s.problem(http.StatusUnprocessableEntity, a)
		require.Equal(t, "document", p.Field)
		require.GreaterOrEqual(t, len(p.Mistakes), 2, a.body)
		require.NotZero(t, p.Mistakes[0].Line)
	}
	s.problem(http.StatusNotFound, s.ask(http.MethodGet, policies, s.admin, nil, ""))
}

func TestARevertIsANewRevisionWithTheOldBytes(t *testing.T) {
	t.Parallel()
	s := newScene(t, plenty).start().publish()
	other := strings.ReplaceAll(document, "1000", "2000")
	s.want(http.StatusOK, s.ask(http.MethodPut, policies, s.admin, on(`"1"`), other))
	s.want(http.StatusOK, s.ask(http.MethodPost, policies+"/1/revert", s.admin, on(`"2"`), ""))
	newest := s.want(http.StatusOK, s.ask(http.MethodGet, policies, s.admin, nil, ""))
	require.Equal(t, document, newest.body)
	require.Equal(t, `"3"`, newest.Header.Get("ETag"))
	require.Equal(t, other, s.want(http.StatusOK, s.ask(http.MethodGet, policies+"/2", s.admin, nil, "")).body)
}

func TestARepeatUnderAnIdempotencyKeyChangesNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t, plenty).start()
	h := because("If-None-Match", "*", "Idempotency-Key", "k")
	once := s.want(http.StatusOK, s.ask(http.MethodPut, policies, s.admin, h, document))
	again := s.want(http.StatusOK, s.ask(http.MethodPut, policies, s.admin, h, document))
	require.JSONEq(t, once.body, again.body)
	require.Equal(t, once.Header.Get("ETag"), again.Header.Get("ETag"))
	s.problem(http.StatusUnprocessableEntity, s.ask(http.MethodPut, policies, s.admin, h, document+"# other\n"))
	require.Equal(t, `"1"`, s.ask(http.MethodGet, policies, s.admin, nil, "").Header.Get("ETag"))
}

func TestWhoWaitsForAnotherRevisionIsAnsweredWhenItComes(t *testing.T) {
	t.Parallel()
	s := newScene(t, plenty).start().publish()
	answered := make(chan answer, 1)
	go func() {
		answered <- s.ask(http.MethodGet, policies+"?wait=50", s.admin, header{"If-None-Match": `"1"`}, "")
	}()
	s.want(http.StatusOK, s.ask(http.MethodPut, policies, s.admin, on(`"1"`), document))
	got := s.want(http.StatusOK, <-answered)
	require.Equal(t, `"2"`, got.Header.Get("ETag"))
	s.problem(http.StatusBadRequest, s.ask(http.MethodGet, policies+"?wait=56", s.admin, nil, ""))
}

func TestTheReasonMayStandInTheQueryWhereItIsEscaped(t *testing.T) {
	t.Parallel()
	s := newScene(t, plenty).start()
	p := s.problem(http.StatusUnprocessableEntity, s.ask(http.MethodPut, policies, s.admin, header{"If-None-Match": "*"}, document))
	require.Equal(t, "reason", p.Field)
	s.want(http.StatusOK, s.ask(http.MethodPut, policies+"?reason=f%C3%BCr%20acme", s.admin, header{"If-None-Match": "*"}, document))
	require.Contains(t, s.ask(http.MethodGet, "/v1/ratelimit/revisions", s.admin, nil, "").body, `"reason":"für acme"`)
	s.problem(http.StatusBadRequest, s.ask(http.MethodPut, policies+"?reason=twice", s.admin, on(`"1"`), document))
}

func TestATenantReadsWhatHoldsForThemAndWhereItStands(t *testing.T) {
	t.Parallel()
	s := newScene(t, plenty).start().publish()
	_, own := s.issue(s.admin, "acme-bot", []string{"acme"}, access.Viewer)
	var got struct {
		Tier     string
		Revision uint64
		Limits   []struct {
			Level, Name, Limit string
			Capacity           int64
			From               struct {
				Rule []string
				Line int
			}
		}
	}
	s.read(s.want(http.StatusOK, s.ask(http.MethodGet, "/v1/orgs/acme/ratelimit/policies?user=jo&operation=Mutation.createOrder", own, nil, "")), &got)
	require.Equal(t, "free", got.Tier)
	require.Equal(t, uint64(1), got.Revision)
	levels := map[string]int64{}
	for _, l := range got.Limits {
		levels[l.Level] = l.Capacity
		require.NotEmpty(t, l.From.Rule)
		require.NotZero(t, l.From.Line)
	}
	require.Equal(t, map[string]int64{"tenant": 1000, "user": 100, "operation": 10}, levels)
	s.problem(http.StatusForbidden, s.ask(http.MethodGet, "/v1/orgs/globex/ratelimit/policies", own, nil, ""))
}
