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
)

// found are the overrides of a filter, in words, over all pages.
func (s *scene) found(f control.OverrideFilter) (found []string) {
	s.Helper()
	for {
		page, err := s.FindOverrides(s.ctx(), viewer, f)
		require.NoError(s, err)
		for _, o := range page.Overrides {
			text := o.Tenant + " " + o.Override.Limit
			if o.Replaced {
				text += " replaced"
			}
			found = append(found, text)
		}
		if f.After = page.Next; f.After == "" {
			return found
		}
		require.Len(s, page.Overrides, f.N)
	}
}

// unmanaged notes a record that nobody has set through the control plane.
func (s *scene) unmanaged(o store.Override) {
	s.Helper()
	require.NoError(s, s.db.Change(s.ctx(), func(tx *store.Tx) error { return tx.PutUnmanaged(&o) }))
}

func TestTheIndexOfOverridesSaysWhatIsRaisedOrBlockedNow(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	s.publish(document, 0)
	set := func(by access.Actor, tenant string, o bucket.Override) {
		t.Helper()
		s.now = s.now.Add(time.Second)
		_, err := s.SetOverride(s.ctx(), control.Request{Actor: by, Reason: "why"}, control.OverrideInput{Tenant: tenant, Override: o})
		require.NoError(t, err)
	}
	other := actor("bo", access.Operator)
	hour := s.now.Add(time.Hour)
	set(operator, "a", bucket.Override{Limit: "minute", Capacity: 5, Expires: hour.Add(time.Hour)})
	set(operator, "b", bucket.Override{Blocked: true})
	set(other, "c", bucket.Override{Limit: "minute", Capacity: 5, Expires: hour})
	set(operator, "gone", bucket.Override{Limit: "minute", Capacity: 5, Expires: hour})
	_, err := s.ClearOverride(s.ctx(), by(operator), control.ClearOverrideInput{OverrideKey: control.OverrideKey{Tenant: "gone", Limit: "minute"}, Expected: 4})
	require.NoError(t, err)
	set(operator, "over", bucket.Override{Limit: "minute", Capacity: 5, Expires: s.now.Add(2 * time.Second)})
	set(operator, "a", bucket.Override{Owner: bucket.Owner{Level: bucket.User, Name: "zoe"}, Blocked: true, Expires: hour})
	record := func(tenant, limit, by string, o bucket.Override) {
		o.Limit, o.Actor, o.Reason, o.SetAt = limit, by, "3 a.m.", s.now
		s.unmanaged(store.Override{Tenant: tenant, Override: o})
	}
	s.now = s.now.Add(2 * time.Second)
	record("c", "minute", "bob (shell)", bucket.Override{Capacity: 7, Expires: hour})
	record("d", "", "on\x1bcall", bucket.Override{Blocked: true})
	record("d", "x", "oncall", bucket.Override{Capacity: 7, Expires: s.now})

	for n := 1; n < 5; n++ {
		require.Equal(t, []string{"a minute", "a ", "b ", "c minute replaced"}, s.found(control.OverrideFilter{N: n}))
		require.Equal(t, []string{"a minute", "a "}, s.found(control.OverrideFilter{Tenant: "a", N: n}))
		require.Equal(t, []string{"a minute", "a ", "b ", "c minute replaced", "gone minute", "over minute"}, s.found(control.OverrideFilter{Ended: true, N: n}))
	}

	effective, err := s.Effective(s.ctx(), viewer, control.EffectiveInput{Tenant: "c"})
	require.NoError(t, err)
	require.EqualValues(t, 7, effective.Limits[0].Limit.Capacity, "what holds is what the Redis has")
	require.True(t, effective.Limits[0].Override.Unmanaged)
	effective, err = s.Effective(s.ctx(), viewer, control.EffectiveInput{Tenant: "d"})
	require.NoError(t, err)
	require.True(t, effective.Blocked)
}

func TestAPlaceInAListOfOverridesThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	for i := range 3 {
		_, err := s.SetOverride(s.ctx(), by(operator), control.OverrideInput{Tenant: fmt.Sprint("t", i), Override: bucket.Override{Blocked: true}})
		require.NoError(t, err)
	}
	page, err := s.FindOverrides(s.ctx(), viewer, control.OverrideFilter{N: 1})
	require.NoError(t, err)
	for _, after := range []string{"x", "e30x", page.Next + "=", page.Next[1:], "bnVsbA=="} {
		_, err := s.FindOverrides(s.ctx(), viewer, control.OverrideFilter{N: 1, After: after})
		requireInvalid(t, err, "after", "")
	}
	for _, n := range []int{-1, 0, 1001} {
		_, err = s.FindOverrides(s.ctx(), viewer, control.OverrideFilter{N: n})
		requireInvalid(t, err, "first", "")
	}
	_, err = s.FindOverrides(s.ctx(), viewer, control.OverrideFilter{N: 1, Tenant: "\x00"})
	requireInvalid(t, err, "tenant", "")
	_, err = s.FindOverrides(s.ctx(), customer("acme"), control.OverrideFilter{N: 1})
	require.ErrorIs(t, err, access.ErrDenied)
}
