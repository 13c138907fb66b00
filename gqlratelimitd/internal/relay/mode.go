package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisswitch"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Scopes of mode switches, as package control writes them. That of all has neither of both names.
const (
	scopeTenant    = "tenant"
	scopeOperation = "operation"
)

// scope is what a switch is about.
type scope struct{ tenant, operation string }

func byScope(a, b scope) int {
	return cmp.Or(strings.Compare(a.tenant, b.tenant), strings.Compare(a.operation, b.operation))
}

func scopeOf(s *store.ModeSwitch) scope {
	switch s.Scope {
	case scopeTenant:
		return scope{tenant: s.Name}
	case scopeOperation:
		return scope{operation: s.Name}
	default:
		return scope{}
	}
}

// switchOf returns a switch as Redis is given it.
func switchOf(i *store.SwitchIntent) event.ModeSwitch {
	at := scopeOf(&i.ModeSwitch)
	return event.ModeSwitch{
		Tenant: at.tenant, Operation: at.operation, AtMost: i.Mode.String(), Until: i.Until.UTC().Truncate(time.Millisecond),
		Reason: cut(i.Reason, redisswitch.MaxText), By: marked(i.By, i.Revision, redisswitch.MaxText),
	}
}

// bringModes brings the mode switches in Redis to what the database has, and notes those that come from somewhere else. As of overrides,
// the intent holds, and a switch that somebody has set without the daemon stays until one is set here afterwards.
func (r *Relay) bringModes(ctx context.Context, _ string) (c carried, _ error) {
	ctx, cancel := context.WithTimeout(ctx, 2*callPatience)
	defer cancel()
	list, err := r.modes.List(ctx)
	if err != nil && !errors.Is(err, redisswitch.ErrUnreadable) {
		return c, err
	}
	there := make(map[scope]event.ModeSwitch, len(list))
	for i := range list {
		there[scope{list[i].Tenant, list[i].Operation}] = list[i]
	}
	intents, known, err := r.switches(ctx, there)
	if err != nil {
		return c, err
	}
	now := r.cfg.Now()
	var applied []*store.SwitchIntent
	var refused []error
	for n := range intents {
		i := &intents[n]
		is, found := there[scopeOf(&i.ModeSwitch)]
		wrote, err := r.bringSwitch(ctx, i, is, found, now)
		switch wrong := (*refusedError)(nil); {
		case errors.As(err, &wrong):
			refused = append(refused, err)
		case err != nil:
			return c, err
		default:
			applied = append(applied, i)
		}
		if from, ours := markOf(is.By); wrote || ours && from <= i.Revision {
			delete(there, scopeOf(&i.ModeSwitch))
		}
	}
	c.refused = errors.Join(refused...)
	foreign := compareSwitches(there, known)
	applied = slices.DeleteFunc(applied, func(i *store.SwitchIntent) bool { return i.Applied == i.Revision })
	if len(applied)+len(foreign.set)+len(foreign.gone) > 0 {
		c.note = func(tx *store.Tx) (bool, error) { return noteSwitches(ctx, tx, applied, &foreign) }
	}
	return c, nil
}

// noteSwitches notes which switches Redis was given, and which it has that come from somewhere else. It reports whether what was given still
// is the newest.
func noteSwitches(ctx context.Context, tx *store.Tx, applied []*store.SwitchIntent, foreign *foreignSwitches) (newest bool, _ error) {
	newest = true
	for _, i := range applied {
		is, err := tx.ApplyModeSwitch(i.Scope, i.Name, i.Revision)
		if err != nil {
			return false, err
		}
		newest = newest && is
	}
	return newest, foreign.note(ctx, tx)
}

// switches returns the switches of the database that hold, that Redis has, or that it has not been given yet, and those that were noted.
func (r *Relay) switches(ctx context.Context, there map[scope]event.ModeSwitch) (intents []store.SwitchIntent, known []store.UnmanagedSwitch, _ error) {
	over := r.cfg.Now().Add(-keptAfterEnd)
	err := r.cfg.Store.Read(ctx, func(v *store.View) (err error) {
		if known, err = v.UnmanagedSwitches(); err != nil {
			return err
		}
		intents = nil
		for after := uint64(0); ; {
			page, err := v.SwitchIntents(after, store.MaxPage)
			if err != nil || len(page) == 0 {
				return err
			}
			after = page[len(page)-1].Revision
			for _, i := range page {
				if _, found := there[scopeOf(&i.ModeSwitch)]; found || i.Holds(over) || i.Applied < i.Revision {
					intents = append(intents, i)
				}
			}
		}
	})
	return intents, known, err
}

// refusedError is why a switch will not be relayed before somebody changes it.
type refusedError struct{ error }

// bringSwitch sets or ends one switch, if Redis has another one. Which one it has, and whether, is given.
func (r *Relay) bringSwitch(ctx context.Context, i *store.SwitchIntent, there event.ModeSwitch, found bool, now time.Time) (wrote bool, _ error) {
	from, ours := markOf(there.By)
	fresh, wanted := i.Applied < i.Revision, i.Holds(now.Add(-keptAfterEnd))
	wants := scopeOf(&i.ModeSwitch)
	switch {
	case found && (ours && from > i.Revision || !ours && (!fresh || !wanted)), !found && !wanted:
		return false, nil
	case !wanted:
		_, err := r.modes.End(ctx, wants.tenant, wants.operation)
		if err == nil {
			r.told.wrote(ctx, store.ModesMessage)
		}
		return err == nil, err
	}
	next := switchOf(i)
	there.Since, there.Until = time.Time{}, there.Until.UTC()
	if found && there == next {
		return false, nil
	}
	easing := tiers.Easing{Tenant: next.Tenant, Operation: next.Operation, AtMost: i.Mode, Until: next.Until}
	if err := easing.Check(); err != nil {
		return false, &refusedError{fmt.Errorf("relay: a mode switch: %w", err)}
	}
	err := r.modes.Set(ctx, next)
	switch {
	case errors.Is(err, redisswitch.ErrUntil):
		// By the clock of Redis it is over. What it was to replace is older.
		if !found || !ours {
			return false, nil
		}
		_, err = r.modes.End(ctx, wants.tenant, wants.operation)
	case errors.Is(err, redisswitch.ErrTooMany):
		return false, &refusedError{err}
	}
	if err == nil {
		r.told.wrote(ctx, store.ModesMessage)
	}
	return err == nil, err
}
