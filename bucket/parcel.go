package bucket

import (
	"slices"
	"time"
)

// Parcel is what a store had of a tenant when it left.
type Parcel struct {
	keys   []address
	values [][]byte
	// moved is what stands in the place of its override records, nil of a lost store.
	moved []byte
	// now is the time of the store that it left, in Unix milliseconds, or zero if the parcel is dated by the one in which it arrives.
	now int64
	// lost is when the store was lost, in Unix milliseconds, and all says that windows and long token buckets were empty then too. Its values are made of
	// the live buckets when it arrives.
	lost int64
	all  bool
	live []Bucket
}

// emptyWithin is how soon the token buckets are full again, in milliseconds, that a lost store leaves empty in any case.
const emptyWithin = 3_600_000

// LostParcel returns what is to be taken for what a store had that was lost at a time: every token bucket that is full again within an hour was empty
// then, and with all every other limit too. Without it these are full.
func LostParcel(belongings Belongings, lost time.Time, all bool) *Parcel {
	p := &Parcel{lost: max(1, lost.UnixMilli()), all: all, live: belongings.live, keys: belongings.keys[:min(len(belongings.keys), len(belongings.live))]}
	return p
}

// value returns what the parcel has under a key, as of a time of the store in which it arrives.
func (p *Parcel) value(key *address, now int64) []byte {
	at := slices.Index(p.keys, *key)
	switch {
	case at < 0:
		return nil
	case p.lost > 0:
		return p.live[at].Limits.compiled.Empty(p.lost, emptyWithin, p.all, now)
	default:
		return p.values[at]
	}
}
