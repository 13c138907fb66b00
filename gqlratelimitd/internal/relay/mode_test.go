package relay_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisswitch"
)

// mode switches, or with no time ends, the mode of a scope.
func (s *scene) mode(scope control.Scope, name string, mode bucket.Mode, until time.Time) {
	s.Helper()
	s.change(func(tx *store.Tx) error {
		next := &store.ModeSwitch{Scope: string(scope), Name: name, Mode: mode, Until: until, Ended: until.IsZero(), Written: store.Written{By: "ada", Reason: "why"}}
		there, err := tx.ModeSwitch(next.Scope, next.Name)
		if err != nil {
			return err
		}
		expected := uint64(0)
		if there.Holds(tx.Now()) {
			expected = there.Revision
		}
		if err := tx.PutModeSwitch(next, expected); err != nil {
			return err
		}
		return tx.Enqueue(store.ModesMessage, "", next.Revision)
	})
}

// modes are the switches in Redis, in words.
func (s *scene) modes(switches *redisswitch.Switches) (found []string) {
	list, err := switches.List(context.Background())
	if err != nil {
		return []string{err.Error()}
	}
	for _, m := range list {
		found = append(found, fmt.Sprint(m.Tenant, "/", m.Operation, " ", m.AtMost, " by ", m.By))
	}
	return found
}

func TestModeSwitchesAreBroughtToRedisAndThoseThatWereSetWithoutTheDaemonStay(t *testing.T) {
	t.Parallel()
	both(t, func(s *scene) {
		t := s.TB
		switches, err := redisswitch.New(redisswitch.Config{Client: s.client})
		require.NoError(t, err)
		is := func(want ...string) {
			t.Helper()
			s.eventually(func() bool { return fmt.Sprint(s.modes(switches)) == fmt.Sprint(want) }, s.modes(switches), want)
		}
		foreign := func(tenant string) {
			t.Helper()
			require.NoError(t, switches.Set(t.Context(), event.ModeSwitch{Tenant: tenant, AtMost: "off", Until: later, Reason: "3 a.m.", By: "oncall"}))
		}
		s.mode(control.ScopeAll, "", bucket.Shadow, later)
		s.mode(control.ScopeTenant, "acme", bucket.Off, later)
		s.mode(control.ScopeOperation, "Mutation.*", bucket.Warn, later)
		s.mode(control.ScopeTenant, "over", bucket.Warn, time.Now().Add(-time.Minute))
		r, stop := s.start(s.config())
		is("/ shadow by ada (gqlratelimitd #1)", "/Mutation.* warn by ada (gqlratelimitd #3)", "acme/ off by ada (gqlratelimitd #2)")
		s.mode(control.ScopeAll, "", bucket.Warn, time.Time{})
		s.mode(control.ScopeTenant, "acme", bucket.Shadow, later)
		is("/Mutation.* warn by ada (gqlratelimitd #3)", "acme/ shadow by ada (gqlratelimitd #6)")
		s.carried(r)
		require.Empty(t, r.Status().Refused)
		require.NoError(t, s.client.FlushAll(t.Context()).Err())
		is("/Mutation.* warn by ada (gqlratelimitd #3)", "acme/ shadow by ada (gqlratelimitd #6)")

		stop()
		foreign("acme")
		foreign("other")
		s.mode(control.ScopeOperation, "Mutation.*", bucket.Warn, time.Time{})
		r, _ = s.start(s.config())
		is("acme/ off by oncall", "other/ off by oncall")
		s.carried(r)
		is("acme/ off by oncall", "other/ off by oncall")
		s.mode(control.ScopeTenant, "acme", bucket.Warn, later)
		is("acme/ warn by ada (gqlratelimitd #8)", "other/ off by oncall")
	})
}

// foreignModes are the switches that were noted, in words.
func (s *scene) foreignModes() (found []string) {
	s.Helper()
	require.NoError(s, s.db.Read(context.Background(), func(v *store.View) error {
		found = nil
		list, err := v.UnmanagedSwitches()
		for _, u := range list {
			found = append(found, fmt.Sprint(u.Tenant, "/", u.Operation, " ", u.Mode, " by ", u.By))
		}
		return err
	}))
	return found
}

func TestASwitchThatWasSetWithoutTheDaemonIsAuditedOnceAndListedUntilItEnds(t *testing.T) {
	t.Parallel()
	both(t, func(s *scene) {
		t := s.TB
		switches, err := redisswitch.New(redisswitch.Config{Client: s.client})
		require.NoError(t, err)
		foreign := func(m event.ModeSwitch) {
			t.Helper()
			m.Until, m.Reason, m.By = later, "3 a.m.\x1b", "oncall"
			require.NoError(t, switches.Set(t.Context(), m))
		}
		lists := func(want ...string) {
			t.Helper()
			s.eventually(func() bool { return fmt.Sprint(s.foreignModes()) == fmt.Sprint(want) }, want)
		}
		s.mode(control.ScopeTenant, "acme", bucket.Off, later)
		_, stop := s.start(s.config())
		s.eventually(func() bool { return len(s.modes(switches)) == 1 })
		// It is seen while the daemon runs, although nothing else happens.
		foreign(event.ModeSwitch{AtMost: "shadow"})
		foreign(event.ModeSwitch{Tenant: "other", Operation: "Query.*", AtMost: "off"})
		lists("/ shadow by oncall", "other/Query.* off by oncall")
		require.Len(t, s.entries(), 2)
		require.Contains(t, s.entries()[0], `"mode.observe"`)
		require.Contains(t, s.entries()[0], "mode of all")
		require.Contains(t, s.entries()[0], "3 a.m.?")
		require.Contains(t, s.entries()[1], "mode of operation Query.* of tenant other")

		// And when one is there again: it stands in the place of one that was set here.
		stop()
		foreign(event.ModeSwitch{Tenant: "acme", AtMost: "warn"})
		r, _ := s.start(s.config())
		s.carried(r)
		lists("/ shadow by oncall", "acme/ warn by oncall", "other/Query.* off by oncall")
		require.Len(t, s.entries(), 3, "those that were seen before are not audited again")
		s.mode(control.ScopeTenant, "acme", bucket.Shadow, later)
		lists("/ shadow by oncall", "other/Query.* off by oncall")
		_, err = switches.End(t.Context(), "", "")
		require.NoError(t, err)
		lists("other/Query.* off by oncall")
		require.Len(t, s.entries(), 3)
	})
}
