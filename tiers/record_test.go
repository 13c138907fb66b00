package tiers_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

const recordPolicy = `
version: 1
default: free
tiers:
  free: {limits: {minute: {capacity: 10, per: minute}}, users: {limits: {minute: {capacity: 5, per: minute}}}}
  pro: {maxCost: 500, store: eu, limits: {minute: {capacity: 100, per: minute}}, teams: {limits: {hour: {capacity: 50, per: hour}}}}
  trial: {mode: warn, enforceFrom: 2099-01-01, limits: {day: {capacity: 7, per: day}}}
tenants:
  house: {tier: pro}
`

func loadRecords(t testing.TB, document string) *tiers.Snapshot {
	t.Helper()
	s, err := tiers.Load([]byte(document), 1)
	require.NoError(t, err)
	return s
}

func parseRecord(t testing.TB, document string) *tiers.Record {
	t.Helper()
	r, err := tiers.ParseRecord([]byte(document))
	require.NoError(t, err)
	return r
}

// capacities are those of the first limits of the buckets that the subject has.
func capacities(s *tiers.Snapshot, subject tiers.Subject, r *tiers.Record) []int64 {
	var all []int64
	for _, b := range s.Rules(subject, tiers.Selection{Record: r}).Buckets {
		all = append(all, b.Limits.All()[0].Capacity)
	}
	return all
}

func TestARecordIsAnExceptionOfItsTenant(t *testing.T) {
	t.Parallel()
	s := loadRecords(t, recordPolicy)
	acme := tiers.Subject{Tenant: "acme"}
	require.Equal(t, []int64{10}, capacities(s, acme, nil))
	require.Equal(t, []int64{100}, capacities(s, acme, parseRecord(t, `{"tier": "pro"}`)))
	require.Equal(t, []int64{100}, capacities(s, acme, tiers.AssignedTo("pro")))
	raised := parseRecord(t, `{"tier": "pro", "limits": {"minute": {"capacity": 700, "per": "minute"}}}`)
	require.Equal(t, []int64{700}, capacities(s, acme, raised))
	require.Equal(t, "pro", s.Rules(acme, tiers.Selection{Record: raised}).Tier)

	carried := tiers.Subject{Tenant: "acme", Tier: "free"}
	require.Equal(t, []int64{700}, capacities(s, carried, raised), "a tier that is carried keeps what is different for the tenant")
	require.Equal(t, []int64{10}, capacities(s, carried, parseRecord(t, `{"tier": "pro"}`)))
	require.True(t, s.Rules(acme, tiers.Selection{Record: parseRecord(t, `{"blocked": true}`)}).Blocked)
	require.True(t, s.Rules(acme, tiers.Selection{Record: parseRecord(t, `{"unlimited": true}`)}).Unlimited)
}

func TestWhatThePolicyListsIsNotChangedByARecord(t *testing.T) {
	t.Parallel()
	s := loadRecords(t, recordPolicy)
	require.True(t, s.Lists("house"))
	require.False(t, s.Lists("acme"))
	require.Equal(t, []int64{100}, capacities(s, tiers.Subject{Tenant: "house"}, parseRecord(t, `{"unlimited": true}`)))
}

func TestAllocationsAreTheBudgetsOfTeamsAndUsersThatTheExceptionDoesNotName(t *testing.T) {
	t.Parallel()
	s := loadRecords(t, recordPolicy)
	r := parseRecord(t, `{"tier": "pro", "teams": {"byName": {"search": {"limits": {"hour": {"capacity": 3, "per": "hour"}}}}},
		"allocations": {
			"teams": {"search": {"hour": {"capacity": 40, "per": "hour"}}, "ads": {"hour": {"capacity": 20, "per": "hour"}}},
			"users": {"ada": {"minute": {"capacity": 8, "per": "minute"}}}
		}}`)
	require.NoError(t, r.Check(s))
	require.Equal(t, []int64{100, 3}, capacities(s, tiers.Subject{Tenant: "acme", Team: "search"}, r), "what the operator says of a team holds")
	require.Equal(t, []int64{100, 20, 8}, capacities(s, tiers.Subject{Tenant: "acme", Team: "ads", User: "ada"}, r))
	require.Equal(t, []int64{100, 50}, capacities(s, tiers.Subject{Tenant: "acme", Team: "other", User: "bob"}, r))

	blocked := parseRecord(t, `{"blocked": true, "allocations": {"users": {"ada": {"minute": {"capacity": 8, "per": "minute"}}}}}`)
	require.NoError(t, blocked.Check(s), "who is blocked keeps its allocations for later")
}

