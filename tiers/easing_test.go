package tiers_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

const easedDocument = `version: 1
default: free
tiers:
  free:
    maxCost: 500
    limits: {minute: {capacity: 100, per: 1m}}
    operations:
      Mutation.checkout: {limits: {minute: {capacity: 3, per: 1m, unit: requests}}}
tenants:
  evil: {blocked: true}
`

func easedSource(t testing.TB) *tiers.ModeSwitch {
	t.Helper()
	policy, err := tiers.Load([]byte(easedDocument), 1)
	require.NoError(t, err)
	return tiers.NewModeSwitch(policy)
}

// modeOf is the mode of the tenant's limit when it asks for some fields.
func modeOf(t testing.TB, source tiers.Source, tenant string, fields ...string) bucket.Mode {
	t.Helper()
	snapshot, subject := source.Snapshot(), tiers.Subject{Tenant: tenant}
	rules := snapshot.Rules(subject, tiers.Selection{Fields: fields})
	mode := limitsOf(t, rules, nobody)["minute"].Mode
	require.Equal(t, mode, rules.Mode)
	if mode != bucket.Enforce {
		p, found := rules.LimitProvenance(subject, nobody, "minute")
		require.True(t, found)
		require.Equal(t, "(mode switch)", p.Mode)
	}
	if shared := snapshot.SharedRules(subject); shared != nil {
		require.Equal(t, mode, shared.Mode, "of those who share rules")
	}
	return mode
}

func soon() time.Time { return time.Now().Add(time.Hour) }

func TestAnEasingIsAboutItsScopeAlone(t *testing.T) {
	t.Parallel()
	m := easedSource(t)
	ease := func(all ...tiers.Easing) { require.NoError(t, m.Ease(all)) }

	ease(tiers.Easing{AtMost: bucket.Shadow, Until: soon()})
	require.Equal(t, bucket.Shadow, modeOf(t, m, "acme", "Query.a"))

	ease(tiers.Easing{Tenant: "acme", AtMost: bucket.Warn, Until: soon()})
	require.Equal(t, bucket.Warn, modeOf(t, m, "acme", "Query.a"))
	require.Equal(t, bucket.Enforce, modeOf(t, m, "globex", "Query.a"))

	ease(tiers.Easing{Operation: "Mutation.checkout", AtMost: bucket.Off, Until: soon()})
	require.Equal(t, bucket.Off, modeOf(t, m, "acme", "Mutation.checkout"))
	require.Equal(t, bucket.Enforce, modeOf(t, m, "acme", "Mutation.other"))
	require.Equal(t, bucket.Enforce, modeOf(t, m, "acme"))

	ease(
		tiers.Easing{Tenant: "acme", Operation: "Query.search*", AtMost: bucket.Shadow, Until: soon()},
		tiers.Easing{Operation: "Query.searchAll", AtMost: bucket.Warn, Until: soon()},
		tiers.Easing{Tenant: "globex", AtMost: bucket.Warn, Until: soon()},
	)
	require.Equal(t, bucket.Shadow, modeOf(t, m, "acme", "Query.searchAll"), "the easiest of several holds")
	require.Equal(t, bucket.Warn, modeOf(t, m, "other", "Query.searchAll"))
	require.Equal(t, bucket.Enforce, modeOf(t, m, "other", "Query.searchOne"))
	require.Equal(t, bucket.Warn, modeOf(t, m, "globex", "Query.x"))

	ease()
	require.Equal(t, bucket.Enforce, modeOf(t, m, "globex", "Query.x"))
	require.Empty(t, m.Easings())
}

