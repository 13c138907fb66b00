package relay

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisswitch"
)

// modesKind is what refusals are called that are about the mode switches of the Redis.
const modesKind = "modes"

// lookForModes has the audit log tell from time to time of the mode switches that somebody has set without the daemon. They are few, and in
// one place. Who eases everything at 3 a.m. wants it to be seen.
func (r *Relay) lookForModes(ctx context.Context) error {
	if !r.modesLooked.IsZero() && time.Since(r.modesLooked) < modesEvery {
		return nil
	}
	r.modesLooked = time.Now()
	ctx, cancel := context.WithTimeout(ctx, 2*callPatience)
	defer cancel()
	// What is noted before the Redis is asked, and is not there then, is gone.
	var noted []string
	err := r.cfg.Store.Read(ctx, func(v *store.View) (err error) {
		noted, err = v.NotedSwitches()
		return err
	})
	if err != nil {
		return err
	}
	list, err := r.modes.List(ctx)
	if errors.Is(err, redisswitch.ErrUnreadable) {
		r.refuse(ctx, modesKind, "", err)
		return nil
	}
	if err != nil {
		return err
	}
	r.refuse(ctx, modesKind, "", nil)
	there := make(map[string]*redisswitch.Switch, len(list))
	for i := range list {
		there[list[i].Fingerprint()] = &list[i]
	}
	var gone []string
	for _, one := range noted {
		if _, still := there[one]; still {
			delete(there, one)
		} else {
			gone = append(gone, one)
		}
	}
	if len(there)+len(gone) == 0 {
		return nil
	}
	return r.cfg.Store.Change(ctx, func(tx *store.Tx) error { return noteModes(ctx, tx, there, gone) })
}

// noteModes appends an entry about each switch that the audit log has not, and forgets those that are gone.
func noteModes(ctx context.Context, tx *store.Tx, there map[string]*redisswitch.Switch, gone []string) error {
	// One that was set here meanwhile is noted by now.
	noted, err := tx.NotedSwitches()
	if err != nil {
		return err
	}
	byRevision := func(a, b string) int { return cmp.Compare(there[a].Revision, there[b].Revision) }
	for _, fingerprint := range slices.SortedFunc(maps.Keys(there), byRevision) {
		if slices.Contains(noted, fingerprint) {
			continue
		}
		if err := noteSwitch(ctx, tx, there[fingerprint]); err != nil {
			return err
		}
		if err := tx.NoteSwitch(fingerprint); err != nil {
			return err
		}
	}
	for _, fingerprint := range gone {
		if err := tx.ForgetSwitch(fingerprint); err != nil {
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

func noteSwitch(ctx context.Context, tx *store.Tx, s *redisswitch.Switch) error {
	after, err := json.Marshal(switchWords{s.AtMost, s.Until, s.Since, printable(s.By), printable(s.Reason)})
	if err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	target := "mode of all"
	switch {
	case s.Tenant != "" && s.Operation != "":
		target = "mode of operation " + printable(s.Operation) + " of tenant " + printable(s.Tenant)
	case s.Tenant != "":
		target = "mode of tenant " + printable(s.Tenant)
	case s.Operation != "":
		target = "mode of operation " + printable(s.Operation)
	}
	e := audit.Entry{
		Time: tx.Now(), Actor: access.System("relay").Audit(), Action: string(access.ObserveModeSwitch), Target: cut(target, maxWords),
		Tenant: printable(s.Tenant), After: after, Reason: setWithout,
	}
	return observed(ctx, tx, e, "a mode switch")
}