func TestARecordThatDoesNotFitSaysWhereAndWhy(t *testing.T) {
	t.Parallel()
	s := loadRecords(t, recordPolicy)
	for document, want := range map[string]string{
		`{"tier": "gold"}`: `record.tier: there is no tier "gold"`,
		`{}`:               "record: an empty exception",
		`{"limits": {"minute": {"capacity": 0, "per": "minute"}}}`:                           "record.limits.minute.capacity: a capacity of at least 1 is required",
		`{"limits": {"week": null}}`:                                                         "record.limits.week: null removes a limit",
		`{"store": "us", "maxCost": 7}`:                                                      `record.store: the policy names no store "us"`,
		`{"mode": "warn", "enforceFrom": "2030-01-01"}`:                                      "enforceFrom stands in the policy alone",
		`{"allocations": {"users": {"ada": {"minute": {"capacity": -8, "per": "minute"}}}}}`: "record.users.byName.ada.limits.minute.capacity",
	} {
		err := parseRecord(t, document).Check(s)
		require.ErrorContains(t, err, want, document)
	}
	require.NoError(t, parseRecord(t, `{"store": "eu"}`).Check(s))
	for _, document := range []string{``, `[]`, `{"tier": 3}`, `{"teir": "pro"}`, `{"tier": "pro"} {}`, strings.Repeat(" ", tiers.MaxRecord+1)} {
		_, err := tiers.ParseRecord([]byte(document))
		require.Error(t, err, "%.20s", document)
	}
}

func TestARecordThatNoLongerFitsLeavesTheTierAndBlocksWhomItBlocks(t *testing.T) {
	t.Parallel()
	s := loadRecords(t, recordPolicy)
	acme := tiers.Subject{Tenant: "acme"}
	r := parseRecord(t, `{"tier": "pro", "limits": {"minute": {"capacity": 700, "per": "minute"}}}`)
	require.NoError(t, r.Check(s))
	require.NoError(t, s.Rules(acme, tiers.Selection{Record: r}).Misfit)
	blocked := parseRecord(t, `{"tier": "pro", "blocked": true}`)

	smaller := loadRecords(t, "version: 1\ndefault: free\ntiers: {free: {limits: {minute: {capacity: 10, per: minute}}}}")
	rules := smaller.Rules(acme, tiers.Selection{Record: r})
	require.ErrorContains(t, rules.Misfit, `there is no tier "pro"`)
	require.Equal(t, "free", rules.Tier)
	require.Equal(t, []int64{10}, capacities(smaller, acme, r))
	require.True(t, smaller.Rules(acme, tiers.Selection{Record: blocked}).Blocked)
	require.Equal(t, []int64{700}, capacities(s, acme, r), "with the policy that it fits it holds on")
}

func TestARecordHoldsWithEachPolicyThatAnOperationIsJudgedBy(t *testing.T) {
	t.Parallel()
	s := loadRecords(t, recordPolicy)
	r := parseRecord(t, `{"mode": "enforce", "limits": {"hour": {"capacity": 70, "per": "hour"}}}`)
	acme := tiers.Subject{Tenant: "acme"}
	for range 2 {
		require.Equal(t, bucket.Enforce, s.Rules(acme, tiers.Selection{Record: r}).Mode)
		require.Equal(t, bucket.Shadow, s.AtMost(bucket.Shadow).Rules(acme, tiers.Selection{Record: r}).Mode)
	}
	trial := s.Rules(acme, tiers.Selection{Record: parseRecord(t, `{"tier": "trial", "limits": {"hour": {"capacity": 70, "per": "hour"}}}`)})
	day := time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)
	require.Equal(t, day, trial.LimitEnforcedFrom(bucket.Owner{}, "hour"))
	require.Equal(t, day, trial.LimitEnforcedFrom(bucket.Owner{}, "day"))
}

