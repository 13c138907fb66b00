package digest

import (
	"cmp"
	"slices"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/number"
)

// Fleet is what several instances have decided of late.
type Fleet struct {
	// Instances is how many there are, and From since when the counts of one of them are, the earliest.
	Instances int       `json:"instances"`
	From      time.Time `json:"from"`
	// Recent adds up what they count, and Unlisted what they count of tenants that none lists.
	Recent   Counts `json:"recent"`
	Unlisted int64  `json:"unlisted,omitempty"`
	// Candidate is the id that Tried and NewlyRefused are about: that of most instances. Those of others are left out.
	Candidate string `json:"candidate,omitempty"`
	// Tenants are those that an instance lists, by the number of their decisions, the busiest first. A tenant that an instance does not list
	// has more decisions than stand here.
	Tenants []Tenant `json:"tenants,omitempty"`
	Groups  Groups   `json:"groups"`
}

// maxMerged is how many tenants a fleet has.
const maxMerged = 1 << 16

// Merge adds up digests of different instances. It takes any that [Digest.Decode] does, whoever has written them.
func Merge(digests []Digest) Fleet {
	f := Fleet{Instances: len(digests), Candidate: candidateOf(digests)}
	tenants := make(map[string]int)
	for i := range digests {
		d := &digests[i]
		if f.From.IsZero() || d.RecentFrom.Before(f.From) {
			f.From = d.RecentFrom
		}
		same := d.Candidate == f.Candidate
		counts := func(c Counts) Counts {
			if !same {
				c = c.withoutCandidate()
			}
			return c
		}
		f.Recent, f.Unlisted = f.Recent.Plus(counts(d.Recent)), number.Sum(f.Unlisted, d.Unlisted)
		for _, t := range d.Tenants {
			at, known := tenants[t.Name]
			if !known {
				if len(f.Tenants) >= maxMerged {
					continue
				}
				at = len(f.Tenants)
				tenants[t.Name], f.Tenants = at, append(f.Tenants, Tenant{Name: t.Name})
			}
			f.Tenants[at].Counts, f.Tenants[at].Tier = f.Tenants[at].Plus(counts(t.Counts)), t.Tier
		}
		groups := d.Groups
		if !same {
			groups.Tenants.NewlyRefused, groups.Users.NewlyRefused = Sketch{}, Sketch{}
		}
		f.Groups.Tenants.Merge(&groups.Tenants)
		f.Groups.Users.Merge(&groups.Users)
	}
	slices.SortFunc(f.Tenants, func(a, b Tenant) int {
		return cmp.Or(cmp.Compare(b.Decisions, a.Decisions), cmp.Compare(a.Name, b.Name))
	})
	return f
}

// candidateOf returns the candidate of most instances, empty if none has one.
func candidateOf(digests []Digest) string {
	votes, most := make(map[string]int), ""
	for i := range digests {
		if id := digests[i].Candidate; id != "" {
			votes[id]++
			if votes[id] > votes[most] || votes[id] == votes[most] && id < most {
				most = id
			}
		}
	}
	return most
}
