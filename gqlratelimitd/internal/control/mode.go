package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisswitch"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// MaxSwitchLife is for how long modes are switched at most. What is to stay stands in the policy.
const MaxSwitchLife = redisswitch.Longest

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
	// Expected is the revision of the switch of this scope and name that the author has seen, 0 for none.
	Expected uint64
}

// ModeSwitch is which mode is the strictest one for a time. Who may write into the Redis may have set it without the control plane.
type ModeSwitch struct {
	Scope Scope
	Name  string
	// Operation is the operation rule of one that is about a tenant and an operation, which the control plane does not set.
	Operation string `json:",omitempty"`
	Mode      bucket.Mode
	Until     time.Time
	// Ended says that it was ended by hand.
	Ended bool
	// Revision is the write that has set it. A later one has a larger number.
	Revision uint64
	// By is who has set it, Reason why, and At when.
	By, Reason string
	At         time.Time
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

// of returns the tenant and the operation of a scope, in the words of Redis.
func (s Scope) of(name string) (tenant, operation string) {
	switch s {
	case ScopeTenant:
		return name, ""
	case ScopeOperation:
		return "", name
	case ScopeAll:
	}
	return "", ""
}

// readModes returns the switches as they are in the Redis.
func (c *Control) readModes(ctx context.Context) (*redisswitch.Draft, error) {
	if c.cfg.Modes == nil {
		return nil, ErrNoRedis
	}
	d, err := c.cfg.Modes.Read(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAway, err)
	}
	return d, nil
}

// switchTries is how often a switch is judged again because somebody else has changed another one meanwhile.
const switchTries = 16

// changeModes changes the switches in the Redis, and writes what was done into the audit log: edit changes them, or says why not. The
// log has what instances are given, because that is the last thing before the commit. One that instances are given although the
// commit failed is not noted, and so the relay finds it.
func (c *Control) changeModes(
	ctx context.Context, r Request, a action, input any, edit func(d *redisswitch.Draft) (*ModeSwitch, done, *redisswitch.Switch, error),
) (answer *ModeSwitch, err error) {
	for range switchTries {
		var draft *redisswitch.Draft
		var next *ModeSwitch
		var put *redisswitch.Switch
		var d done
		check := func() (err error) {
			if draft, err = c.readModes(ctx); err == nil {
				next, d, put, err = edit(draft)
			}
			return err
		}
		answer, err = mutate(ctx, c, r, a, input, check, func(tx *store.Tx) (*ModeSwitch, done, error) {
			if put != nil {
				if err := tx.NoteSwitch(put.Fingerprint()); err != nil {
					return nil, done{}, err
				}
			}
			d.last = func() error { return awayUnlessMoved(draft.Write(ctx)) }
			return next, d, nil
		})
		if !errors.Is(err, redisswitch.ErrMoved) {
			break
		}
	}
	return answer, err
}

// awayUnlessMoved says of what a Redis has failed with that it is away.
func awayUnlessMoved(err error) error {
	switch {
	case err == nil, errors.Is(err, redisswitch.ErrMoved):
		return err
	case errors.Is(err, redisswitch.ErrTooMany):
		return invalid("scope", "%v", err)
	default:
		return fmt.Errorf("%w: %w", ErrAway, err)
	}
}

// SwitchMode eases modes in an emergency: [access.SwitchMode], of a tenant or of all. It ends by itself. It is in force as soon as instances
// have read it. The error is [ErrNoRedis] without a Redis, and [ErrAway] if that does not answer.
func (c *Control) SwitchMode(ctx context.Context, r Request, in SwitchInput) (*ModeSwitch, error) {
	return c.changeModes(ctx, r, in.Scope.action(access.SwitchMode, in.Name), in, func(draft *redisswitch.Draft) (*ModeSwitch, done, *redisswitch.Switch, error) {
		if err := c.checkSwitch(ctx, &in); err != nil {
			return nil, done{}, nil, err
		}
		tenant, operation := in.Scope.of(in.Name)
		was := draft.Find(tenant, operation)
		if err := expect(was, in.Expected); err != nil {
			return nil, done{}, nil, err
		}
		put, err := draft.Put(event.ModeSwitch{
			Tenant: tenant, Operation: operation, AtMost: in.Mode.String(), Until: in.Until, By: r.by(redisswitch.MaxText), Reason: r.Reason,
		})
		if err != nil {
			return nil, done{}, nil, invalidSwitch(err)
		}
		next := switchOf(&put)
		d := in.Scope.done(in.Name, was)
		d.after, d.revisionAfter = switchWords{next.Mode.String(), next.Until}, put.Revision
		return &next, d, &put, nil
	})
}

