package control_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisswitch"
)

func TestASwitchThatNobodyHasSetHereIsListedAndHolds(t *testing.T) {
	t.Parallel()
	modes := modesOf(t)
	s := newScene(t, control.Config{Modes: modes})
	s.now = time.Now().UTC().Truncate(time.Microsecond)
	s.publish(document, 0)
	hour := s.now.Add(time.Hour).Truncate(time.Millisecond)
	set, err := s.SwitchMode(s.ctx(), by(operator), control.SwitchInput{Scope: control.ScopeAll, Mode: bucket.Warn, Until: hour})
	require.NoError(t, err)
	foreign := func(tenant, operation string, mode bucket.Mode) {
		t.Helper()
		require.NoError(t, modes.Set(t.Context(), event.ModeSwitch{
			Tenant: tenant, Operation: operation, AtMost: mode.String(), Until: hour, By: "on\x1bcall", Reason: "3 a.m.",
		}))
	}
	mode := func(tenant string) bucket.Mode {
		t.Helper()
		e, err := s.Effective(s.ctx(), viewer, control.EffectiveInput{Tenant: tenant})
		require.NoError(t, err)
		return e.Mode
	}
	require.Equal(t, bucket.Warn, mode("acme"))
	foreign("", "", bucket.Shadow)
	foreign("acme", "", bucket.Off)
	foreign("acme", "Mutation.*", bucket.Off)
	require.Equal(t, []bucket.Mode{bucket.Off, bucket.Shadow}, []bucket.Mode{mode("acme"), mode("other")}, "what Redis has holds")
	found, err := s.ModeSwitches(s.ctx(), viewer)
	require.NoError(t, err)
	require.Len(t, found, 3)
	require.NotZero(t, found[2].At)
	require.Greater(t, found[2].Revision, set.Revision)
	found[2].At, found[2].Revision = time.Time{}, 0
	require.Equal(t, control.ModeSwitch{
		Scope: control.ScopeTenant, Name: "acme", Operation: "Mutation.*", Mode: bucket.Off, Until: hour, By: `on\x1bcall`, Reason: "3 a.m.",
	}, found[2])
	_, err = s.ModeSwitches(s.ctx(), customer("acme"))
	require.ErrorIs(t, err, access.ErrDenied)

	// Who has seen the one before does not end this one.
	_, err = s.EndModeSwitch(s.ctx(), by(operator), control.EndSwitchInput{Scope: control.ScopeAll, Expected: set.Revision})
	conflict := (*control.ConflictError)(nil)
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, found[0].Revision, conflict.Current)
	require.Equal(t, `on\x1bcall`, conflict.By)
}

func TestWhatIsSetHereIsNoted(t *testing.T) {
	t.Parallel()
	modes := modesOf(t)
	s := newScene(t, control.Config{Modes: modes})
	s.now = time.Now().UTC().Truncate(time.Microsecond)
	_, err := s.SwitchMode(s.ctx(), by(operator), control.SwitchInput{Scope: control.ScopeAll, Mode: bucket.Off, Until: s.now.Add(time.Hour)})
	require.NoError(t, err)
	list, err := modes.List(s.ctx())
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, []string{"bob (https://login.example.org)", "why"}, []string{list[0].By, list[0].Reason})
	require.NoError(t, s.db.Read(s.ctx(), func(v *store.View) error {
		noted, err := v.NotedSwitches()
		require.Equal(t, []string{list[0].Fingerprint()}, noted)
		return err
	}))
}

func TestModesWithoutARedisAreNotChanged(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	modes, err := redisswitch.New(redisswitch.Config{Client: redistest.Connect(t, server.Addr)})
	require.NoError(t, err)
	server.Kill()
	for want, cfg := range map[error]control.Config{control.ErrNoRedis: {}, control.ErrAway: {Modes: modes}} {
		s := newScene(t, cfg)
		s.now = time.Now()
		before := s.dump()
		_, err = s.SwitchMode(s.ctx(), by(operator), control.SwitchInput{Scope: control.ScopeAll, Mode: bucket.Off, Until: s.now.Add(time.Hour)})
		require.ErrorIs(t, err, want)
		_, err = s.EndModeSwitch(s.ctx(), by(operator), control.EndSwitchInput{Scope: control.ScopeAll, Expected: 1})
		require.ErrorIs(t, err, want)
		_, err = s.ModeSwitches(s.ctx(), viewer)
		require.ErrorIs(t, err, want)
		require.Equal(t, before, s.dump())
	}
}
