package control_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

func (s *scene) override(expected uint64, o bucket.Override) (*control.Override, error) {
	return s.SetOverride(s.ctx(), by(operator), control.OverrideInput{Tenant: "acme", Override: o, Expected: expected})
}

func TestTheNamesAndNumbersOfAnOverrideFitThePolicy(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	s.publish(document, 0)
	_, err := s.put(`{"limits":{"custom":{"capacity":10,"per":"hour"}}}`, 0)
	require.NoError(t, err)
	before, hour := s.dump(), s.now.Add(time.Hour)
	for name, refused := range map[string]struct {
		o              bucket.Override
		field, problem string
	}{
		"a limit that there is not":    {bucket.Override{Limit: "minutes", Capacity: 5, Expires: hour}, "limit", `no limit "minutes"`},
		"an operation that is not":     {bucket.Override{Owner: bucket.Owner{Level: bucket.Operation, Name: "Query.*"}, Limit: "minute", Capacity: 5, Expires: hour}, "limit", "operation has no limit"},
		"a refill of a window":         {bucket.Override{Limit: "month", Refill: 5, Expires: hour}, "override", ""},
		"a number without a limit":     {bucket.Override{Capacity: 5, Expires: hour}, "override", "need the name of a limit"},
		"nothing":                      {bucket.Override{Expires: hour}, "override", "changes nothing"},
		"no end":                       {bucket.Override{Limit: "minute", Capacity: 5}, "expires", "it is missing"},
		"an end that is over":          {bucket.Override{Limit: "minute", Capacity: 5, Expires: s.now}, "expires", "is over"},
		"an end in two years":          {bucket.Override{Limit: "minute", Capacity: 5, Expires: s.now.AddDate(2, 0, 0)}, "expires", "more than 366 days"},
		"a block that ends in 2 years": {bucket.Override{Blocked: true, Expires: s.now.AddDate(2, 0, 0)}, "expires", "more than 366 days"},
		"a name with a line":           {bucket.Override{Owner: bucket.Owner{Level: bucket.User, Name: "a\nb"}, Blocked: true}, "owner", "control characters"},
	} {
		_, err := s.override(0, refused.o)
		requireInvalid(t, err, refused.field, refused.problem)
		require.Equal(t, before, s.dump(), name)
	}
	long := by(operator)
	long.Reason = strings.Repeat("x", 257)
	_, err = s.SetOverride(s.ctx(), long, overrideInput(0, true))
	requireInvalid(t, err, "reason", "257 bytes")
	for _, o := range []bucket.Override{
		{Limit: "minute", Capacity: 5, Expires: hour},
		{Limit: "custom", Capacity: 5, Expires: hour},
		{Owner: bucket.Owner{Level: bucket.Team, Name: "web"}, Limit: "minute", Capacity: 5, Expires: hour},
		{Owner: bucket.Owner{Level: bucket.User, Name: "zoe"}, Limit: "minute", Capacity: 5, Expires: hour},
		{Owner: bucket.Owner{Level: bucket.Operation, Name: "Mutation.*"}, Limit: "minute", Capacity: 5, Expires: hour},
		{Owner: bucket.Owner{Level: bucket.Operation, Name: "Query.search"}, Blocked: true},
		{Unlimited: true, Expires: hour},
	} {
		_, err := s.override(0, o)
		require.NoError(t, err, o)
	}
}

