package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

// foreignSwitches is what has changed about the mode switches that Redis has and that nobody has set here.
type foreignSwitches struct {
	set  []store.UnmanagedSwitch
	gone []store.SwitchKey
}

// compareSwitches compares those that Redis has with those that were noted before.
func compareSwitches(there map[scope]event.ModeSwitch, known []store.UnmanagedSwitch) (f foreignSwitches) {
	for i := range known {
		if _, still := there[scope{known[i].Tenant, known[i].Operation}]; !still {
			f.gone = append(f.gone, known[i].SwitchKey)
		}
	}
	for _, is := range there {
		u := unmanagedSwitch(&is)
		same := slices.ContainsFunc(known, func(k store.UnmanagedSwitch) bool {
			return k.SwitchKey == u.SwitchKey && k.Mode == u.Mode && k.Until.Equal(u.Until) && k.Since.Equal(u.Since) && k.By == u.By && k.Reason == u.Reason
		})
		if !same {
			f.set = append(f.set, u)
		}
	}
	slices.SortFunc(f.set, func(a, b store.UnmanagedSwitch) int {
		return byScope(scope{a.Tenant, a.Operation}, scope{b.Tenant, b.Operation})
	})
	return f
}

// unmanagedSwitch is a switch as it is noted. Redis returns none whose mode is another one.
func unmanagedSwitch(is *event.ModeSwitch) store.UnmanagedSwitch {
	u := store.UnmanagedSwitch{
		SwitchKey: store.SwitchKey{Tenant: is.Tenant, Operation: is.Operation}, Mode: bucket.Off,
		Until: is.Until.UTC(), By: is.By, Reason: is.Reason,
	}
	for _, mode := range [...]bucket.Mode{bucket.Warn, bucket.Shadow} {
		if is.AtMost == mode.String() {
			u.Mode = mode
		}
	}
	if !is.Since.IsZero() {
		u.Since = is.Since.UTC().Truncate(time.Microsecond)
	}
	return u
}

// note notes what has changed: each switch with one entry in the audit log.
func (f *foreignSwitches) note(ctx context.Context, tx *store.Tx) error {
	for i := range f.set {
		if err := noteSwitch(ctx, tx, &f.set[i]); err != nil {
			return err
		}
	}
	for _, key := range f.gone {
		if err := tx.RemoveUnmanagedSwitch(key); err != nil {
			return err
		}
	}
	return nil
}

// switchWords is such a switch in the audit log. Who has set it and why is what it says itself, and nobody has checked it.
type switchWords struct {
	Mode   string    `json:"mode"`
	Until  time.Time `json:"until"`
	Since  time.Time `json:"since,omitzero"`
	Actor  string    `json:"actor"`
	Reason string    `json:"reason"`
}

func noteSwitch(ctx context.Context, tx *store.Tx, u *store.UnmanagedSwitch) error {
	after, err := json.Marshal(switchWords{u.Mode.String(), u.Until, u.Since, printable(u.By), printable(u.Reason)})
	if err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	target := "mode of all"
	switch {
	case u.Tenant != "" && u.Operation != "":
		target = "mode of operation " + printable(u.Operation) + " of tenant " + printable(u.Tenant)
	case u.Tenant != "":
		target = "mode of tenant " + printable(u.Tenant)
	case u.Operation != "":
		target = "mode of operation " + printable(u.Operation)
	}
	e := audit.Entry{
		Time: tx.Now(), Actor: access.System("relay").Audit(), Action: string(access.ObserveModeSwitch), Target: cut(target, maxWords),
		Tenant: printable(u.Tenant), After: after, Reason: setWithout,
	}
	if err := observed(ctx, tx, e, "a mode switch"); err != nil {
		return err
	}
	return tx.PutUnmanagedSwitch(u)
}

const (
	// maxWords is how many bytes the words have of what something is about.
	maxWords = 480
	// setWithout is why there is an entry about something that a Redis has.
	setWithout = "it was set without the control plane"
)

// observed appends an entry about something that a Redis has.
func observed(ctx context.Context, tx *store.Tx, e audit.Entry, what string) error {
	_, err := audit.Append(ctx, tx.Audit(), e)
	if wrong := (*audit.EntryError)(nil); errors.As(err, &wrong) {
		// A name or a reason looks like a secret. That there is such a thing has to be known all the same.
		e.Target, e.Tenant, e.After = what+" whose "+wrong.Field+" does not fit here", "", nil
		_, err = audit.Append(ctx, tx.Audit(), e)
	}
	return err
}
