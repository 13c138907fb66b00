package control_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
)

// effective is what the operator is told of a tenant.
func (s *scene) effective(in control.EffectiveInput) *control.Effective {
	s.Helper()
	e, err := s.Effective(s.ctx(), operator, in)
	require.NoError(s, err)
	return e
}

func TestWhatIsEffectiveIsAskedByWhoMayReadTheTenant(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	in := control.EffectiveInput{Tenant: "acme"}
	_, err := s.Effective(s.ctx(), operator, in)
	require.ErrorIs(t, err, control.ErrNotFound, "there is no policy")
	s.publish(document, 0)
	_, err = s.Effective(s.ctx(), customer("acme"), in)
	require.NoError(t, err)
	_, err = s.Effective(s.ctx(), customer("other"), in)
	require.ErrorIs(t, err, access.ErrDenied)
	_, err = s.Effective(s.ctx(), operator, control.EffectiveInput{})
	requireInvalid(t, err, "tenant", "missing")
	_, err = s.Effective(s.ctx(), operator, control.EffectiveInput{Tenant: "acme", User: "a\x00"})
	requireInvalid(t, err, "user", "control characters")
}

func TestTheOverrideOfALimitBeatsThatOfAllUntilItExpires(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	s.publish(document, 0)
	shadow := bucket.Shadow
	for limit, o := range map[string]bucket.Override{
		"":       {Mode: &shadow, Expires: s.now.Add(2 * time.Hour)},
		"minute": {Capacity: 7, Expires: s.now.Add(time.Hour)},
	} {
		o.Limit = limit
		_, err := s.SetOverride(s.ctx(), by(operator), control.OverrideInput{Tenant: "acme", Override: o})
		require.NoError(t, err)
	}
	limits := func() map[string]control.EffectiveLimit {
		named := map[string]control.EffectiveLimit{}
		for _, l := range s.effective(control.EffectiveInput{Tenant: "acme"}).Limits {
			named[l.Limit.Name] = l
		}
		return named
	}
	now := limits()
	require.Equal(t, int64(7), now["minute"].Limit.Capacity)
	require.Equal(t, bucket.Enforce, now["minute"].Limit.Mode)
	require.Equal(t, bucket.Shadow, now["month"].Limit.Mode)
	s.now = s.now.Add(time.Hour)
	now = limits()
	require.Equal(t, int64(1000), now["minute"].Limit.Capacity)
	require.Equal(t, bucket.Shadow, now["minute"].Limit.Mode)
	s.now = s.now.Add(time.Hour)
	require.Nil(t, limits()["minute"].Override)
}

func TestABlockOrNoLimitAtAllIsSeenOfTheTenantAsAWhole(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	s.publish(document, 0)
	_, err := s.SetOverride(s.ctx(), by(operator), control.OverrideInput{Tenant: "bad", Override: bucket.Override{Blocked: true}})
	require.NoError(t, err)
	_, err = s.SetOverride(s.ctx(), by(operator), control.OverrideInput{Tenant: "good", Override: bucket.Override{Unlimited: true, Expires: s.now.Add(time.Hour)}})
	require.NoError(t, err)
	require.True(t, s.effective(control.EffectiveInput{Tenant: "bad"}).Blocked)
	require.True(t, s.effective(control.EffectiveInput{Tenant: "good"}).Unlimited)
	other := s.effective(control.EffectiveInput{Tenant: "other"})
	require.False(t, other.Blocked || other.Unlimited)
}

func TestASwitchIsSeenWhereItEases(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{Modes: modesOf(t)})
	// The engine looks at the clock of the system.
	s.now = time.Now()
	s.publish(document, 0)
	for _, in := range []control.SwitchInput{
		{Scope: control.ScopeTenant, Name: "acme", Mode: bucket.Warn},
		{Scope: control.ScopeOperation, Name: "Mutation.*", Mode: bucket.Off},
	} {
		in.Until = s.now.Add(time.Hour)
		_, err := s.SwitchMode(s.ctx(), by(operator), in)
		require.NoError(t, err)
	}
	require.Equal(t, bucket.Warn, s.effective(control.EffectiveInput{Tenant: "acme"}).Limits[0].Limit.Mode)
	require.Equal(t, bucket.Enforce, s.effective(control.EffectiveInput{Tenant: "other"}).Limits[0].Limit.Mode)
	pay := s.effective(control.EffectiveInput{Tenant: "other", Operation: "Mutation.pay"})
	require.Equal(t, bucket.Off, pay.Limits[0].Limit.Mode)
}
