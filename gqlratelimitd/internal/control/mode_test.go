package control_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

func TestASwitchThatNobodyHasSetHereIsListedAndHolds(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{Relay: func() control.RelayStatus { return control.RelayStatus{} }})
	// Package tiers has a clock of its own.
	s.now = time.Now().UTC().Truncate(time.Microsecond)
	s.publish(document, 0)
	hour := s.now.Add(time.Hour)
	_, err := s.SwitchMode(s.ctx(), by(operator), control.SwitchInput{Scope: control.ScopeAll, Mode: bucket.Warn, Until: hour})
	require.NoError(t, err)
	foreign := func(tenant, operation string, mode bucket.Mode, until time.Time) {
		t.Helper()
		require.NoError(t, s.db.Change(s.ctx(), func(tx *store.Tx) error {
			return tx.PutUnmanagedSwitch(&store.UnmanagedSwitch{
				SwitchKey: store.SwitchKey{Tenant: tenant, Operation: operation}, Mode: mode, Until: until, By: "on\x1bcall", Reason: "3 a.m.",
			})
		}))
	}
	mode := func(tenant string) bucket.Mode {
		t.Helper()
		e, err := s.Effective(s.ctx(), auditor, control.EffectiveInput{Tenant: tenant})
		require.NoError(t, err)
		return e.Mode
	}
	require.Equal(t, bucket.Warn, mode("acme"))
	foreign("", "", bucket.Shadow, hour)
	foreign("acme", "", bucket.Off, hour)
	foreign("acme", "Mutation.*", bucket.Off, hour)
	foreign("over", "", bucket.Off, s.now)
	require.Equal(t, []bucket.Mode{bucket.Off, bucket.Shadow}, []bucket.Mode{mode("acme"), mode("over")}, "what Redis has holds")
	found, err := s.ModeSwitches(s.ctx(), auditor, 0, 10)
	require.NoError(t, err)
	require.True(t, found[0].Replaced)
	unmanaged, err := s.UnmanagedSwitches(s.ctx(), auditor)
	require.NoError(t, err)
	require.Len(t, unmanaged, 3)
	require.Equal(t, control.ModeSwitch{
		Scope: control.ScopeTenant, Name: "acme", Operation: "Mutation.*", Mode: bucket.Off, Until: hour.Truncate(time.Microsecond),
		By: `on\x1bcall`, Reason: "3 a.m.", Unmanaged: true, Found: s.now,
	}, unmanaged[2])
	_, err = s.UnmanagedSwitches(s.ctx(), admin("acme"))
	require.ErrorIs(t, err, access.ErrDenied)
	relaying, err := s.Relaying(s.ctx(), auditor)
	require.NoError(t, err)
	require.Equal(t, 3, relaying.UnmanagedSwitches)

	// However many there are, and whatever they say, what holds can be asked for.
	foreign("acme", "\x00", bucket.Off, hour)
	for i := range tiers.MaxEasings + 1 {
		foreign("", fmt.Sprintf("Query.f%d", i), bucket.Off, hour)
	}
	_, err = s.Effective(s.ctx(), auditor, control.EffectiveInput{Tenant: "acme", Operation: "Query.f1"})
	require.NoError(t, err)
}
