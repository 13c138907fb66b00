package control

import (
	"context"
	"encoding/json"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// TenantInput is what is to be known of a tenant beside the policy.
type TenantInput struct {
	// Tenant is whose record it is.
	Tenant string
	// Document is a [tiers.RecordDocument] without allocations, as JSON: those are the organisation's, and stay as they are, see
	// [Control.Allocate].
	Document []byte
	// Oversubscribe permits allocations that come to more than the tenant has.
	Oversubscribe bool
	// Expected is the revision of the record that the author has seen, 0 for none.
	Expected uint64
}

// Tenant is what is known of a tenant beside the policy.
type Tenant struct {
	Tenant string `json:"tenant"`
	// Revision is the change that has written it. Changes of tenants, overrides and modes have one count.
	Revision uint64 `json:"revision"`
	// Document is what an operator has written. It is empty if that is nothing.
	Document json.RawMessage `json:"document,omitempty"`
	// Allocations are what the organisation gives its own teams and users. Nil is nothing.
	Allocations *tiers.Allocations `json:"allocations,omitempty"`
	// Oversubscribe permits allocations that come to more than the tenant has.
	Oversubscribe bool `json:"oversubscribe,omitempty"`
	// By is who has written it, Reason why, and At when.
	By     string    `json:"by"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
	// Warnings are what is odd, and holds all the same. They are told to who writes.
	Warnings []string `json:"warnings,omitempty"`
}

// PutTenant writes the record of a tenant: [access.AssignTenant], and [access.BlockTenant] or [access.UnblockTenant] where the tenant is blocked by
// it, or no longer. Tier, exceptions and all else of it have to fit the newest policy. A top-up
// keeps what the organisation has allocated; a tenant that has less than its organisation has allocated is a warning. It is
// relayed as a [MessageTenant].
func (c *Control) PutTenant(ctx context.Context, r Request, in TenantInput) (*Tenant, error) {
	check := func() error {
		if err := checkName("tenant", in.Tenant, tiers.MaxLongName); err != nil {
			return err
		}
		given, err := parseRecord(in.Document)
		if err == nil && given.Allocations != nil {
			err = invalid("document", "allocations are the organisation's own: leave them out, and those that it has made stay")
		}
		return err
	}
	a := action{Action: access.AssignTenant, tenant: in.Tenant}
	return c.changeTenant(ctx, r, a, in, check, func(tx *store.Tx, newest *compiled, was *store.Tenant) (*Tenant, done, error) {
		next := store.Tenant{Name: in.Tenant, Document: in.Document, Oversubscribe: in.Oversubscribe}
		if was != nil {
			next.Allocations = was.Allocations
		}
		return c.writeTenant(tx, &r, newest, was, &next, in.Expected)
	})
}

// changeTenant is [mutate] for what is known of a tenant, by a policy that is the newest one. Was is what is known, nil for nothing.
func (c *Control) changeTenant(
	ctx context.Context, r Request, a action, input any, check func() error,
	change func(tx *store.Tx, newest *compiled, was *store.Tenant) (*Tenant, done, error),
) (*Tenant, error) {
	return judged(ctx, c, func(newest *compiled) (*Tenant, error) {
		return mutate(ctx, c, r, a, input, check, func(tx *store.Tx) (*Tenant, done, error) {
			if err := newest.holds(tx); err != nil {
				return nil, done{}, err
			}
			was, err := tx.Tenant(a.tenant)
			if err != nil {
				return nil, done{}, err
			}
			return change(tx, newest, was)
		})
	})
}

// RemoveTenantInput says whose record is removed.
type RemoveTenantInput struct {
	Tenant string
	// Expected is the revision of the record that the author has seen.
	Expected uint64
}

// RemoveTenant removes the record of a tenant, with its allocations: as [Control.PutTenant]. The tenant has what the policy says then. There is
// [ErrNotFound] if it has none. It is relayed as a [MessageTenant]. The answer has the revision of the removal.
func (c *Control) RemoveTenant(ctx context.Context, r Request, in RemoveTenantInput) (*Tenant, error) {
	check := func() error { return checkName("tenant", in.Tenant, tiers.MaxLongName) }
	a := action{Action: access.AssignTenant, tenant: in.Tenant}
	return c.changeTenant(ctx, r, a, in, check, func(tx *store.Tx, newest *compiled, was *store.Tenant) (*Tenant, done, error) {
		if was == nil {
			return nil, done{}, ErrNotFound
		}
		return c.storeTenant(tx, &r, newest, was, &store.Tenant{Name: in.Tenant}, in.Expected)
	})
}

// AllocateInput is what an organisation gives its own teams and users.
type AllocateInput struct {
	Tenant string
	// Allocations are all that it gives. Nil gives nothing.
	Allocations *tiers.Allocations
	// Expected is the revision of the record of the tenant that the author has seen, 0 for none.
	Expected uint64
}

// Allocate divides limits of a tenant among its teams and users: [access.SetAllocations]. An allocation has unit, capacity, refill, period, window,
// anchor and zone, and nothing else. Those of all teams, and those of all users, come to no more than the tenant has in the
// same unit over the same time, and none of them to more than it has over a longer one, unless the tenant may oversubscribe. What a
// tenant has no limit of cannot be allocated. It is relayed as a [MessageTenant].
func (c *Control) Allocate(ctx context.Context, r Request, in AllocateInput) (*Tenant, error) {
	check := func() error {
		if err := checkName("tenant", in.Tenant, tiers.MaxLongName); err != nil {
			return err
		}
		return checkAllocations(in.Allocations)
	}
	a := action{Action: access.SetAllocations, tenant: in.Tenant}
	return c.changeTenant(ctx, r, a, in, check, func(tx *store.Tx, newest *compiled, was *store.Tenant) (*Tenant, done, error) {
		next := store.Tenant{Name: in.Tenant}
		if was != nil {
			next.Document, next.Oversubscribe = was.Document, was.Oversubscribe
		}
		if !empty(in.Allocations) {
			// They were read from JSON, or could have been.
			next.Allocations, _ = json.Marshal(in.Allocations)
		}
		quota, err := quotaOf(newest.rules(), &next)
		if err != nil {
			return nil, done{}, err
		}
		if problem := quota.exceeded(in.Allocations); problem != "" && !next.Oversubscribe {
			return nil, done{}, invalid("allocations", "%s", problem)
		}
		if next.Document == nil && next.Allocations == nil {
			if was == nil {
				return nil, done{}, invalid("allocations", "there are none, and nothing is written")
			}
			return c.storeTenant(tx, &r, newest, was, &next, in.Expected)
		}
		return c.writeTenant(tx, &r, newest, was, &next, in.Expected)
	})
}

// writeTenant judges and writes what is to be known of a tenant.
func (c *Control) writeTenant(tx *store.Tx, r *Request, newest *compiled, was, next *store.Tenant, expected uint64) (*Tenant, done, error) {
	record, err := recordOf(next)
	if err != nil {
		return nil, done{}, err
	}
	if rules := newest.rules(); rules != nil {
		if err := record.Check(rules); err != nil {
			return nil, done{}, &InvalidError{Field: "document", Err: err}
		}
	}
	next.Record = []byte(record.Document())
	answer, d, err := c.storeTenant(tx, r, newest, was, next, expected)
	if err != nil {
		return nil, d, err
	}
	if rules := newest.rules(); rules != nil && rules.Lists(next.Name) {
		answer.Warnings = append(answer.Warnings, "the policy lists the tenant itself: nobody looks at its record")
	}
	if quota, err := quotaOf(newest.rules(), next); err == nil && !next.Oversubscribe {
		if problem := quota.exceeded(answer.Allocations); problem != "" {
			answer.Warnings = append(answer.Warnings, problem)
		}
	}
	return answer, d, nil
}

// storeTenant writes what is to be known of a tenant, as it is.
func (c *Control) storeTenant(tx *store.Tx, r *Request, newest *compiled, was, next *store.Tenant, expected uint64) (*Tenant, done, error) {
	next.By, next.Reason = r.by(maxBy), r.Reason
	if err := tx.PutTenant(next, expected); err != nil {
		return nil, done{}, err
	}
	d := done{target: "tenant " + next.Name, revisionBefore: expected, revisionAfter: next.Revision, kind: MessageTenant, name: next.Name}
	if was != nil {
		d.before = told(was)
	}
	d.wasBlocked, d.blocked = blocks(newest.rules(), next.Name, was), blocks(newest.rules(), next.Name, next)
	if next.Record != nil {
		d.after = told(next)
		if size, err := value(d.after); err != nil || len(size) > audit.MaxValue {
			return nil, done{}, invalid("document", "it has more than the %d bytes that fit with its allocations", audit.MaxValue)
		}
	}
	answer := told(next)
	answer.Revision, answer.By, answer.Reason, answer.At = next.Revision, next.By, next.Reason, next.At
	return answer, d, nil
}

// blocks says whether a tenant is blocked by a policy and what is known of it, nil for nothing. It may be by its tier. Without a policy it is by what
// is known of it, and so where that is a record that cannot be read, which may be replaced and removed as any other.
func blocks(policy *tiers.Snapshot, tenant string, t *store.Tenant) bool {
	var selected tiers.Selection
	var known tiers.RecordDocument
	if t != nil && t.Record != nil {
		// What can be read of it is.
		_ = json.Unmarshal(t.Record, &known)
		record, err := tiers.ParseRecord(t.Record)
		if err != nil {
			return known.Blocked
		}
		selected.Record = record
	}
	if policy == nil {
		return known.Blocked
	}
	rules := policy.Rules(tiers.Subject{Tenant: tenant}, selected)
	return rules.Blocked
}

// maxBy is how many bytes the author of a record has.
const maxBy = 512

// told is what is known of a tenant without who has written it, which the log says itself.
func told(t *store.Tenant) *Tenant {
	known := &Tenant{Tenant: t.Name, Document: t.Document, Oversubscribe: t.Oversubscribe}
	if t.Allocations != nil {
		known.Allocations = &tiers.Allocations{}
		// It was written by this package.
		_ = json.Unmarshal(t.Allocations, known.Allocations)
	}
	return known
}

// written is what is known of a tenant.
func written(t *store.Tenant) *Tenant {
	known := told(t)
	known.Revision, known.By, known.Reason, known.At = t.Revision, t.By, t.Reason, t.At
	return known
}

// Tenant returns what is known of a tenant beside the policy: [access.ReadTenant]. There is [ErrNotFound] if that is nothing.
func (c *Control) Tenant(ctx context.Context, actor access.Actor, tenant string) (known *Tenant, _ error) {
	if err := access.Authorize(actor, access.ReadTenant, tenant); err != nil {
		return nil, err
	}
	err := c.cfg.Store.Read(ctx, func(v *store.View) error {
		t, err := v.Tenant(tenant)
		if err == nil && t == nil {
			err = ErrNotFound
		}
		if err == nil {
			known = written(t)
			known.By = actor.Told(known.By)
		}
		return err
	})
	return known, err
}

// Tenants returns what is known of at most n tenants after a name, by name: [access.ReadTenant] of all.
func (c *Control) Tenants(ctx context.Context, actor access.Actor, after string, n int) (known []Tenant, _ error) {
	if err := access.Authorize(actor, access.ReadTenant, ""); err != nil {
		return nil, err
	}
	err := c.cfg.Store.Read(ctx, func(v *store.View) error {
		tenants, err := v.Tenants(after, n)
		for i := range tenants {
			known = append(known, *written(&tenants[i]))
		}
		return err
	})
	return known, err
}
