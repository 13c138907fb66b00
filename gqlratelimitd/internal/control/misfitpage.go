package control

import (
	"context"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

const (
	// maxListedMisfits is how many of them are named, and misfitsFor for how long it is told again which ones they are although records have
	// changed: all records are looked at for it.
	maxListedMisfits = 10_000
	misfitsFor       = 10 * time.Second
)

// MisfitPage are tenants whose records do not fit the newest policy: each has its tier without exceptions.
type MisfitPage struct {
	// Policy is the number of the policy, and At when all records were looked at.
	Policy uint64
	At     time.Time
	// Total is how many there are. The first ten thousand by name are listed.
	Total int
	// Unseen says that there are more records than were looked at: a million.
	Unseen bool
	// Tenants are those of the page, and Next is the After of the next one, empty at the end.
	Tenants []Misfit
	Next    string
}

// misfitting is what was found when all records were looked at last. It belongs to who has the turn.
type misfitting struct {
	turn      turn
	page      *MisfitPage
	directory uint64
}

// Misfitting returns at most n tenants after a name whose records do not fit the newest policy: [access.ReadTenant] of all. There is
// [ErrNotFound] before the first policy, and where this daemon cannot read the newest one. It may be ten seconds old.
func (c *Control) Misfitting(ctx context.Context, actor access.Actor, after string, n int) (*MisfitPage, error) {
	if err := access.Authorize(actor, access.ReadTenant, ""); err != nil {
		return nil, err
	}
	if n < 1 || n > store.MaxPage {
		return nil, invalid("first", "1 to %d fits", store.MaxPage)
	}
	if err := checkText("after", after, tiers.MaxLongName); err != nil {
		return nil, err
	}
	all, err := c.allMisfits(ctx)
	if err != nil {
		return nil, err
	}
	page := *all
	page.Tenants = nil
	for _, m := range all.Tenants {
		if m.Tenant <= after {
			continue
		}
		if len(page.Tenants) == n {
			page.Next = page.Tenants[n-1].Tenant
			break
		}
		page.Tenants = append(page.Tenants, m)
	}
	return &page, nil
}

// allMisfits looks at all records, unless it is known what they come to. Of those who ask at once one looks.
func (c *Control) allMisfits(ctx context.Context) (*MisfitPage, error) {
	leave, err := c.misfitting.turn.take(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	newest, err := c.current(ctx)
	if err != nil {
		return nil, err
	}
	if newest.rules() == nil {
		return nil, ErrNotFound
	}
	var head store.Head
	err = c.cfg.Store.Read(ctx, func(v *store.View) (err error) {
		head, err = v.Head()
		return err
	})
	if err != nil {
		return nil, err
	}
	now, known := c.now(), c.misfitting.page
	if known != nil && known.Policy == newest.Number && (c.misfitting.directory == head.Directory || now.Sub(known.At) < misfitsFor && !now.Before(known.At)) {
		return known, nil
	}
	all := &MisfitPage{Policy: newest.Number, At: now}
	all.Unseen, err = c.eachMisfit(ctx, nil, newest.snapshot, func(m Misfit) {
		if all.Total++; len(all.Tenants) < maxListedMisfits {
			all.Tenants = append(all.Tenants, m)
		}
	})
	if err != nil {
		return nil, err
	}
	c.misfitting.page, c.misfitting.directory = all, head.Directory
	return all, nil
}