// invalidSwitch says what is wrong with a switch that a Redis does not take.
func invalidSwitch(err error) error {
	field := "name"
	switch {
	case errors.Is(err, redisswitch.ErrUntil):
		field = "until"
	case errors.Is(err, redisswitch.ErrTooMany):
		field = "scope"
	}
	return invalid(field, "%v", err)
}

// expect returns a conflict if another switch is in force than the expected one, 0 for none.
func expect(there *redisswitch.Switch, expected uint64) error {
	switch {
	case there == nil && expected == 0, there != nil && there.Revision == expected:
		return nil
	case there == nil:
		return &ConflictError{}
	default:
		return &ConflictError{Current: there.Revision, By: visible(there.By, maxSaid), At: there.Since}
	}
}

// checkSwitch returns what is wrong with a switch by itself.
func (c *Control) checkSwitch(ctx context.Context, in *SwitchInput) error {
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
	case in.Scope != ScopeOperation:
		return nil
	}
	newest, err := c.current(ctx)
	// In an emergency a policy that has just changed is no reason to begin again.
	if err == nil && newest.rules() != nil && !newest.operations[in.Name] {
		err = invalid("name", "the newest policy has no operation rule %.64q", in.Name)
	}
	return err
}

// EndSwitchInput says which switch is ended.
type EndSwitchInput struct {
	Scope Scope
	Name  string
	// Expected is the revision of the switch that the author has seen.
	Expected uint64
}

// EndModeSwitch ends a switch before its time: [access.EndModeSwitch]. There is [ErrNotFound] if none holds. The other errors are those of
// [Control.SwitchMode].
func (c *Control) EndModeSwitch(ctx context.Context, r Request, in EndSwitchInput) (*ModeSwitch, error) {
	return c.changeModes(ctx, r, in.Scope.action(access.EndModeSwitch, in.Name), in, func(draft *redisswitch.Draft) (*ModeSwitch, done, *redisswitch.Switch, error) {
		if err := in.Scope.check(in.Name); err != nil {
			return nil, done{}, nil, err
		}
		was := draft.Remove(in.Scope.of(in.Name))
		if was == nil {
			return nil, done{}, nil, ErrNotFound
		}
		if err := expect(was, in.Expected); err != nil {
			return nil, done{}, nil, err
		}
		ended := switchOf(was)
		ended.Ended, ended.By = true, r.Actor.Told(ended.By)
		return &ended, in.Scope.done(in.Name, was), nil, nil
	})
}

// switchWords is a switch in the audit log.
type switchWords struct {
	Mode  string    `json:"mode"`
	Until time.Time `json:"until"`
}

// done says what is done about a scope, of which a switch was in force, or nil.
func (s Scope) done(name string, was *redisswitch.Switch) done {
	d := done{target: "mode of " + string(s)}
	if name != "" {
		d.target += " " + name
	}
	if was != nil {
		d.before, d.revisionBefore = switchWords{was.AtMost, was.Until}, was.Revision
	}
	return d
}

// switchOf is a switch with texts that can be shown: anybody may have set it.
func switchOf(is *redisswitch.Switch) ModeSwitch {
	s := ModeSwitch{
		Scope: ScopeAll, Mode: bucket.Off, Until: is.Until.UTC(), Revision: is.Revision,
		By: visible(is.By, maxSaid), Reason: visible(is.Reason, maxSaid), At: is.Since.UTC(),
	}
	for _, mode := range [...]bucket.Mode{bucket.Warn, bucket.Shadow} {
		if is.AtMost == mode.String() {
			s.Mode = mode
		}
	}
	tenant, operation := visible(is.Tenant, maxSaid), visible(is.Operation, maxSaid)
	switch {
	case tenant != "":
		s.Scope, s.Name, s.Operation = ScopeTenant, tenant, operation
	case operation != "":
		s.Scope, s.Name = ScopeOperation, operation
	}
	return s
}

// ModeSwitches returns the switches that are in force, by what they are about: [access.ReadPolicy]. There are tiers.MaxEasings at most.
func (c *Control) ModeSwitches(ctx context.Context, actor access.Actor) (found []ModeSwitch, _ error) {
	if err := access.Authorize(actor, access.ReadPolicy, ""); err != nil {
		return nil, err
	}
	draft, err := c.readModes(ctx)
	if err != nil {
		return nil, err
	}
	all, err := draft.All()
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	for i := range all {
		found = append(found, switchOf(&all[i]))
	}
	return found, nil
}

// easings returns what the switches in the Redis say: nothing where there is none.
func (c *Control) easings(ctx context.Context) ([]tiers.Easing, error) {
	draft, err := c.readModes(ctx)
	if errors.Is(err, ErrNoRedis) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return draft.Easings(), nil
}
