package control_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

func TestOnlyCapacitiesThatGrowLowerNothing(t *testing.T) {
	t.Parallel()
	with := strings.Replace(document, "  pro:\n", "  pro:\n    usage: totals\n", 1) + `tenants: {acme: {limits: {minute: {capacity: 20, per: minute}}}, globex: {tier: pro}}
`
	for name, c := range map[string]struct {
		old, next string
		want      *control.Lowered
	}{
		"nothing":                     {"", "", nil},
		"a comment":                   {"version: 1", "version: 1 # one", nil},
		"more of a limit":             {"1000,", "2000,", nil},
		"more of a limit of teams":    {"500,", "501,", nil},
		"more of a limit of users":    {"capacity: 100,", "capacity: 101,", nil},
		"more of a tenant's":          {"capacity: 20,", "capacity: 21,", nil},
		"less of a limit":             {"1000,", "999,", &control.Lowered{Tiers: []string{"free"}, OfTiers: 3, OfTenants: 2}},
		"less of a limit of teams":    {"500,", "499,", &control.Lowered{Tiers: []string{"free"}, OfTiers: 3, OfTenants: 2}},
		"more, and less comes back":   {"1000, per", "2000, refill: 1, per", &control.Lowered{Tiers: []string{"free"}, OfTiers: 3, OfTenants: 2}},
		"more over a longer time":     {"5000, per: minute", "6000, per: hour", &control.Lowered{Tiers: []string{"pro"}, OfTiers: 3, OfTenants: 2}},
		"a limit that is new":         {"house: {unlimited: true}", "house: {limits: {day: {capacity: 1, per: day}}}", &control.Lowered{Tiers: []string{"house"}, OfTiers: 3, OfTenants: 2}},
		"an operation rule":           {"capacity: 10,", "capacity: 11,", &control.Lowered{Tiers: []string{"free"}, OfTiers: 3, OfTenants: 2}},
		"a tier that a token may say": {"  house:", "  tiny: {limits: {day: {capacity: 1, per: day}}}\n  house:", &control.Lowered{Tiers: []string{"tiny"}, OfTiers: 4, OfTenants: 2}},
		"less of a tenant's":          {"capacity: 20,", "capacity: 19,", &control.Lowered{OfTiers: 3, Tenants: 1, OfTenants: 2}},
		"a tenant less":               {", globex: {tier: pro}", "", &control.Lowered{OfTiers: 3, Tenants: 1, OfTenants: 2}},
		"a tenant more":               {"globex:", "initech: {blocked: true}, globex:", &control.Lowered{OfTiers: 3, Tenants: 1, OfTenants: 3}},
		"a tier counts usage":         {"house: {unlimited: true}", "house: {unlimited: true, usage: totals}", nil},
		"a tier counts root fields":   {"usage: totals", "usage: fields", nil},
		"a tier counts less":          {"usage: totals", "usage: none", &control.Lowered{Tiers: []string{"pro"}, OfTiers: 3, OfTenants: 2}},
		"a tenant counts all":         {"globex: {tier: pro}", "globex: {tier: pro, usage: fields}", nil},
		"a tenant counts who knows":   {"globex: {tier: pro}", "globex: {tier: pro, usage: totals}", &control.Lowered{OfTiers: 3, Tenants: 1, OfTenants: 2}},
		"another default":             {"default: free", "default: pro", &control.Lowered{OfTiers: 3, OfTenants: 2, Everybody: true}},
		"a mode":                      {"default: free", "default: free\nmode: shadow", &control.Lowered{OfTiers: 3, OfTenants: 2, Everybody: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, control.Config{})
			s.publish(with, 0)
			next := strings.Replace(with, c.old, c.next, 1)
			require.True(t, next != with || name == "nothing")
			require.Equal(t, c.want, s.propose(next, 1).Reach.Lowered)
		})
	}
}

// TestADocumentOfTwoPoliciesHidesNoneOfThem publishes a document whose policy of now is that which holds, and whose next one has
// less and holds for everybody.
func TestADocumentOfTwoPoliciesHidesNoneOfThem(t *testing.T) {
	t.Parallel()
	s := twoPersons(t, nil)
	staged, err := tiers.StageDocument([]byte(document), []byte(less), tiers.Stage{ID: "r1", Seed: "seed", Percent: 100})
	require.NoError(t, err)
	_, err = s.tryPublish(publisher, string(staged), 1)
	requireSecondPerson(t, err)
	require.NoError(t, s.approve(second, s.propose(string(staged), 1)))
	_, err = s.tryPublish(publisher, string(staged), 1)
	require.NoError(t, err)
	// The same once more lowers nothing, and what comes after it is compared with both.
	_, err = s.tryPublish(publisher, string(staged), 2)
	require.NoError(t, err)
	_, err = s.tryPublish(publisher, less, 3)
	requireSecondPerson(t, err)
}

func TestWhoseRecordStopsFittingIsSaidBeforeAndWhenItIsPublished(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	s.publish(document, 0)
	revision := uint64(0)
	for i := range 25 {
		_, err := s.PutTenant(s.ctx(), by(operator), control.TenantInput{Tenant: fmt.Sprintf("tenant%02d", i), Document: []byte(`{"tier":"pro"}`)})
		require.NoError(t, err)
		revision++
	}
	_, err := s.put(`{"tier":"free"}`, 0)
	require.NoError(t, err)
	answer, err := s.tryPublish(publisher, document, 1)
	require.NoError(t, err)
	require.Nil(t, answer.Misfits)
	less := strings.Replace(document, "  pro:\n    limits: {minute: {capacity: 5000, per: minute}}\n", "", 1)
	require.NotEqual(t, document, less)
	proposal := s.propose(less, 2)
	answer, err = s.tryPublish(publisher, less, 2)
	require.NoError(t, err)
	require.Equal(t, proposal.Misfits, answer.Misfits)
	require.Equal(t, 25, answer.Misfits.Total)
	require.Len(t, answer.Misfits.Tenants, 20)
	require.Equal(t, "tenant00", answer.Misfits.Tenants[0].Tenant)
	require.Contains(t, answer.Misfits.Tenants[0].Problem, "pro")
	require.False(t, answer.Misfits.Unseen)
	// Who did not fit before is not told again.
	answer, err = s.tryPublish(publisher, less, 3)
	require.NoError(t, err)
	require.Nil(t, answer.Misfits)
	require.NotContains(t, string(s.entries()[len(s.entries())-1].After), "tenant00")
}
