package store

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// OverrideKey is what an override is about: an owner of a tenant, all of its limits, or the one of a name.
type OverrideKey struct {
	Tenant string
	Owner  bucket.Owner
	Limit  string
}

// Override is what is to hold for an owner of a tenant for a time, whatever the policy says: the intent, of which a store of budgets has
// the record. Its Actor is who has written it, and SetAt when.
type Override struct {
	Tenant string
	bucket.Override
	// Removed says that it was, by Actor and for Reason. Nothing else holds of it then but what it is about.
	Removed bool
	// Revision is that of [Head.Directory].
	Revision uint64
}

// Key returns what it is about.
func (o *Override) Key() OverrideKey { return OverrideKey{o.Tenant, o.Owner, o.Limit} }

// Holds reports whether it is there at a time: neither removed nor expired. Nil does not hold.
func (o *Override) Holds(now time.Time) bool {
	return o != nil && !o.Removed && (o.Expires.IsZero() || now.Before(o.Expires))
}

// overrideDocument is what an override changes, as it is stored. A field that is missing changes nothing.
type overrideDocument struct {
	Capacity int64 `json:"capacity,omitempty"`
	Refill   int64 `json:"refill,omitempty"`
	// Period is in milliseconds.
	Period    int64  `json:"period,omitempty"`
	Mode      string `json:"mode,omitempty"`
	Unlimited bool   `json:"unlimited,omitempty"`
	Blocked   bool   `json:"blocked,omitempty"`
}

// document returns what is stored of an override: nil for one that was removed.
func (o *Override) document() []byte {
	if o.Removed {
		return nil
	}
	d := overrideDocument{
		Capacity: o.Capacity, Refill: o.Refill, Period: o.Period.Milliseconds(), Unlimited: o.Unlimited, Blocked: o.Blocked,
	}
	if o.Mode != nil {
		d.Mode = o.Mode.String()
	}
	// It can be written.
	text, _ := json.Marshal(d)
	return text
}

const overrideColumns = overrideKey + ", document, expires, revision, author, reason, at"

func scanOverride(row scanner, o *Override) error {
	var level string
	var document []byte
	err := row.Scan(&o.Tenant, &level, &o.Owner.Name, &o.Owner.Part, &o.Limit, &document, instant{&o.Expires}, &o.Revision,
		&o.Actor, &o.Reason, instant{&o.SetAt})
	if err != nil {
		return err
	}
	if o.Owner.Level, err = number("level", level, bucket.Operation); err != nil {
		return err
	}
	o.Removed = document == nil
	if o.Removed {
		return nil
	}
	var d overrideDocument
	if err := json.Unmarshal(document, &d); err != nil {
		return err
	}
	o.Capacity, o.Refill, o.Period, o.Unlimited, o.Blocked = d.Capacity, d.Refill, time.Duration(d.Period)*time.Millisecond, d.Unlimited, d.Blocked
	if d.Mode != "" {
		mode, err := number("mode", d.Mode, bucket.Off)
		o.Mode = &mode
		return err
	}
	return nil
}

// number returns what has a word, of 0 to most.
func number[N interface {
	~uint8
	fmt.Stringer
}](what, word string, most N) (N, error) {
	for n := N(0); n <= most; n++ {
		if n.String() == word {
			return n, nil
		}
	}
	return 0, fmt.Errorf("there is no %s %.20q", what, word)
}

// Override returns an override, nil if it was never set. It may be one that was removed or has expired, see [Override.Holds].
func (v *View) Override(key OverrideKey) (*Override, error) {
	i, err := v.Intent(key)
	if i == nil {
		return nil, err
	}
	return &i.Override, nil
}

// PutOverride sets or removes an override if the revision of what holds is the expected one, 0 for none, and otherwise returns a
// [*ConflictError]. It sets when and under which revision.
func (tx *Tx) PutOverride(o *Override, expected uint64) error {
	there, err := tx.Override(o.Key())
	if err != nil {
		return err
	}
	var was *Written
	if there.Holds(tx.now) {
		was = &Written{Revision: there.Revision, By: there.Actor, At: there.SetAt}
	}
	written, err := tx.write(was, expected, o.Actor, o.Reason)
	if err != nil {
		return err
	}
	o.Revision, o.SetAt = written.Revision, written.At
	return tx.exec(`INSERT INTO override_intent (`+overrideColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
		ON CONFLICT (`+overrideKey+`) DO UPDATE SET document = excluded.document, expires = excluded.expires,
		revision = excluded.revision, author = excluded.author, reason = excluded.reason, at = excluded.at`,
		[]byte(o.Tenant), o.Owner.Level.String(), []byte(o.Owner.Name), []byte(o.Owner.Part), o.Limit, o.document(), micros(o.Expires),
		o.Revision, o.Actor, o.Reason, micros(o.SetAt))
}