func TestNobodyIsEasedByAddingAFieldThatIs(t *testing.T) {
	t.Parallel()
	m := easedSource(t)
	require.NoError(t, m.Ease([]tiers.Easing{{Operation: "Query.me", AtMost: bucket.Off, Until: soon()}}))
	require.Equal(t, bucket.Off, modeOf(t, m, "acme", "Query.me"))
	require.Equal(t, bucket.Enforce, modeOf(t, m, "acme", "Query.me", "Query.search"))
	require.Equal(t, bucket.Enforce, modeOf(t, m, "acme", "Query.search", "Query.me"))

	// Two easings may be about one operation together.
	require.NoError(t, m.Ease([]tiers.Easing{
		{Operation: "Query.me", AtMost: bucket.Off, Until: soon()}, {Tenant: "acme", Operation: "Query.search", AtMost: bucket.Warn, Until: soon()},
	}))
	require.Equal(t, bucket.Warn, modeOf(t, m, "acme", "Query.me", "Query.search"))
	require.Equal(t, bucket.Enforce, modeOf(t, m, "globex", "Query.me", "Query.search"))
}

func TestAnEasedDocumentIsThatDocument(t *testing.T) {
	t.Parallel()
	m := easedSource(t)
	id := tiers.DocumentID("query { search }")
	require.False(t, m.Snapshot().NamesDocuments())
	require.NoError(t, m.Ease([]tiers.Easing{{Operation: id, AtMost: bucket.Shadow, Until: soon()}}))
	require.True(t, m.Snapshot().NamesDocuments(), "the extension has to say which document it is")
	subject := tiers.Subject{Tenant: "acme"}
	rules := m.Snapshot().Rules(subject, tiers.Selection{Fields: []string{"Query.search"}, Document: id})
	require.Equal(t, bucket.Shadow, rules.Mode)
	rules = m.Snapshot().Rules(subject, tiers.Selection{Fields: []string{"Query.search"}, Document: tiers.DocumentID("query { me }")})
	require.Equal(t, bucket.Enforce, rules.Mode)
}

func TestWhoIsBlockedStaysSoAndModesAreNeverStricter(t *testing.T) {
	t.Parallel()
	m := easedSource(t)
	m.AtMost(bucket.Shadow)
	require.NoError(t, m.Ease([]tiers.Easing{{Tenant: "evil", AtMost: bucket.Off, Until: soon()}, {AtMost: bucket.Warn, Until: soon()}}))
	require.True(t, m.Snapshot().Rules(tiers.Subject{Tenant: "evil"}, tiers.Selection{}).Blocked)
	require.Equal(t, bucket.Shadow, modeOf(t, m, "acme", "Query.a"))
	m.AtMost(bucket.Enforce)
	require.Equal(t, bucket.Warn, modeOf(t, m, "acme", "Query.a"))
	exempt := m.Snapshot().Rules(tiers.Subject{Tenant: "acme", Exempt: true}, tiers.Selection{})
	require.True(t, exempt.Unlimited)
}

func TestAnEasingEndsByItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := easedSource(t)
		require.NoError(t, m.Ease([]tiers.Easing{
			{Tenant: "acme", AtMost: bucket.Shadow, Until: time.Now().Add(time.Minute)},
			{Tenant: "acme", AtMost: bucket.Warn, Until: time.Now().Add(time.Hour)},
			{Tenant: "late", AtMost: bucket.Warn, Until: time.Now()},
		}))
		require.Len(t, m.Easings(), 2)
		time.Sleep(time.Minute - time.Nanosecond) //nolint:forbidigo // the clock of the bubble
		require.Equal(t, bucket.Shadow, modeOf(t, m, "acme", "Query.a"))
		time.Sleep(time.Nanosecond) //nolint:forbidigo // the clock of the bubble
		require.Equal(t, bucket.Warn, modeOf(t, m, "acme", "Query.a"))
		time.Sleep(time.Hour) //nolint:forbidigo // the clock of the bubble
		require.Equal(t, bucket.Enforce, modeOf(t, m, "acme", "Query.a"))
		require.Empty(t, m.Easings())
	})
}

