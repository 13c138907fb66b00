package preview

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/gqlgen-ratelimit/ratelimit/digest/sample"
	"github.com/gqlgen-ratelimit/ratelimit/internal/previewreport"
	"github.com/gqlgen-ratelimit/ratelimit/tiers/simulate"
)

func (c *count) report(s *sample.Sample, cfg *Config) *previewreport.Report {
	r := &previewreport.Report{
		From: s.From, To: s.To, Chunks: s.Chunks, Unreadable: s.Unreadable, LeftOut: s.LeftOut, Mixed: c.mixed, Total: c.total,
		Share: s.Share(), NotJudged: simulate.NotJudged(s.Recorded(), c.units, cfg.Before, cfg.After),
	}
	by := make(map[previewreport.Cause]int64)
	for _, t := range c.tenants {
		r.Tenants.Seen++
		r.Tenants.NewlyRefused += int(min(1, t.NewlyRefused))
		r.LargestShare = max(r.LargestShare, float64(t.NewlyRefused)/float64(t.Operations))
		for cause, n := range t.by {
			by[cause] += n
		}
		if t.Before > 0 || t.After > 0 {
			t.By = most(t.by)
			r.Rows = append(r.Rows, t.Row)
		}
	}
	for _, newly := range c.users {
		r.Users.Seen++
		r.Users.NewlyRefused += int(number(newly))
	}
	r.Total.By = most(by)
	finish(&r.Tenants, s.Whole())
	finish(&r.Users, s.Whole())
	slices.SortFunc(r.Rows, func(a, b previewreport.Row) int {
		return cmp.Or(cmp.Compare(b.NewlyRefused, a.NewlyRefused), cmp.Compare(a.Tenant, b.Tenant))
	})
	if len(r.Rows) > cfg.Rows {
		r.Unlisted, r.Rows = len(r.Rows)-cfg.Rows, slices.Clone(r.Rows[:cfg.Rows])
	}
	return r
}

// most returns the causes that refuse most.
func most(by map[previewreport.Cause]int64) []previewreport.Cause {
	const shown = 8
	all := slices.Collect(maps.Keys(by))
	for i := range all {
		all[i].N = by[all[i]]
	}
	slices.SortFunc(all, func(a, b previewreport.Cause) int {
		return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Level, b.Level), cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Limit, b.Limit))
	})
	return all[:min(shown, len(all))]
}

// finish computes the shares: the interval is that of Wilson (Probable Inference, the Law of Succession, and Statistical Inference, 1927).
func finish(g *previewreport.Group, whole bool) {
	if g.Seen == 0 {
		if !whole {
			g.High = 1
		}
		return
	}
	n := float64(g.Seen)
	g.Share = float64(g.NewlyRefused) / n
	if whole {
		g.Low, g.High = g.Share, g.Share
		return
	}
	const z = 1.96
	middle := (g.Share + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(g.Share*(1-g.Share)/n+z*z/(4*n*n))
	g.Low, g.High = max(0, middle-half), min(1, middle+half)
}