func TestAnOperatorReadsWhichPartOfARecordALimitIsFrom(t *testing.T) {
	t.Parallel()
	s := loadRecords(t, recordPolicy)
	acme := tiers.Subject{Tenant: "acme"}
	r := parseRecord(t, `{"tier": "pro", "limits": {"hour": {"capacity": 70, "per": "hour"}}}`)
	rules := s.Rules(acme, tiers.Selection{Record: r})
	from, found := rules.LimitProvenance(acme, bucket.Owner{}, "hour")
	require.True(t, found)
	require.Equal(t, []string{"record.limits.hour"}, from.Rule)
	require.Equal(t, "record.tier", from.Tier)
}

func TestWhatARecordMakesOfATierAllocatesNothingOnceItIsCompiled(t *testing.T) {
	s := loadRecords(t, recordPolicy)
	r := parseRecord(t, `{"tier": "pro", "limits": {"minute": {"capacity": 700, "per": "minute"}}}`)
	acme := tiers.Subject{Tenant: "acme"}
	want := s.Rules(acme, tiers.Selection{Record: r}).Buckets[0].Limits
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if s.Rules(acme, tiers.Selection{Record: r}).Buckets[0].Limits != want {
			t.Error("compiled again")
		}
	}))
}

func TestARecordThatNobodyAsksForKeepsNoPolicyInMemory(t *testing.T) {
	r := parseRecord(t, `{"tier": "trial", "limits": {"hour": {"capacity": 70, "per": "hour"}}}`)
	collected := make(chan struct{})
	func() {
		s := loadRecords(t, recordPolicy)
		s.Rules(tiers.Subject{Tenant: "acme"}, tiers.Selection{Record: r})
		runtime.AddCleanup(s, func(struct{}) { close(collected) }, struct{}{})
	}()
	for range 1000 {
		runtime.GC()
		select {
		case <-collected:
			runtime.KeepAlive(r)
			return
		default:
			runtime.Gosched()
		}
	}
	t.Fatal("the policy is kept")
}

func TestARecordOfManyNamesAndManyLimitsIsRefusedBeforeItIsCompiled(t *testing.T) {
	t.Parallel()
	s := loadRecords(t, recordPolicy)
	var limits, names []string
	for i := range 8 {
		limits = append(limits, fmt.Sprintf(`"l%d":{"capacity":1,"per":"day"}`, i))
	}
	for i := range 1500 {
		names = append(names, fmt.Sprintf(`"n%d":{"mode":"warn","limits":{"x":{"capacity":%d,"per":"day"}}}`, i, i+1))
	}
	document := fmt.Sprintf(`{"users":{"limits":{%s},"byName":{%s}}}`, strings.Join(limits, ","), strings.Join(names[:900], ","))
	require.Less(t, len(document), tiers.MaxRecord)
	require.ErrorContains(t, parseRecord(t, document).Check(s), "it comes to more than")
}

type preparing struct {
	tiers.Source
	record *tiers.Record
}

func (p preparing) Prepare(context.Context, tiers.Subject) *tiers.Record { return p.record }

func TestASwitchAndARolloutAskTheSourceInsideForRecords(t *testing.T) {
	t.Parallel()
	s, r := loadRecords(t, recordPolicy), parseRecord(t, `{"tier": "pro"}`)
	source := tiers.NewModeSwitch(tiers.NewRollout(preparing{s, r}))
	require.Same(t, r, source.Prepare(t.Context(), tiers.Subject{Tenant: "acme"}))
	require.Nil(t, tiers.NewModeSwitch(tiers.NewRollout(s)).Prepare(t.Context(), tiers.Subject{Tenant: "acme"}))
}
