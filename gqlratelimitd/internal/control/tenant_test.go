package control_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

func (s *scene) put(document string, expected uint64) (*control.Tenant, error) {
	return s.PutTenant(s.ctx(), by(operator), control.TenantInput{Tenant: "acme", Document: []byte(document), Expected: expected})
}

// allocate gives teams so many points a minute.
func (s *scene) allocate(expected uint64, limits map[string]*tiers.Limit) (*control.Tenant, error) {
	a := &tiers.Allocations{Teams: map[string]map[string]*tiers.Limit{}}
	for team, limit := range limits {
		a.Teams[team] = map[string]*tiers.Limit{"minute": limit}
	}
	return s.Allocate(s.ctx(), by(customer("acme")), control.AllocateInput{Tenant: "acme", Allocations: a, Expected: expected})
}

func perMinute(capacity int64) *tiers.Limit {
	return &tiers.Limit{Capacity: capacity, Per: tiers.Minute}
}

func TestARecordThatDoesNotFitThePolicyIsRefused(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	s.publish(document, 0)
	before := s.dump()
	for document, problem := range map[string]string{
		"":                             "EOF",
		"{":                            "unexpected EOF",
		`{"tier":"pro"} {}`:            "something stands behind",
		`{"teir":"pro"}`:               "unknown field",
		`{"tier":"platinum"}`:          "platinum",
		`{}`:                           "",
		`{"allocations":{"teams":{}}}`: "allocations are the organisation's own",
		strings.Repeat(" ", 64<<10+1):  "at most",
		`{"tier":"pro","limits":{"minute":{"capacity":-1,"per":"minute"}}}`: "capacity",
	} {
		_, err := s.put(document, 0)
		requireInvalid(t, err, "document", problem)
		require.Equal(t, before, s.dump())
	}
	for _, name := range []string{"", strings.Repeat("x", 257), "a\x00b", "\xff", "a\u202eb"} {
		_, err := s.PutTenant(s.ctx(), by(operator), control.TenantInput{Tenant: name, Document: []byte(`{"tier":"pro"}`)})
		requireInvalid(t, err, "tenant", "")
	}
	require.Equal(t, before, s.dump())
}

func TestATenantIsReadByWhoMay(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	s.publish(document, 0)
	put, err := s.put(`{ "tier": "pro" }`, 0)
	require.NoError(t, err)
	require.JSONEq(t, `{"tier":"pro"}`, string(put.Document))
	for _, who := range []access.Actor{viewer, customer("acme")} {
		known, err := s.Tenant(s.ctx(), who, "acme")
		require.NoError(t, err)
		require.Equal(t, put, known)
	}
	_, err = s.Tenant(s.ctx(), customer("other"), "acme")
	require.ErrorIs(t, err, access.ErrDenied)
	_, err = s.Tenant(s.ctx(), customer("other"), "other")
	require.ErrorIs(t, err, control.ErrNotFound)
	_, err = s.Tenants(s.ctx(), customer("acme"), "", 10)
	require.ErrorIs(t, err, access.ErrDenied)
	all, err := s.Tenants(s.ctx(), viewer, "", 10)
	require.NoError(t, err)
	require.Equal(t, []control.Tenant{*put}, all)
	_, err = s.RemoveTenant(s.ctx(), by(operator), control.RemoveTenantInput{Tenant: "other"})
	require.ErrorIs(t, err, control.ErrNotFound)
}

