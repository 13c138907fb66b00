package control

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// MaxOverrideLife is for how long an override may hold. What is to hold longer stands in the record of the tenant.
const MaxOverrideLife = 366 * 24 * time.Hour

// Bounds of texts that stand in a record of a store of budgets.
const (
	maxOverrideReason = 256
	maxOverrideActor  = 128
)

// OverrideInput is what is to hold for an owner for a time, whatever the policy says.
type OverrideInput struct {
	Tenant string
	// Override is what is to hold. Reason, Actor and SetAt are the control plane's, and what they hold is not looked at. Expires is
	// needed, [MaxOverrideLife] from now at most, unless the owner is blocked.
	Override bucket.Override
	// Expected is the revision of the override that the author has seen, 0 for none. One that has expired is none.
	Expected uint64
}

// OverrideKey says which override it is.
type OverrideKey struct {
	Tenant string
	// Owner is whose it is, and Limit which of its limits, empty for all.
	Owner bucket.Owner
	Limit string
}

// Override is what is to hold for an owner for a time: the intent, of which the relay makes a record in the store of budgets.
type Override struct {
	Tenant string
	// Override is what is to hold. Actor is who has set it, and SetAt when, by the clock of the daemon.
	Override bucket.Override
	// Removed says that it was, by Override.Actor. Nothing else holds of it then.
	Removed bool
	// Revision is the change that has written it. Changes of tenants, overrides and modes have one count.
	Revision uint64

	// Unmanaged says that it is a record in the store of budgets that nobody has set through the control plane. It has no revision. Its
	// Actor and Reason are what it says itself, and SetAt is by the clock of the store.
	Unmanaged bool `json:",omitempty"`
	// Replaced says that such a record holds in the place of this one. It is said in lists.
	Replaced bool `json:",omitempty"`
}

// words is what an override is about, for people.
func (k *OverrideKey) words() string {
	text := "override of " + k.Owner.Level.String()
	if k.Owner.Level == bucket.Tenant {
		text += " " + k.Tenant
	} else {
		text += fmt.Sprintf(" %s of tenant %s", strings.TrimSpace(k.Owner.Name+" "+k.Owner.Part), k.Tenant)
	}
	if k.Limit != "" {
		text += ", limit " + k.Limit
	}
	if len(text) > 512 {
		text = strings.ToValidUTF8(text[:509], "") + "…"
	}
	return text
}

func (k *OverrideKey) check() error {
	if err := checkName("tenant", k.Tenant, tiers.MaxLongName); err != nil {
		return err
	}
	for _, text := range [...]struct{ field, value string }{{"owner", k.Owner.Name}, {"part", k.Owner.Part}, {"limit", k.Limit}} {
		if err := checkText(text.field, text.value, tiers.MaxLongName); err != nil {
			return err
		}
	}
	return nil
}

// SetOverride sets what is to hold for an owner for a time: [access.SetOverride], and [access.BlockTenant] or [access.UnblockTenant] where a block
// begins or ends with it. Its names and numbers have to fit the newest policy. It is relayed as a [MessageOverrides].
func (c *Control) SetOverride(ctx context.Context, r Request, in OverrideInput) (*Override, error) {
	a := action{Action: access.SetOverride, tenant: in.Tenant}
	// The same request has the same fingerprint whatever these say.
	in.Override.Actor, in.Override.Reason, in.Override.SetAt = "", "", time.Time{}
	asked := in
	check := func() error {
		if err := checkText("reason", r.Reason, maxOverrideReason); err != nil {
			return err
		}
		in.Override.Actor, in.Override.Reason = r.by(maxOverrideActor), r.Reason
		return c.checkOverride(&in)
	}
	return judged(ctx, c, func(newest *compiled) (*Override, error) {
		return mutate(ctx, c, r, a, asked, check, func(tx *store.Tx) (*Override, done, error) {
			if err := newest.holds(tx); err != nil {
				return nil, done{}, err
			}
			if rules := newest.rules(); rules != nil {
				if err := fits(tx, rules, &in); err != nil {
					return nil, done{}, err
				}
			}
			return putOverride(tx, &store.Override{Tenant: in.Tenant, Override: in.Override}, in.Expected)
		})
	})
}

// checkOverride returns what is wrong with an override by itself.
func (c *Control) checkOverride(in *OverrideInput) error {
	key := OverrideKey{in.Tenant, in.Override.Owner, in.Override.Limit}
	if err := key.check(); err != nil {
		return err
	}
	if err := in.Override.Check(); err != nil {
		return &InvalidError{Field: "override", Err: err}
	}
	now := c.now()
	switch expires := in.Override.Expires; {
	case expires.IsZero() && !in.Override.Blocked:
		return invalid("expires", "it is missing: an override ends by itself; what is to stay stands in the record of the tenant")
	case !expires.IsZero() && !now.Before(expires):
		return invalid("expires", "%s is over", expires.UTC().Format(time.RFC3339))
	case expires.Sub(now) > MaxOverrideLife:
		return invalid("expires", "%s is more than %d days from now", expires.UTC().Format(time.RFC3339), MaxOverrideLife/day)
	}
	// It is stored and compared in whole milliseconds.
	if !in.Override.Expires.IsZero() {
		in.Override.Expires = time.UnixMilli(in.Override.Expires.UnixMilli()).UTC()
	}
	return nil
}

