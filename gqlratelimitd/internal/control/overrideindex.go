package control

import (
	"context"
	"encoding/base64"
	"encoding/json"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// OverrideFilter says which overrides are listed that were set here. The zero value is all that hold.
type OverrideFilter struct {
	// Tenant is whose they are. Empty is all.
	Tenant string
	// Ended adds those that were removed or have expired.
	Ended bool
	// After is the Next of the page before, and N how many there are on a page.
	After string
	N     int
}

// OverridePage is a page of overrides.
type OverridePage struct {
	Overrides []Override
	// Next is the After of the next page. It is empty at the end.
	Next string
}

// FindOverrides lists what was raised, blocked or otherwise changed here, of a tenant or of all, by tenant: [access.ReadOverride].
func (c *Control) FindOverrides(ctx context.Context, actor access.Actor, f OverrideFilter) (*OverridePage, error) {
	if err := access.Authorize(actor, access.ReadOverride, f.Tenant); err != nil {
		return nil, err
	}
	if f.N < 1 || f.N > store.MaxPage {
		return nil, invalid("first", "1 to %d fits", store.MaxPage)
	}
	if err := checkText("tenant", f.Tenant, tiers.MaxLongName); err != nil {
		return nil, err
	}
	query := &store.OverrideQuery{Tenant: f.Tenant, Now: c.now(), Ended: f.Ended}
	if f.After != "" {
		var place overridePlace
		if decodePlace(f.After, &place) != nil {
			return nil, invalid("after", "it is not the end of a page of overrides")
		}
		query.After = place.key()
	}
	var found []store.ListedOverride
	err := c.cfg.Store.Read(ctx, func(v *store.View) (err error) {
		found, err = v.FindOverrides(query, f.N+1)
		return err
	})
	if err != nil {
		return nil, err
	}
	page := &OverridePage{}
	if len(found) > f.N {
		found = found[:f.N]
		page.Next = encodePlace(overridePlaceOf(found[f.N-1].Key()))
	}
	for i := range found {
		is := overrideOf(&found[i].Override)
		is.Replaced, is.Override.Actor = found[i].Replaced, actor.Told(is.Override.Actor)
		page.Overrides = append(page.Overrides, is)
	}
	return page, nil
}

// overridePlace is a place in the list of overrides, as clients bring it back. Names are any bytes.
type overridePlace struct {
	Tenant []byte `json:"t"`
	Level  uint8  `json:"o,omitempty"`
	Name   []byte `json:"n,omitempty"`
	Part   []byte `json:"p,omitempty"`
	Limit  string `json:"l,omitempty"`
}

func overridePlaceOf(k store.OverrideKey) overridePlace {
	return overridePlace{[]byte(k.Tenant), uint8(k.Owner.Level), []byte(k.Owner.Name), []byte(k.Owner.Part), k.Limit}
}

func (p *overridePlace) key() *store.OverrideKey {
	owner := bucket.Owner{Level: bucket.Level(p.Level), Name: string(p.Name), Part: string(p.Part)}
	return &store.OverrideKey{Tenant: string(p.Tenant), Owner: owner, Limit: p.Limit}
}

// maxPlace is how many bytes a place in a list has at most.
const maxPlace = 8 << 10

// encodePlace writes the place at the end of a page.
func encodePlace(place any) string {
	// It has no value that JSON has not.
	text, _ := json.Marshal(place)
	return base64.RawURLEncoding.EncodeToString(text)
}

// decodePlace reads one.
func decodePlace(text string, into any) error {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if len(text) > maxPlace || err != nil || json.Unmarshal(raw, into) != nil {
		return errPlace
	}
	return nil
}