func TestOneSnapshotServesUntilSomethingChanges(t *testing.T) {
	t.Parallel()
	m := easedSource(t)
	require.NoError(t, m.Ease([]tiers.Easing{{Tenant: "acme", AtMost: bucket.Shadow, Until: soon()}}))
	view := m.Snapshot()
	require.Same(t, view, m.Snapshot())
	require.Same(t, view, view.Snapshot())
	require.Equal(t, uint64(1), view.Generation())
	require.True(t, view.HasTier("free"))
	require.True(t, view.Lists("evil"))
	// A snapshot that is eased once more keeps its easings.
	rules := view.AtMost(bucket.Warn).Rules(tiers.Subject{Tenant: "acme"}, tiers.Selection{})
	require.Equal(t, bucket.Shadow, rules.Mode)
	rules = view.AtMost(bucket.Warn).Rules(tiers.Subject{Tenant: "globex"}, tiers.Selection{})
	require.Equal(t, bucket.Warn, rules.Mode)
	require.NoError(t, m.Ease([]tiers.Easing{{Tenant: "globex", AtMost: bucket.Shadow, Until: soon()}}))
	require.NotSame(t, view, m.Snapshot())
}

func TestARecordIsEasedAsItsTenantIs(t *testing.T) {
	t.Parallel()
	m := easedSource(t)
	record, err := tiers.ParseRecord([]byte(`{"limits": {"minute": {"capacity": 7, "per": "1m"}}}`))
	require.NoError(t, err)
	require.NoError(t, m.Ease([]tiers.Easing{{Tenant: "acme", AtMost: bucket.Shadow, Until: soon()}}))
	var together sync.WaitGroup
	for range 4 {
		together.Go(func() {
			for _, tenant := range []string{"acme", "globex"} {
				rules := m.Snapshot().Rules(tiers.Subject{Tenant: tenant}, tiers.Selection{Record: record})
				want := bucket.Enforce
				if tenant == "acme" {
					want = bucket.Shadow
				}
				limit := rules.Buckets[0].Limits.All()[0]
				if limit.Mode != want || limit.Capacity != 7 {
					t.Errorf("%s: %v %d", tenant, limit.Mode, limit.Capacity)
				}
			}
			if err := record.Check(m.Snapshot()); err != nil {
				t.Error(err)
			}
		})
	}
	together.Wait()
}

func TestEasingsThatDoNotFitLeaveThoseBefore(t *testing.T) {
	t.Parallel()
	m := easedSource(t)
	require.NoError(t, m.Ease([]tiers.Easing{{Tenant: "acme", AtMost: bucket.Shadow, Until: soon()}}))
	err := m.Ease([]tiers.Easing{
		{Tenant: "a\x00b", AtMost: bucket.Shadow, Until: soon()},
		{Operation: "checkout", AtMost: bucket.Shadow, Until: soon()},
		{AtMost: bucket.Enforce, Until: soon()},
		{AtMost: bucket.Off},
		{Tenant: strings.Repeat("x", 300), AtMost: 77, Until: soon()},
	})
	for _, mistake := range []string{"a tenant of 3 bytes", `"checkout"`, "warn, shadow or off", "when it ends", "a tenant of 300 bytes"} {
		require.ErrorContains(t, err, mistake)
	}
	require.ErrorContains(t, m.Ease(make([]tiers.Easing, tiers.MaxEasings+1)), fmt.Sprint(tiers.MaxEasings))
	require.Equal(t, bucket.Shadow, modeOf(t, m, "acme", "Query.a"))
}

func TestADecisionAllocatesNothingForEasings(t *testing.T) {
	m := easedSource(t)
	subject, selection := tiers.Subject{Tenant: "acme"}, tiers.Selection{Fields: []string{"Query.a"}}
	room := make([]bucket.Bucket, 4)
	look := func() { _ = m.Snapshot().RulesInto(room, subject, selection) }
	require.Zero(t, testing.AllocsPerRun(100, look))
	require.NoError(t, m.Ease([]tiers.Easing{
		{Tenant: "acme", AtMost: bucket.Shadow, Until: soon()}, {Operation: "Query.b*", AtMost: bucket.Shadow, Until: soon()},
	}))
	look()
	require.Zero(t, testing.AllocsPerRun(100, look))
}
