package control

import (
	"cmp"
	"context"
	"crypto/sha256"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Misfits are tenants whose records fit the policy before, and not the one after: each has its tier without exceptions then.
type Misfits struct {
	// Total is how many there are, and Tenants the first of them by name.
	Total   int      `json:"total"`
	Tenants []Misfit `json:"tenants"`
	// Unseen says that there are more records than were looked at: a million.
	Unseen bool `json:"unseen,omitempty"`
}

// Misfit is one of them, and why.
type Misfit struct {
	Tenant  string `json:"tenant"`
	Problem string `json:"problem"`
}

const (
	// maxMisfits and maxProblem bound what is told of records that do not fit.
	maxMisfits = 20
	maxProblem = 256
	// maxRecords is how many records are looked at, and maxKnown of how many different ones it is known whether they fit.
	maxRecords = 1_000_000
	maxKnown   = 10_000
)

// misfits returns which records stop fitting with a revision, nil if all that fit still do. It takes time.
func (c *Control) misfits(ctx context.Context, next *compiled) (*Misfits, error) {
	newest, err := c.current(ctx)
	if err != nil {
		return nil, err
	}
	found := &Misfits{}
	// Most tenants have nothing of their own but a tier.
	known := map[[sha256.Size]byte]string{}
	last, seen := "", 0
	for more := true; more && seen < maxRecords; {
		var page []store.Tenant
		err := c.cfg.Store.Read(ctx, func(v *store.View) (err error) {
			page, err = v.Tenants(last, store.MaxPage)
			return err
		})
		if err != nil {
			return nil, err
		}
		for i := range page {
			t := &page[i]
			id := sha256.Sum256(t.Record)
			problem, ok := known[id]
			if !ok {
				problem = misfit(t.Record, newest.rules(), next.snapshot)
				if len(known) < maxKnown {
					known[id] = problem
				}
			}
			if last = t.Name; problem == "" {
				continue
			}
			if found.Total++; len(found.Tenants) < maxMisfits {
				found.Tenants = append(found.Tenants, Misfit{t.Name, problem})
			}
		}
		seen += len(page)
		more = len(page) == store.MaxPage
		found.Unseen = more
	}
	if found.Total == 0 && !found.Unseen {
		return nil, nil
	}
	return found, nil
}

// misfit says why a record does not fit one policy, if it fits the one before.
func misfit(record []byte, before, after *tiers.Snapshot) string {
	parsed, err := tiers.ParseRecord(record)
	if err == nil {
		err = parsed.Check(after)
		if err != nil && before != nil && parsed.Check(before) != nil {
			return ""
		}
	}
	if err == nil {
		return ""
	}
	return strings.ToValidUTF8(cmp.Or(cut(err.Error(), maxProblem), "it does not fit"), "?")
}

// cut returns at most so many bytes of a text.
func cut(text string, most int) string { return text[:min(len(text), most)] }
