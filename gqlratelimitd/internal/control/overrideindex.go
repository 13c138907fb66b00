package control

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// OverrideOrder is in which order overrides are listed.
type OverrideOrder string

// The orders.
const (
	// OrderSet has those that were set last in front. It is the default.
	OrderSet OverrideOrder = "set"
	// OrderExpires has those that end first in front, and those that never end at the end.
	OrderExpires OverrideOrder = "expires"
)

var overrideOrders = map[OverrideOrder]store.OverrideOrder{"": store.BySet, OrderSet: store.BySet, OrderExpires: store.ByExpiry}

// OverrideFilter says which overrides are listed. The zero value is all that hold: those that were set here, and records in the store of
// budgets that were not.
type OverrideFilter struct {
	// Tenant is whose they are. Empty is all.
	Tenant string
	// Ended adds those that were removed or have expired.
	Ended bool
	// Blocked and Managed leave only those that are so, or are not. Nil leaves all.
	Blocked, Managed *bool
	// By leaves only those of an actor: as the override says it, or without the issuer behind it. Empty leaves all.
	By string
	// Until leaves only those that end by then. Zero leaves all.
	Until time.Time
	Order OverrideOrder
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

// FindOverrides lists what is raised, blocked or otherwise not as the policy says, of a tenant or of all: [access.ReadOverride].
func (c *Control) FindOverrides(ctx context.Context, actor access.Actor, f OverrideFilter) (*OverridePage, error) {
	if err := access.Authorize(actor, access.ReadOverride, f.Tenant); err != nil {
		return nil, err
	}
	query, err := c.overrideQuery(&f)
	if err != nil {
		return nil, err
	}
	var found []store.ListedOverride
	err = c.cfg.Store.Read(ctx, func(v *store.View) (err error) {
		found, err = v.FindOverrides(query, f.N+1)
		return err
	})
	if err != nil {
		return nil, err
	}
	page := &OverridePage{}
	if len(found) > f.N {
		found = found[:f.N]
		page.Next = cursorOf(f.Order, found[f.N-1].Mark(query.Order))
	}
	for i := range found {
		o := &found[i]
		is := overrideOf(&o.Override)
		if o.Unmanaged {
			is = unmanagedOf(&o.Override, o.Found)
		}
		is.Replaced = o.Replaced
		page.Overrides = append(page.Overrides, is)
	}
	return page, nil
}

// overrideQuery reads what is asked for.
func (c *Control) overrideQuery(f *OverrideFilter) (*store.OverrideQuery, error) {
	order, known := overrideOrders[f.Order]
	switch {
	case !known:
		return nil, invalid("order", "it is neither set nor expires")
	case f.N < 1 || f.N > store.MaxPage:
		return nil, invalid("first", "1 to %d fits", store.MaxPage)
	}
	for _, text := range [...]struct{ field, value string }{{"tenant", f.Tenant}, {"by", f.By}} {
		if err := checkText(text.field, text.value, tiers.MaxLongName); err != nil {
			return nil, err
		}
	}
	q := &store.OverrideQuery{Tenant: f.Tenant, Now: c.now(), Ended: f.Ended, Blocked: f.Blocked, By: f.By, Until: f.Until, Order: order}
	if f.Managed != nil {
		unmanaged := !*f.Managed
		q.Unmanaged = &unmanaged
	}
	var err error
	q.After, err = markOf(f.Order, f.After)
	return q, err
}

// cursor is a place in a list, as clients bring it back. Names of records in a store are any bytes.
type cursor struct {
	Order    OverrideOrder `json:"o,omitempty"`
	Sort     int64         `json:"s"`
	Revision uint64        `json:"r,omitempty"`
	Key      *cursorKey    `json:"k,omitempty"`
}

type cursorKey struct {
	Tenant []byte `json:"t"`
	Name   []byte `json:"n,omitempty"`
	Part   []byte `json:"p,omitempty"`
	Limit  []byte `json:"l,omitempty"`
	Level  uint8  `json:"o,omitempty"`
}

// maxCursor is how many bytes one has at most.
const maxCursor = 8 << 10

func cursorOf(order OverrideOrder, m *store.OverrideMark) string {
	c := cursor{Order: order, Sort: m.Sort, Revision: m.Revision}
	if k := m.Key; k != nil {
		c.Key = &cursorKey{[]byte(k.Tenant), []byte(k.Owner.Name), []byte(k.Owner.Part), []byte(k.Limit), uint8(k.Owner.Level)}
	}
	// It has no value that JSON has not.
	text, _ := json.Marshal(c)
	return base64.RawURLEncoding.EncodeToString(text)
}

// markOf reads a place, empty for the beginning.
func markOf(order OverrideOrder, text string) (*store.OverrideMark, error) {
	if text == "" {
		return nil, nil
	}
	var c cursor
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if len(text) > maxCursor || err != nil || json.Unmarshal(raw, &c) != nil || overrideOrders[c.Order] != overrideOrders[order] ||
		c.Revision > 1<<63-1 {
		return nil, invalid("after", "it is not the end of a page of this order")
	}
	m := &store.OverrideMark{Sort: c.Sort, Revision: c.Revision}
	if k := c.Key; k != nil {
		m.Key = &store.OverrideKey{Tenant: string(k.Tenant), Limit: string(k.Limit)}
		m.Key.Owner.Name, m.Key.Owner.Part, m.Key.Owner.Level = string(k.Name), string(k.Part), bucket.Level(k.Level)
	}
	return m, nil
}

// unmanagedOf is a record that nobody has set here, with texts that can be shown.
func unmanagedOf(o *store.Override, found time.Time) Override {
	is := overrideOf(o)
	is.Revision, is.Unmanaged, is.Found = 0, true, found
	v := &is.Override
	for _, text := range [...]*string{&is.Tenant, &v.Owner.Name, &v.Owner.Part, &v.Limit, &v.Actor, &v.Reason} {
		*text = visible(*text, maxSaid)
	}
	return is
}
