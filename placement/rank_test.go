package placement_test

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/placement"
)

const manyTenants = 50_000

func stores(n int) []placement.Member {
	all := make([]placement.Member, n)
	for i := range all {
		all[i].Name = fmt.Sprintf("redis-%d", i+1)
	}
	return all
}

// choose is how many sets of k of n there are.
func choose(n, k int) float64 {
	sets := 1.0
	for i := range k {
		sets = sets * float64(n-i) / float64(i+1)
	}
	return math.Round(sets)
}

// share is how many have something, of all.
func share(all [][]string, has func(candidates []string) bool) float64 {
	n := 0
	for _, of := range all {
		if has(of) {
			n++
		}
	}
	return float64(n) / float64(len(all))
}

// among reports how many of the candidates are among others.
func among(of []string, others ...string) int {
	n := 0
	for _, name := range of {
		if slices.Contains(others, name) {
			n++
		}
	}
	return n
}

func percent(x float64) string {
	text := fmt.Sprintf("%.2f", 100*x)
	if x >= 0.01 {
		text = fmt.Sprintf("%.1f", 100*x)
	}
	return text + " %"
}

func TestTheTableOfTheBlastRadiusIsWhatTenantsHave(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/guide/fleet.md")
	require.NoError(t, err)
	for _, c := range []struct{ n, k int }{{4, 1}, {4, 2}, {12, 1}, {12, 2}, {12, 3}, {24, 3}} {
		m := &placement.Map{Generation: 1, Candidates: c.k, Stores: stores(c.n)}
		require.NoError(t, m.Check())
		n := float64(c.n)
		one, two, nowhere, same := 1/n, min(1, 2/n), 0.0, 1/choose(c.n, c.k)
		shares := 1.0
		if c.n >= 2*c.k {
			shares -= choose(c.n-c.k, c.k) / choose(c.n, c.k)
		}
		switch c.k {
		case 1:
			nowhere = two
		case 2:
			nowhere = 1 / choose(c.n, 2)
		}
		all := make([][]string, manyTenants)
		for i := range all {
			all[i] = m.CandidatesOf(fmt.Sprintf("tenant-%d", i))
		}
		hot := m.CandidatesOf("the hot one")
		const near = 0.01
		require.InDelta(t, one, share(all, func(of []string) bool { return of[0] == "redis-1" }), near)
		require.InDelta(t, two, share(all, func(of []string) bool { return of[0] == "redis-1" || of[0] == "redis-2" }), near)
		require.InDelta(t, nowhere, share(all, func(of []string) bool { return among(of, "redis-1", "redis-2") == c.k }), near)
		require.InDelta(t, one, share(all, func(of []string) bool { return of[0] == hot[0] }), near)
		require.InDelta(t, shares, share(all, func(of []string) bool { return among(of, hot...) > 0 }), near)
		require.InDelta(t, same, share(all, func(of []string) bool { return among(of, hot...) == c.k }), near)
		row := fmt.Sprintf("| %d, %d | %s | %s | %s | %s | %s |", c.n, c.k, percent(one), percent(two), percent(nowhere), percent(shares), percent(same))
		require.Contains(t, string(page), row, "the page has another row")
	}
}

func TestAStoreThatComesOrGoesMovesItsOwnTenantsOnlyAndSpreadsThem(t *testing.T) {
	t.Parallel()
	was := &placement.Map{Generation: 1, Candidates: 2, Stores: stores(8)}
	drains := stores(8)
	drains[3].Draining = true
	to := map[string]int{}
	for name, next := range map[string]*placement.Map{"drains": was.Next(drains), "comes": was.Next(stores(9))} {
		moved := 0
		for i := range manyTenants {
			tenant := fmt.Sprintf("tenant-%d", i)
			before, after := was.Home(tenant), next.Home(tenant)
			if before == after {
				continue
			}
			moved++
			if name == "drains" {
				require.Equal(t, "redis-4", before)
				to[after]++
			} else {
				require.Equal(t, "redis-9", after)
			}
		}
		want := map[string]float64{"drains": 1.0 / 8, "comes": 1.0 / 9}[name]
		require.InDelta(t, want, float64(moved)/manyTenants, 0.005)
	}
	require.Len(t, to, 7)
	for store, n := range to {
		require.InDelta(t, manyTenants/8/7, n, manyTenants/8/7/10, store)
	}
}

// places are what they were when the first map was published.
var places = []string{
	"redis-2 redis-3 redis-4", "redis-2 redis-4 redis-3", "redis-4 redis-2 redis-1", "redis-2 redis-5 redis-3", "redis-5", "redis-4 redis-3 redis-1",
}

func TestPlacesNeverChange(t *testing.T) {
	t.Parallel()
	m := &placement.Map{Generation: 1, Candidates: 3, Stores: stores(5), Pins: map[string]string{"pinned": "redis-5"}}
	var all []string
	for _, tenant := range []string{"", "acme", "globex", "initech", "pinned", "ümlaut"} {
		all = append(all, strings.Join(m.CandidatesOf(tenant), " "))
	}
	require.Equal(t, places, all, "instances of two versions would have two homes for a tenant")
	turned := &placement.Map{Generation: 1, Candidates: 3, Stores: stores(5)}
	for i, j := 0, len(turned.Stores)-1; i < j; i, j = i+1, j-1 {
		turned.Stores[i], turned.Stores[j] = turned.Stores[j], turned.Stores[i]
	}
	require.Equal(t, m.CandidatesOf("acme"), turned.CandidatesOf("acme"), "the order of stores means nothing")
}

func BenchmarkHome(b *testing.B) {
	m := &placement.Map{Generation: 1, Candidates: 3, Stores: stores(24)}
	s := newWorld()
	for _, store := range m.Stores {
		s.add(store.Name)
	}
	placed := s.instance(b, m)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = placed.Peek(b.Context(), "acme", nil)
	}
}