func TestAnOrganisationDividesNoMoreThanItHas(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	s.publish(document, 0)
	before := s.dump()
	for problem, limits := range map[string]map[string]*tiers.Limit{
		"teams come to 1001 points":         {"a": perMinute(500), "b": perMinute(501)},
		"9223372036854775807 points":        {"a": perMinute(1<<63 - 1), "b": perMinute(1<<63 - 1)},
		"of which 2000 come back":           {"a": {Capacity: 1, Refill: 2000, Per: tiers.Minute}},
		"more than the 100000":              {"a": {Capacity: 100_001, Per: tiers.Hour}},
		`no limit in "exports"`:             {"a": {Unit: "exports", Capacity: 1, Per: tiers.Minute}},
		`limit "minute" has no capacity`:    {"a": nil},
		`limit "minute" has more than unit`: {"a": {Capacity: 1, Per: tiers.Minute, Mode: "off"}},
		"has more than":                     {"a": {Capacity: 1, Per: tiers.Minute, FailMode: "open"}},
		"control characters":                {"a\n": perMinute(1)},
	} {
		_, err := s.allocate(0, limits)
		require.ErrorIs(t, err, control.ErrInvalid, problem)
		require.ErrorContains(t, err, problem)
	}
	_, err := s.allocate(0, nil)
	requireInvalid(t, err, "allocations", "nothing is written")
	require.Equal(t, before, s.dump())

	// All that it has, in each unit; over another time each for itself.
	answer, err := s.allocate(0, map[string]*tiers.Limit{
		"a": perMinute(500), "b": perMinute(500), "c": {Unit: "requests", Capacity: 50, Per: tiers.Minute}, "d": {Capacity: 100_000, Per: tiers.Hour},
	})
	require.NoError(t, err)
	require.Empty(t, answer.Warnings)
	// Users are counted for themselves, and are in teams.
	_, err = s.Allocate(s.ctx(), by(customer("acme")), control.AllocateInput{Tenant: "acme", Expected: 1, Allocations: &tiers.Allocations{
		Teams: map[string]map[string]*tiers.Limit{"a": {"minute": perMinute(1000)}}, Users: map[string]map[string]*tiers.Limit{"zoe": {"minute": perMinute(1000)}},
	}})
	require.NoError(t, err)
	_, err = s.allocate(1, map[string]*tiers.Limit{"a": perMinute(1)})
	require.ErrorIs(t, err, store.ErrConflict)
	// Nothing is no record.
	_, err = s.allocate(2, nil)
	require.NoError(t, err)
	_, err = s.Tenant(s.ctx(), viewer, "acme")
	require.ErrorIs(t, err, control.ErrNotFound)
	_, err = s.Allocate(s.ctx(), by(customer("other")), control.AllocateInput{Tenant: "acme"})
	require.ErrorIs(t, err, access.ErrDenied)
}

func TestATopUpKeepsWhatTheOrganisationHasAllocated(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	s.publish(document, 0)
	_, err := s.allocate(0, map[string]*tiers.Limit{"a": perMinute(600), "b": perMinute(400)})
	require.NoError(t, err)
	topUp, err := s.put(`{"tier":"pro"}`, 1)
	require.NoError(t, err)
	require.Equal(t, int64(600), topUp.Allocations.Teams["a"]["minute"].Capacity)
	require.Empty(t, topUp.Warnings)
	// There is more to divide now.
	_, err = s.allocate(2, map[string]*tiers.Limit{"a": perMinute(3000), "b": perMinute(2000)})
	require.NoError(t, err)
	// Instances are given both.
	var record *store.Tenant
	require.NoError(t, s.db.Read(s.ctx(), func(v *store.View) (err error) {
		record, err = v.Tenant("acme")
		return err
	}))
	require.JSONEq(t, `{"tier":"pro","allocations":{"teams":{"a":{"minute":{"capacity":3000,"per":"minute"}},"b":{"minute":{"capacity":2000,"per":"minute"}}}}}`, string(record.Record))
	// Who goes back to less keeps it as well, and is told.
	less, err := s.put(`{"limits":{"minute":{"capacity":900,"per":"minute"}}}`, 3)
	require.NoError(t, err)
	require.Len(t, less.Warnings, 1)
	require.Contains(t, less.Warnings[0], "teams come to 5000 points")
	_, err = s.allocate(4, map[string]*tiers.Limit{"a": perMinute(901)})
	require.ErrorIs(t, err, control.ErrInvalid)
	// Who may oversubscribe is told nothing, and bounded by the tenant all the same.
	_, err = s.PutTenant(s.ctx(), by(operator), control.TenantInput{Tenant: "acme", Document: []byte(`{"tier":"free"}`), Oversubscribe: true, Expected: 4})
	require.NoError(t, err)
	answer, err := s.allocate(5, map[string]*tiers.Limit{"a": perMinute(901), "b": perMinute(901)})
	require.NoError(t, err)
	require.Empty(t, answer.Warnings)
	require.True(t, answer.Oversubscribe)
}

func TestNobodyKnowsWhatCanBeAllocatedWithoutAPolicy(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	_, err := s.allocate(0, map[string]*tiers.Limit{"a": perMinute(1)})
	requireInvalid(t, err, "allocations", "no policy to judge by")
	// A record is written all the same: the policy may come from elsewhere.
	_, err = s.put(`{"tier":"pro"}`, 0)
	require.NoError(t, err)
	s.publish(document, 0)
	_, err = s.allocate(1, map[string]*tiers.Limit{"a": perMinute(5000)})
	require.NoError(t, err)
}

func TestWhoIsListedInThePolicyIsToldThatNobodyLooksAtTheRecord(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	s.publish(document+"tenants: {acme: {tier: house}}\n", 0)
	answer, err := s.put(`{"tier":"pro"}`, 0)
	require.NoError(t, err)
	require.Equal(t, []string{"the policy lists the tenant itself: nobody looks at its record"}, answer.Warnings)
	// A tenant without limits has no quota.
	_, err = s.allocate(1, map[string]*tiers.Limit{"a": perMinute(1e9)})
	require.NoError(t, err)
}
