package control

import (
	"reflect"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// extent is what traffic has to show before a preview vouches for a document.
type extent struct {
	// longest is the longest period of a limit that may be lowered: a minute of traffic says nothing about a month.
	longest time.Duration
	// per is how a document calls it.
	per string
	// named says that a team or user is lowered by its name.
	named bool
	// staged says that a document has two policies.
	staged bool
}

// extentOf returns what traffic has to show of what a revision lowers.
func (c *Control) extentOf(before, next *compiled) extent {
	_, was := before.snapshot.Stage()
	_, is := next.snapshot.Stage()
	old, err := c.cfg.Parse.Parse(before.Document)
	document, err2 := c.cfg.Parse.Parse(next.Document)
	if was || is || err != nil || err2 != nil {
		return extent{staged: true}
	}
	var e extent
	l := lowered(&old, &document)
	if l == nil {
		return e
	}
	if l.Everybody {
		e.all(reflect.ValueOf(old))
		e.all(reflect.ValueOf(document))
		for _, p := range [...]*tiers.Policy{&old, &document} {
			for _, x := range p.Tenants {
				e.names(x)
			}
		}
		return e
	}
	for _, name := range l.Tiers {
		e.tier(old.Tiers[name], document.Tiers[name])
	}
	for _, tenants := range [...]map[string]tiers.Exception{old.Tenants, document.Tenants} {
		for name := range tenants {
			was, one := old.Tenants[name]
			is, other := document.Tenants[name]
			if one && other && easesException(was, is) {
				continue
			}
			e.exception(&old, was)
			e.exception(&document, is)
		}
	}
	return e
}

// tier adds what a tier lowers.
func (e *extent) tier(was, is tiers.Tier) {
	a, b := plain(was), plain(is)
	if !reflect.DeepEqual(a, b) {
		e.all(reflect.ValueOf(was))
		e.all(reflect.ValueOf(is))
		return
	}
	e.limits(was.Limits, is.Limits)
	if was.Teams != nil && is.Teams != nil {
		e.limits(was.Teams.Limits, is.Teams.Limits)
	}
	if was.Users != nil && is.Users != nil {
		e.limits(was.Users.Limits, is.Users.Limits)
	}
}

// plain is a tier without the limits that each tenant, team and user has, and without a maximum cost, which has no period.
func plain(t tiers.Tier) tiers.Tier {
	t.Limits, t.MaxCost = nil, 0
	if t.Teams != nil {
		teams := *t.Teams
		teams.Limits, t.Teams = nil, &teams
	}
	if t.Users != nil {
		users := *t.Users
		users.Limits, t.Users = nil, &users
	}
	return t
}

// limits adds those that give less than they gave, or are new.
func (e *extent) limits(was, is map[string]*tiers.Limit) {
	was = eased(was, is)
	for _, limits := range [...]map[string]*tiers.Limit{was, is} {
		for name, l := range limits {
			if l != nil && !reflect.DeepEqual(was[name], is[name]) {
				e.limit(l)
			}
		}
	}
}

func (e *extent) limit(l *tiers.Limit) {
	const day = 24 * time.Hour
	length := time.Duration(l.Per)
	switch l.Per {
	case tiers.Month:
		length = 31 * day
	case tiers.Year:
		length = 366 * day
	default:
	}
	if length > e.longest {
		e.longest, e.per = length, l.Per.String()
	}
}

// exception adds all that a tenant has by a document, with its tier.
func (e *extent) exception(p *tiers.Policy, x tiers.Exception) {
	e.names(x)
	tier := x.Tier
	if tier == "" {
		tier = p.Default
	}
	e.all(reflect.ValueOf(x))
	e.all(reflect.ValueOf(p.Tiers[tier]))
}

// names adds that a tenant has teams or users by their names.
func (e *extent) names(x tiers.Exception) {
	e.named = e.named || x.Teams != nil && len(x.Teams.ByName) > 0 || x.Users != nil && len(x.Users.ByName) > 0
}

// all adds every limit of a part of a document.
func (e *extent) all(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		if l, ok := v.Interface().(*tiers.Limit); ok {
			e.limit(l)
			return
		}
		e.all(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			e.all(v.Field(i))
		}
	case reflect.Map:
		for values := v.MapRange(); values.Next(); {
			e.all(values.Value())
		}
	default:
	}
}
