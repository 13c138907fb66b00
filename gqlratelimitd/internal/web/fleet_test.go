package web_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/relay"
	"github.com/gqlgen-ratelimit/ratelimit/observe/report"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
)

func TestInstancesAreListedByNameAPageAtATime(t *testing.T) {
	t.Parallel()
	s := newScene(t, plenty).start().publish()
	at := time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC)
	hash := policy.HashOf([]byte(document)).String()
	s.fleet.said = []report.Instance{
		{Name: "a", Run: "1", At: at, Policy: &report.Policy{Revision: 1, Hash: hash, Applied: at}, Feed: &report.Feed{State: control.Current}},
		{Name: "b", At: at, Policy: &report.Policy{Applied: at}, Feed: &report.Feed{
			State: control.Stale, Refused: &report.Refused{Revision: 1, Hash: hash, Cause: "signature", Error: "nobody\x1b", At: at},
		}},
	}
	const path = "/v1/ratelimit/instances"
	var page struct {
		Newest, Total, Behind int
		At                    time.Time
		Next                  string
		Instances             []map[string]any
	}
	s.read(s.want(http.StatusOK, s.ask(http.MethodGet, path+"?limit=1", s.admin, nil, "")), &page)
	require.Equal(t, []any{1, 2, 1, "a 1"}, []any{page.Newest, page.Total, page.Behind, page.Next})
	require.Len(t, page.Instances, 1)
	a := s.want(http.StatusOK, s.ask(http.MethodGet, path+"?after=a+1&refusing=true&state=stale&revision=0", s.admin, nil, ""))
	page.Next = ""
	s.read(a, &page)
	require.Empty(t, page.Next)
	require.Contains(t, a.body, `"instances":[{"name":"b","seen":"2026-11-23T03:00:00Z","state":"stale","revision":0,"hash":""`+
		`,"since":"2026-11-23T03:00:00Z","refused":{"revision":1,"hash":"`+hash+`","cause":"signature","error":"nobody\\x1b","since":"2026-11-23T03:00:00Z"}}]`)

	away := newScene(t, plenty).start()
	away.fleet.err = errors.New("redis://user:secret@host is away")
	p := away.problem(http.StatusServiceUnavailable, away.ask(http.MethodGet, path, away.admin, nil, ""))
	require.NotContains(t, p.Title+p.Detail, "secret")
}

func TestTheRelayIsToldOfWithoutItsMetrics(t *testing.T) {
	t.Parallel()
	s := newScene(t, plenty).start().publish()
	s.relay = relay.Status{Holder: "other", Refused: []relay.Refusal{{Kind: "policy", Error: "newer", Since: time.Unix(0, 0).UTC()}}}
	var is struct {
		Leads     bool
		Holder    string
		Waiting   int
		Lag       float64
		Refused   []map[string]any
		Unmanaged int
	}
	s.read(s.want(http.StatusOK, s.ask(http.MethodGet, "/v1/ratelimit/relay", s.admin, nil, "")), &is)
	require.Equal(t, []any{false, "other", 1, 0}, []any{is.Leads, is.Holder, is.Waiting, is.Unmanaged})
	require.Equal(t, []map[string]any{{"kind": "policy", "error": "newer", "since": "1970-01-01T00:00:00Z"}}, is.Refused)
	require.GreaterOrEqual(t, is.Lag, 0.0)
}
