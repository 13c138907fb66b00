package control_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/relay"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/observe/report"
)

// instances are what instances say, and how often they were asked.
type instances struct {
	said  report.Summary
	err   error
	asked int
}

func (i *instances) Summary(context.Context, time.Duration) (*report.Summary, error) {
	i.asked++
	said := i.said
	return &said, i.err
}

// serving is an instance that serves a revision.
func serving(name string, revision uint64, feed report.Feed) report.Instance {
	return report.Instance{Name: name, Run: "1", Policy: &report.Policy{Revision: revision}, Feed: &feed}
}

func names(f *control.Fleet) (found []string) {
	for _, i := range f.Page {
		found = append(found, i.Name)
	}
	return found
}

func TestTheFleetSaysWhichInstanceServesWhichRevisionAndWhoRefusesIt(t *testing.T) {
	t.Parallel()
	refused := &report.Refused{Revision: 2, Cause: "check", Error: "no store \"b\"\nat all\x1b[2J"}
	who := &instances{said: report.Summary{Unreadable: 3, Instances: []report.Instance{
		serving("d", 1, report.Feed{State: "lost\x07", Failure: "\u202E" + strings.Repeat("x", 5000)}),
		serving("b", 2, report.Feed{State: control.Current}),
		serving("c\x07", 1, report.Feed{State: control.Current, Refused: refused}),
		{Name: "a"},
	}}}
	s := newScene(t, control.Config{Instances: who})
	s.publish(document, 0)
	s.publish(document+"# again\n", 1)
	fleet := func(in control.FleetInput) *control.Fleet {
		t.Helper()
		f, err := s.Fleet(s.ctx(), operator, in)
		require.NoError(t, err)
		return f
	}
	f := fleet(control.FleetInput{N: 10})
	require.Equal(t, []string{"a", "b", `c\a`, "d"}, names(f))
	require.Equal(t, []int{4, 2, 1, 1, 1, 3, 3}, []int{f.Total, f.Current, f.Stale, f.Never, f.Refusing, f.Behind, f.Unread})
	require.EqualValues(t, 2, f.Newest)
	require.Equal(t, []control.FleetRevision{{Revision: 1, Instances: 2}, {Revision: 2, Instances: 1}, {Instances: 1}}, f.Revisions)
	require.Equal(t, `no store "b"\nat all\x1b[2J`, f.Page[2].Refused.Error)
	require.Equal(t, "no store \"b\"\nat all\x1b[2J", refused.Error, "what somebody else has is not changed")
	require.True(t, strings.HasPrefix(f.Page[3].Failure, `\u202exxx`))
	require.Less(t, len(f.Page[3].Failure), 1100)

	revision, yes, no := uint64(1), true, false
	require.Equal(t, []string{`c\a`, "d"}, names(fleet(control.FleetInput{N: 10, Revision: &revision})))
	require.Equal(t, []string{"b", `c\a`}, names(fleet(control.FleetInput{N: 10, State: control.Current})))
	require.Equal(t, []string{`c\a`}, names(fleet(control.FleetInput{N: 10, Refusing: &yes})))
	f = fleet(control.FleetInput{N: 1, After: "a ", Refusing: &no})
	require.Equal(t, []any{[]string{"b"}, "b 1"}, []any{names(f), f.Next})
	f = fleet(control.FleetInput{N: 1, After: f.Next, Refusing: &no})
	require.Equal(t, []any{[]string{"d"}, ""}, []any{names(f), f.Next})
	require.Equal(t, 1, who.asked, "who asks often asks the Redis no more often")
	s.now = s.now.Add(time.Second)
	who.said = report.Summary{}
	require.Zero(t, fleet(control.FleetInput{N: 1}).Total)
	s.now = s.now.Add(time.Second)
	who.err = errors.New("away")
	_, err := s.Fleet(s.ctx(), operator, control.FleetInput{N: 1})
	require.ErrorIs(t, err, control.ErrAway)
	_, err = s.Fleet(s.ctx(), customer("acme"), control.FleetInput{N: 1})
	require.ErrorIs(t, err, access.ErrDenied)
	require.Equal(t, 3, who.asked)
	without := newScene(t, control.Config{})
	_, err = without.Fleet(s.ctx(), operator, control.FleetInput{N: 1})
	require.ErrorIs(t, err, control.ErrNotFound)
}

func TestHoweverManyRevisionsInstancesSayTheyServeTheListIsShort(t *testing.T) {
	t.Parallel()
	who := &instances{}
	for i := range 10_000 {
		n := uint64(i)
		if i%3 == 0 {
			n = 7
		}
		who.said.Instances = append(who.said.Instances, serving(fmt.Sprint(i), n, report.Feed{}))
	}
	f, err := newScene(t, control.Config{Instances: who}).Fleet(t.Context(), operator, control.FleetInput{N: 100})
	require.NoError(t, err)
	require.Len(t, f.Revisions, 20)
	require.Equal(t, control.FleetRevision{Revision: 7, Instances: 3335}, f.Revisions[0])
	require.Equal(t, 10_000-3335-19, f.Others)
	require.Len(t, f.Page, 100)
	require.NotEmpty(t, f.Next)
}

func TestWhatIsOnItsWayToRedisIsToldByEveryDaemon(t *testing.T) {
	t.Parallel()
	status := relay.Status{Holder: "other"}
	s := newScene(t, control.Config{Relay: func() relay.Status { return status }})
	s.publish(document, 0)
	s.now = s.now.Add(3 * time.Second)
	_, err := s.override(0, bucket.Override{Blocked: true})
	require.NoError(t, err)
	require.NoError(t, s.db.Change(s.ctx(), func(tx *store.Tx) error { return tx.PutUnmanaged(&store.Override{}) }))
	r, err := s.Relaying(s.ctx(), viewer)
	require.NoError(t, err)
	require.Equal(t, &relay.Status{Holder: "other", Waiting: 2, Lag: 3 * time.Second, Unmanaged: 1}, r)
	status = relay.Status{Leads: true, Failure: "a\x00", Refused: []relay.Refusal{{Kind: "overrides", Name: "b\n", Error: "c\x1b"}}}
	r, err = s.Relaying(s.ctx(), viewer)
	require.NoError(t, err)
	require.Equal(t, []any{`a\x00`, relay.Refusal{Kind: "overrides", Name: `b\n`, Error: `c\x1b`}}, []any{r.Failure, r.Refused[0]})
	_, err = s.Relaying(s.ctx(), customer("acme"))
	require.ErrorIs(t, err, access.ErrDenied)
	_, err = newScene(t, control.Config{}).Relaying(s.ctx(), viewer)
	require.ErrorIs(t, err, control.ErrNotFound)
}
