package control

import (
	"context"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// MaxSwitchLife is for how long modes are switched at most. What is to stay stands in the policy.
const MaxSwitchLife = 7 * 24 * time.Hour

// Scope is what a mode switch is about.
type Scope string

// The scopes.
const (
	// ScopeAll is everything. It has no name.
	ScopeAll Scope = "all"
	// ScopeTenant is the tenant of a name.
	ScopeTenant Scope = "tenant"
	// ScopeOperation is an operation rule, by its spelling in the policy.
	ScopeOperation Scope = "operation"
)

// SwitchInput is which mode is to be the strictest one for a time.
type SwitchInput struct {
	Scope Scope
	// Name is that of the tenant or operation.
	Name string
	// Mode is the strictest mode: warn, shadow or off. Nothing becomes stricter by it.
	Mode bucket.Mode
	// Until is when it ends by itself, [MaxSwitchLife] from now at most.
	Until time.Time
	// Expected is the revision of the switch of this scope and name that the author has seen, 0 for none. One that has ended is
	// none.
	Expected uint64
}

// ModeSwitch is which mode is the strictest one for a time.
type ModeSwitch struct {
	Scope Scope
	Name  string
	Mode  bucket.Mode
	Until time.Time
	// Ended says that it was ended by hand.
	Ended bool
	// Revision is the change that has written it. Changes of tenants, overrides and modes have one count.
	Revision uint64
	// By is who has written it, Reason why, and At when.
	By, Reason string
	At         time.Time

	// Unmanaged says that it is a switch in Redis that nobody has set through the control plane. It has no revision. By and Reason are what
	// it says itself, At is by the clock of who has set it, and Found when it was seen first. Operation is the operation rule of one that is
	// about a tenant and an operation.
	Unmanaged bool      `json:",omitempty"`
	Found     time.Time `json:",omitzero"`
	Operation string    `json:",omitempty"`
	// Replaced says that such a switch holds in the place of this one. It is said in lists.
	Replaced bool `json:",omitempty"`
}

// Holds reports whether it holds at a time.
func (s *ModeSwitch) Holds(now time.Time) bool { return !s.Ended && now.Before(s.Until) }

// action says who may do something about a scope.
func (s Scope) action(what access.Action, name string) action {
	if s == ScopeTenant {
		return action{Action: what, tenant: name}
	}
	return action{Action: what}
}

// check returns what is wrong with a scope and a name.
func (s Scope) check(name string) error {
	switch s {
	case ScopeAll:
		if name != "" {
			return invalid("name", "a switch of everything has none")
		}
		return nil
	case ScopeTenant, ScopeOperation:
		return checkName("name", name, tiers.MaxLongName)
	default:
		return invalid("scope", "it is none of all, tenant and operation")
	}
}

// SwitchMode eases modes in an emergency: [access.SwitchMode], of a tenant or of all. It ends by itself. It is relayed as a [MessageModes].
func (c *Control) SwitchMode(ctx context.Context, r Request, in SwitchInput) (*ModeSwitch, error) {
	check := func() error {
		err := c.checkSwitch(&in)
		if err != nil || in.Scope != ScopeOperation {
			return err
		}
		newest, err := c.current(ctx)
		// In an emergency a policy that has just changed is no reason to begin again.
		if err == nil && newest.rules() != nil && !newest.operations[in.Name] {
			err = invalid("name", "the newest policy has no operation rule %.64q", in.Name)
		}
		return err
	}
	return mutate(ctx, c, r, in.Scope.action(access.SwitchMode, in.Name), in, check, func(tx *store.Tx) (*ModeSwitch, done, error) {
		return putSwitch(tx, &r, &store.ModeSwitch{Scope: string(in.Scope), Name: in.Name, Mode: in.Mode, Until: in.Until.UTC().Truncate(time.Millisecond)}, in.Expected)
	})
}

// checkSwitch returns what is wrong with a switch by itself.
func (c *Control) checkSwitch(in *SwitchInput) error {
	if err := in.Scope.check(in.Name); err != nil {
		return err
	}
	now := c.now()
	switch {
	case in.Mode != bucket.Warn && in.Mode != bucket.Shadow && in.Mode != bucket.Off:
		return invalid("mode", "warn, shadow or off fits; to enforce again, end the switch")
	case in.Until.IsZero():
		return invalid("until", "it is missing: a switch ends by itself")
	case !now.Before(in.Until):
		return invalid("until", "%s is over", in.Until.UTC().Format(time.RFC3339))
	case in.Until.Sub(now) > MaxSwitchLife:
		return invalid("until", "%s is more than %d days from now", in.Until.UTC().Format(time.RFC3339), MaxSwitchLife/day)
	}
	return nil
}

// EndSwitchInput says which switch is ended.
type EndSwitchInput struct {
	Scope Scope
	Name  string
	// Expected is the revision of the switch that the author has seen.
	Expected uint64
}

// EndModeSwitch ends a switch before its time: [access.EndModeSwitch]. There is [ErrNotFound] if none holds. It is relayed as a
// [MessageModes].
func (c *Control) EndModeSwitch(ctx context.Context, r Request, in EndSwitchInput) (*ModeSwitch, error) {
	check := func() error { return in.Scope.check(in.Name) }
	return mutate(ctx, c, r, in.Scope.action(access.EndModeSwitch, in.Name), in, check, func(tx *store.Tx) (*ModeSwitch, done, error) {
		there, err := tx.ModeSwitch(string(in.Scope), in.Name)
		if err == nil && !there.Holds(tx.Now()) {
			err = ErrNotFound
		}
		if err != nil {
			return nil, done{}, err
		}
		return putSwitch(tx, &r, &store.ModeSwitch{Scope: string(in.Scope), Name: in.Name, Ended: true}, in.Expected)
	})
}

// switchWords is a switch in the audit log.
type switchWords struct {
	Mode  string    `json:"mode"`
	Until time.Time `json:"until"`
}

// putSwitch writes or ends a switch.
func putSwitch(tx *store.Tx, r *Request, next *store.ModeSwitch, expected uint64) (*ModeSwitch, done, error) {
	was, err := tx.ModeSwitch(next.Scope, next.Name)
	if err != nil {
		return nil, done{}, err
	}
	next.By, next.Reason = r.by(maxBy), r.Reason
	if err := tx.PutModeSwitch(next, expected); err != nil {
		return nil, done{}, err
	}
	d := done{target: "mode of " + next.Scope, revisionBefore: expected, revisionAfter: next.Revision, kind: MessageModes}
	if next.Name != "" {
		d.target += " " + next.Name
	}
	if was.Holds(tx.Now()) {
		d.before = switchWords{was.Mode.String(), was.Until}
	}
	if !next.Ended {
		d.after = switchWords{next.Mode.String(), next.Until}
	}
	answer := switchOf(next)
	return &answer, d, nil
}

func switchOf(s *store.ModeSwitch) ModeSwitch {
	return ModeSwitch{
		Scope: Scope(s.Scope), Name: s.Name, Mode: s.Mode, Until: s.Until, Ended: s.Ended,
		Revision: s.Revision, By: s.By, Reason: s.Reason, At: s.At,
	}
}

// ModeSwitches returns at most n switches after a revision, in the order of that: [access.ReadPolicy]. Each that was ever set is there once,
// as it is now: also one that has ended.
func (c *Control) ModeSwitches(ctx context.Context, actor access.Actor, after uint64, n int) (found []ModeSwitch, _ error) {
	if err := access.Authorize(actor, access.ReadPolicy, ""); err != nil {
		return nil, err
	}
	err := c.cfg.Store.Read(ctx, func(v *store.View) error {
		switches, err := v.ModeSwitches(after, n)
		if err != nil {
			return err
		}
		foreign, err := c.foreignSwitches(v)
		for i := range switches {
			s := switchOf(&switches[i])
			s.Replaced = s.Holds(c.now()) && foreign[keyOf(&switches[i])] != nil
			found = append(found, s)
		}
		return err
	})
	return found, err
}

// UnmanagedSwitches returns the switches in Redis that nobody has set here and that hold, by what they are about: [access.ReadPolicy].
// Instances apply tiers.MaxEasings at most.
func (c *Control) UnmanagedSwitches(ctx context.Context, actor access.Actor) (found []ModeSwitch, _ error) {
	if err := access.Authorize(actor, access.ReadPolicy, ""); err != nil {
		return nil, err
	}
	err := c.cfg.Store.Read(ctx, func(v *store.View) error {
		switches, err := v.UnmanagedSwitches()
		for i := range switches {
			if u := &switches[i]; c.now().Before(u.Until) {
				found = append(found, unmanagedSwitchOf(u))
			}
		}
		return err
	})
	return found, err
}

// foreignSwitches returns those switches by what they are about.
func (c *Control) foreignSwitches(v *store.View) (map[store.SwitchKey]*store.UnmanagedSwitch, error) {
	switches, err := v.UnmanagedSwitches()
	found := make(map[store.SwitchKey]*store.UnmanagedSwitch, len(switches))
	for i := range switches {
		if u := &switches[i]; c.now().Before(u.Until) {
			found[u.SwitchKey] = u
		}
	}
	return found, err
}

// keyOf is what a switch is about, in the words of Redis.
func keyOf(s *store.ModeSwitch) store.SwitchKey {
	switch Scope(s.Scope) {
	case ScopeTenant:
		return store.SwitchKey{Tenant: s.Name}
	case ScopeOperation:
		return store.SwitchKey{Operation: s.Name}
	case ScopeAll:
	}
	return store.SwitchKey{}
}

// unmanagedSwitchOf is a switch that nobody has set here, with texts that can be shown.
func unmanagedSwitchOf(u *store.UnmanagedSwitch) ModeSwitch {
	s := ModeSwitch{
		Scope: ScopeAll, Mode: u.Mode, Until: u.Until, By: visible(u.By, maxSaid), Reason: visible(u.Reason, maxSaid), At: u.Since,
		Unmanaged: true, Found: u.Found,
	}
	tenant, operation := visible(u.Tenant, maxSaid), visible(u.Operation, maxSaid)
	switch {
	case tenant != "":
		s.Scope, s.Name, s.Operation = ScopeTenant, tenant, operation
	case operation != "":
		s.Scope, s.Name = ScopeOperation, operation
	}
	return s
}
