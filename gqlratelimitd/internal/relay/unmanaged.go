package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

// noteOverrides notes what Redis was given of a tenant, and which records it has that come from somewhere else: each of these with
// one entry in the audit log. It reports whether what was given still is the newest.
func noteOverrides(ctx context.Context, tx *store.Tx, tenant string, applied []*store.Intent, p *plan) (newest bool, _ error) {
	newest = true
	for _, i := range applied {
		if i.Applied == i.Revision {
			continue
		}
		is, err := tx.ApplyOverride(i.Key(), i.Revision)
		if err != nil {
			return false, err
		}
		newest = newest && is
	}
	for _, i := range p.set {
		there, err := tx.Override(i.Key())
		if err != nil {
			return false, err
		}
		newest = newest && there != nil && there.Revision == i.Revision
	}
	list, err := tx.Unmanaged(tenant)
	if err != nil {
		return false, err
	}
	known := make(map[store.OverrideKey]*store.Override, len(list))
	for i := range list {
		known[list[i].Key()] = &list[i]
	}
	for _, records := range [][]bucket.Override{p.replaced, p.foreign} {
		for i := range records {
			u := unmanaged(tenant, &records[i])
			if !alike(known[u.Key()], u) {
				if err := noteUnmanaged(ctx, tx, u); err != nil {
					return false, err
				}
			}
		}
	}
	for i := range p.replaced {
		known[unmanaged(tenant, &p.replaced[i]).Key()] = nil
	}
	for i := range p.foreign {
		delete(known, unmanaged(tenant, &p.foreign[i]).Key())
	}
	for key := range known {
		if err := tx.RemoveUnmanaged(key); err != nil {
			return false, err
		}
	}
	return newest, nil
}

// unmanaged is a record as it is noted.
func unmanaged(tenant string, record *bucket.Override) *store.Override {
	u := &store.Override{Tenant: tenant, Override: *record}
	if u.Mode != nil && *u.Mode > bucket.Off {
		// A newer version knows it.
		u.Mode = nil
	}
	u.SetAt = u.SetAt.UTC()
	if !u.Expires.IsZero() {
		u.Expires = u.Expires.UTC()
	}
	return u
}

// alike reports whether a record was noted already.
func alike(known, u *store.Override) bool {
	if known == nil || (known.Mode == nil) != (u.Mode == nil) || u.Mode != nil && *known.Mode != *u.Mode {
		return false
	}
	a, b := known.Override, u.Override
	a.Mode, b.Mode = nil, nil
	return a.SetAt.Equal(b.SetAt) && a.Expires.Equal(b.Expires) && a.Capacity == b.Capacity && a.Refill == b.Refill && a.Period == b.Period &&
		a.Unlimited == b.Unlimited && a.Blocked == b.Blocked && a.Actor == b.Actor && a.Reason == b.Reason
}

// unmanagedWords is such a record in the audit log. Who has set it and why is what the record says, and nobody has checked it.
type unmanagedWords struct {
	Actor     string    `json:"actor"`
	Reason    string    `json:"reason"`
	SetAt     time.Time `json:"setAt"`
	Capacity  int64     `json:"capacity,omitempty"`
	Refill    int64     `json:"refill,omitempty"`
	Period    string    `json:"period,omitempty"`
	Mode      string    `json:"mode,omitempty"`
	Unlimited bool      `json:"unlimited,omitempty"`
	Blocked   bool      `json:"blocked,omitempty"`
	Expires   time.Time `json:"expires,omitzero"`
}

// noteUnmanaged notes a record, with an entry in the audit log.
func noteUnmanaged(ctx context.Context, tx *store.Tx, u *store.Override) error {
	words := unmanagedWords{
		Actor: printable(u.Actor), Reason: printable(u.Reason), SetAt: u.SetAt, Capacity: u.Capacity, Refill: u.Refill,
		Unlimited: u.Unlimited, Blocked: u.Blocked, Expires: u.Expires,
	}
	if u.Period != 0 {
		words.Period = u.Period.String()
	}
	if u.Mode != nil {
		words.Mode = u.Mode.String()
	}
	after, err := json.Marshal(words)
	if err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	e := audit.Entry{
		Time: tx.Now(), Actor: access.System("relay").Audit(), Action: string(access.ObserveOverride), Target: "override of " + wordsOf(u.Tenant, u.Owner, u.Limit),
		Tenant: printable(u.Tenant), After: after, Reason: setWithout,
	}
	if err := observed(ctx, tx, e, "an override"); err != nil {
		return err
	}
	return tx.PutUnmanaged(u)
}

// wordsOf is what an override is about, for people.
func wordsOf(tenant string, owner bucket.Owner, limit string) string {
	text := owner.Level.String() + " "
	if owner.Level != bucket.Tenant {
		text += printable(owner.Name) + " "
		if owner.Part != "" {
			text += printable(owner.Part) + " "
		}
		text += "of tenant "
	}
	text += printable(tenant)
	if limit != "" {
		text += ", limit " + printable(limit)
	}
	return cut(text, maxWords)
}

// printable is a text from outside without what a log cannot hold.
func printable(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, unprintable) {
		return text
	}
	return strings.Map(func(c rune) rune {
		if unprintable(c) || c == utf8.RuneError {
			return '?'
		}
		return c
	}, text)
}

func unprintable(c rune) bool { return unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c) }

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