// fits returns what an override names that the policy does not have for the tenant.
func fits(tx *store.Tx, policy *tiers.Snapshot, in *OverrideInput) error {
	o := &in.Override
	if o.Limit == "" {
		return nil
	}
	subject := tiers.Subject{Tenant: in.Tenant}
	selected := tiers.Selection{}
	switch o.Owner.Level {
	case bucket.Team:
		subject.Team = o.Owner.Name
	case bucket.User:
		subject.User = o.Owner.Name
	case bucket.Operation:
		selected.Fields = []string{o.Owner.Name}
	case bucket.Tenant:
	}
	t, err := tx.Tenant(in.Tenant)
	if err != nil {
		return err
	}
	if t != nil {
		if selected.Record, err = tiers.ParseRecord(t.Record); err != nil {
			return fmt.Errorf("control: the record of the tenant: %w", err)
		}
	}
	rules := policy.Rules(subject, selected)
	if _, there := rules.LimitProvenance(subject, o.Owner, o.Limit); !there {
		return invalid("limit", "by the newest policy the %s has no limit %.64q", o.Owner.Level, o.Limit)
	}
	for i := range rules.Buckets {
		b := &rules.Buckets[i]
		if b.Owner.Level != o.Owner.Level || b.Owner.Name != o.Owner.Name || !hasLimit(b.Limits, o.Limit) {
			continue
		}
		if _, err := o.Apply(b.Limits); err != nil {
			return &InvalidError{Field: "override", Err: err}
		}
	}
	return nil
}

func hasLimit(limits *bucket.Limits, name string) bool {
	for _, l := range limits.All() {
		if l.Name == name {
			return true
		}
	}
	return false
}

// putOverride writes or removes an override.
func putOverride(tx *store.Tx, next *store.Override, expected uint64) (*Override, done, error) {
	was, err := tx.Override(next.Key())
	if err != nil {
		return nil, done{}, err
	}
	if err := tx.PutOverride(next, expected); err != nil {
		return nil, done{}, err
	}
	key := OverrideKey(next.Key())
	d := done{target: key.words(), revisionBefore: expected, revisionAfter: next.Revision, kind: MessageOverrides, name: next.Tenant}
	if was.Holds(tx.Now()) {
		d.before, d.wasBlocked = wordsOf(&was.Override), was.Blocked
	}
	if !next.Removed {
		d.after, d.blocked = wordsOf(&next.Override), next.Blocked
	}
	answer := overrideOf(next)
	return &answer, d, nil
}

// overrideWords is an override in the audit log. A field that is missing changes nothing.
type overrideWords struct {
	Capacity  int64     `json:"capacity,omitempty"`
	Refill    int64     `json:"refill,omitempty"`
	Period    string    `json:"period,omitempty"`
	Mode      string    `json:"mode,omitempty"`
	Unlimited bool      `json:"unlimited,omitempty"`
	Blocked   bool      `json:"blocked,omitempty"`
	Expires   time.Time `json:"expires,omitzero"`
}

func wordsOf(o *bucket.Override) *overrideWords {
	words := &overrideWords{Capacity: o.Capacity, Refill: o.Refill, Unlimited: o.Unlimited, Blocked: o.Blocked, Expires: o.Expires}
	if o.Period != 0 {
		words.Period = o.Period.String()
	}
	if o.Mode != nil {
		words.Mode = o.Mode.String()
	}
	return words
}

func overrideOf(o *store.Override) Override {
	return Override{Tenant: o.Tenant, Override: o.Override, Removed: o.Removed, Revision: o.Revision}
}

// unmanagedOf is a record that nobody has set here, with texts that can be shown.
func unmanagedOf(o *store.Override) Override {
	is := overrideOf(o)
	is.Unmanaged = true
	v := &is.Override
	for _, text := range [...]*string{&is.Tenant, &v.Owner.Name, &v.Owner.Part, &v.Limit, &v.Actor, &v.Reason} {
		*text = visible(*text, maxSaid)
	}
	return is
}

// ClearOverrideInput says which override is removed.
type ClearOverrideInput struct {
	OverrideKey
	// Expected is the revision of the override that the author has seen.
	Expected uint64
}

// ClearOverride removes an override: [access.DeleteOverride], and [access.UnblockTenant] where it blocks. There is [ErrNotFound] if none
// holds. It is relayed as a [MessageOverrides].
func (c *Control) ClearOverride(ctx context.Context, r Request, in ClearOverrideInput) (*Override, error) {
	a := action{Action: access.DeleteOverride, tenant: in.Tenant}
	return mutate(ctx, c, r, a, in, in.check, func(tx *store.Tx) (*Override, done, error) {
		there, err := tx.Override(store.OverrideKey(in.OverrideKey))
		if err == nil && !there.Holds(tx.Now()) {
			err = ErrNotFound
		}
		if err != nil {
			return nil, done{}, err
		}
		next := &store.Override{Tenant: in.Tenant, Removed: true}
		next.Owner, next.Limit, next.Actor, next.Reason = in.Owner, in.Limit, r.by(maxOverrideActor), r.Reason
		return putOverride(tx, next, in.Expected)
	})
}