func TestAnOverrideIsKeptAsTheStoreOfBudgetsWillHaveIt(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	s.publish(document, 0)
	shadow := bucket.Shadow
	o := bucket.Override{Limit: "minute", Capacity: 5, Mode: &shadow, Expires: s.now.Add(time.Hour), Actor: "somebody else", Reason: "another", SetAt: s.now.Add(time.Hour)}
	set, err := s.override(0, o)
	require.NoError(t, err)
	o.Actor, o.Reason, o.SetAt, o.Expires = "bob (https://login.example.org)", "why", s.now, s.now.Add(time.Hour).Truncate(time.Millisecond)
	require.Equal(t, &control.Override{Tenant: "acme", Override: o, Revision: 1}, set)
	require.NoError(t, set.Override.Check())
	require.JSONEq(t, `{"capacity":5,"mode":"shadow","expires":"2026-11-22T04:00:00.123Z"}`, string(s.entries()[1].After))
	for _, tenant := range []string{"acme", ""} {
		found, err := s.FindOverrides(s.ctx(), viewer, control.OverrideFilter{Tenant: tenant, N: 10})
		require.NoError(t, err)
		require.Equal(t, &control.OverridePage{Overrides: []control.Override{*set}}, found)
	}
	_, err = s.FindOverrides(s.ctx(), customer("acme"), control.OverrideFilter{N: 10})
	require.ErrorIs(t, err, access.ErrDenied)
	_, err = s.FindOverrides(s.ctx(), customer("acme"), control.OverrideFilter{Tenant: "acme", N: 10})
	require.NoError(t, err)
	// It expires by itself, and is nothing then.
	s.now = s.now.Add(time.Hour)
	_, err = s.ClearOverride(s.ctx(), by(operator), control.ClearOverrideInput{OverrideKey: control.OverrideKey{Tenant: "acme", Limit: "minute"}, Expected: 1})
	require.ErrorIs(t, err, control.ErrNotFound)
	o.Expires = s.now.Add(time.Hour)
	_, err = s.override(1, o)
	require.ErrorIs(t, err, store.ErrConflict)
	_, err = s.override(0, o)
	require.NoError(t, err)
}

func TestABlockIsAnActionOfItsOwnAndMayBeForEver(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	// There is no policy to judge by, and no time for one.
	blocked, err := s.override(0, bucket.Override{Blocked: true})
	require.NoError(t, err)
	_, err = s.ClearOverride(s.ctx(), by(operator), control.ClearOverrideInput{OverrideKey: control.OverrideKey{Tenant: "acme"}, Expected: blocked.Revision})
	require.NoError(t, err)
	entries := s.entries()
	require.Equal(t, []string{string(access.BlockTenant), string(access.UnblockTenant)}, []string{entries[0].Action, entries[1].Action})
	require.JSONEq(t, `{"blocked":true}`, string(entries[1].Before))
}

func TestModesAreEasedForATimeAndNeverMadeStricter(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{Modes: modesOf(t)})
	s.now = time.Now().UTC().Truncate(time.Microsecond)
	s.publish(document, 0)
	before, hour := s.dump(), s.now.Add(time.Hour)
	for field, in := range map[string]control.SwitchInput{
		"mode":  {Scope: control.ScopeAll, Mode: bucket.Enforce, Until: hour},
		"until": {Scope: control.ScopeAll, Mode: bucket.Shadow},
		"scope": {Scope: "everything", Mode: bucket.Shadow, Until: hour},
		"name":  {Scope: control.ScopeOperation, Name: "Query.*", Mode: bucket.Shadow, Until: hour},
	} {
		_, err := s.SwitchMode(s.ctx(), by(operator), in)
		requireInvalid(t, err, field, "")
	}
	for until, problem := range map[time.Time]string{s.now: "is over", s.now.Add(8 * 24 * time.Hour): "more than 7 days"} {
		_, err := s.SwitchMode(s.ctx(), by(operator), control.SwitchInput{Scope: control.ScopeAll, Mode: bucket.Off, Until: until})
		requireInvalid(t, err, "until", problem)
	}
	_, err := s.SwitchMode(s.ctx(), by(operator), control.SwitchInput{Scope: control.ScopeAll, Name: "x", Mode: bucket.Off, Until: hour})
	requireInvalid(t, err, "name", "has none")
	confined := operator
	confined.Tenants = []string{"acme"}
	for _, in := range []control.SwitchInput{
		{Scope: control.ScopeAll, Mode: bucket.Off, Until: hour}, {Scope: control.ScopeOperation, Name: "Mutation.*", Mode: bucket.Off, Until: hour},
	} {
		_, err = s.SwitchMode(s.ctx(), by(confined), in)
		require.ErrorIs(t, err, access.ErrDenied, "that is more than one tenant")
	}
	require.Equal(t, before, s.dump())

	for _, in := range []control.SwitchInput{
		{Scope: control.ScopeAll, Mode: bucket.Off, Until: hour}, {Scope: control.ScopeOperation, Name: "Mutation.*", Mode: bucket.Warn, Until: hour},
	} {
		set, err := s.SwitchMode(s.ctx(), by(operator), in)
		require.NoError(t, err)
		require.True(t, set.Holds(s.now))
		require.False(t, set.Holds(hour))
	}
	found, err := s.ModeSwitches(s.ctx(), viewer)
	require.NoError(t, err)
	require.Len(t, found, 2)
	_, err = s.ModeSwitches(s.ctx(), customer("acme"))
	require.ErrorIs(t, err, access.ErrDenied)
	end := control.EndSwitchInput{Scope: control.ScopeAll, Expected: found[0].Revision}
	_, err = s.EndModeSwitch(s.ctx(), by(operator), end)
	require.NoError(t, err)
	_, err = s.EndModeSwitch(s.ctx(), by(operator), end)
	require.ErrorIs(t, err, control.ErrNotFound)
}

