package rollout

import "github.com/gqlgen-ratelimit/ratelimit/digest"

// Measure returns which part of tenants and users is newly refused in the step, by the digests of those instances that have applied it. It is nil if
// none has seen anybody.
//
// Tenants who have the new policy are not newly refused by it as a candidate. The others are drawn by a hash, so that their share stands for all.
func (s *State) Measure(digests []digest.Digest) *Shares {
	step := s.Plan[s.Step]
	var all digest.Groups
	for i := range digests {
		d := &digests[i]
		applied := d.Policy != nil && d.Policy.Revision == s.Revision
		if applied && step.Warn || d.Candidate == s.ID && !step.Warn {
			all.Tenants.Merge(&d.Groups.Tenants)
			all.Users.Merge(&d.Groups.Users)
		}
	}
	if all.Tenants.Seen.Count() == 0 {
		return nil
	}
	return &Shares{step.share(&all.Tenants), step.share(&all.Users)}
}

func (s Step) share(g *digest.Group) float64 {
	seen, newly, part := g.Seen.Count(), g.NewlyRefused.Count(), float64(100-s.Percent)/100
	if s.Warn {
		newly, part = g.WouldRefuse.Count(), 1
	}
	if seen == 0 {
		return 0
	}
	return min(1, newly/(seen*part))
}