func TestARightFollowsTheEffectOfAChange(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	s.publish(document, 0)
	// The control plane may end an override by itself, and no block.
	system := by(access.System("relay"))
	for blocked, want := range map[bool]error{false: nil, true: access.ErrDenied} {
		in := bucket.Override{Unlimited: !blocked, Blocked: blocked, Expires: s.now.Add(time.Hour)}
		set, err := s.SetOverride(s.ctx(), by(operator), control.OverrideInput{Tenant: "acme", Override: in})
		require.NoError(t, err)
		key := control.OverrideKey{Tenant: "acme"}
		before := s.dump()
		_, err = s.ClearOverride(s.ctx(), system, control.ClearOverrideInput{OverrideKey: key, Expected: set.Revision})
		require.ErrorIs(t, err, want)
		if blocked {
			require.Equal(t, before, s.dump(), "nothing was changed")
			_, err = s.ClearOverride(s.ctx(), by(operator), control.ClearOverrideInput{OverrideKey: key, Expected: set.Revision})
			require.NoError(t, err)
		}
	}
}

func TestARecordThatBlocksIsABlock(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	s.publish(strings.Replace(document, "  house:", "  gone: {blocked: true}\n  house:", 1), 0)
	last := func() string {
		entries := s.entries()
		return entries[len(entries)-1].Action
	}
	for i, step := range []struct {
		record string
		want   access.Action
	}{
		{`{"tier":"pro"}`, access.AssignTenant},
		{`{"blocked":true}`, access.BlockTenant},
		{`{"tier":"gone"}`, access.AssignTenant},
		{`{"tier":"pro"}`, access.UnblockTenant},
		{`{"tier":"gone"}`, access.BlockTenant},
	} {
		_, err := s.put(step.record, uint64(i))
		require.NoError(t, err)
		require.Equal(t, string(step.want), last(), step.record)
	}
	_, err := s.RemoveTenant(s.ctx(), by(operator), control.RemoveTenantInput{Tenant: "acme", Expected: 5})
	require.NoError(t, err)
	require.Equal(t, string(access.UnblockTenant), last())
}

func TestARecordThatCannotBeReadIsReplacedAndRemoved(t *testing.T) {
	t.Parallel()
	for record, want := range map[string]access.Action{
		`{`: access.AssignTenant, `{"later": 1}`: access.AssignTenant, `{"later": 1, "blocked": true}`: access.UnblockTenant,
	} {
		for name, change := range map[string]func(*scene) error{
			"replaced": func(s *scene) error {
				_, err := s.put(`{"tier":"pro"}`, 1)
				return err
			},
			"removed": func(s *scene) error {
				_, err := s.RemoveTenant(s.ctx(), by(operator), control.RemoveTenantInput{Tenant: "acme", Expected: 1})
				return err
			},
		} {
			t.Run(record+" is "+name, func(t *testing.T) {
				t.Parallel()
				s := newScene(t, control.Config{})
				s.publish(document, 0)
				require.NoError(t, s.db.Change(s.ctx(), func(tx *store.Tx) error {
					return tx.PutTenant(&store.Tenant{Name: "acme", Document: []byte(`{}`), Record: []byte(record)}, 0)
				}))
				require.NoError(t, change(s))
				entries := s.entries()
				require.Equal(t, string(want), entries[len(entries)-1].Action)
			})
		}
	}
}

func TestABlockInThePlaceOfABlockIsABlock(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	was, err := s.override(0, bucket.Override{Blocked: true})
	require.NoError(t, err)
	_, err = s.override(was.Revision, bucket.Override{Blocked: true, Expires: s.now.Add(time.Hour)})
	require.NoError(t, err)
	require.Equal(t, string(access.BlockTenant), s.entries()[1].Action)
}
