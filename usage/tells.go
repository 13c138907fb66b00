package usage

import (
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// tells are the hours of tenants in which was counted, until they are told. They belong to whoever collects.
type tells struct {
	most int
	all  map[countedKey]*tell
	// minute is the one in which was told last, and sent what.
	minute int64
	sent   []*tell
}

// tell is whether an hour of a tenant has to be told.
type tell struct {
	// waits says that something was counted and not told since.
	waits bool
	// told is the minute in which it was told last: what is counted in it needs not be told again.
	told int64
}

func newTells(most int) tells { return tells{most: most, all: make(map[countedKey]*tell)} }

// take takes in what a slot has noted, and returns how much of it finds no room.
func (t *tells) take(counted map[countedKey]*bool) (untold uint64) {
	for key, noted := range counted {
		if !*noted {
			continue
		}
		of := t.all[key]
		if of == nil {
			if len(t.all) >= t.most {
				untold++
				continue
			}
			of = &tell{}
			t.all[key] = of
		}
		of.waits = true
	}
	return untold
}

// tell adds what was not told in the minute to a batch.
func (t *tells) tell(b *Batch, minute int64) {
	t.minute, t.sent = minute, t.sent[:0]
	for key, of := range t.all {
		switch {
		case of.told == minute:
			of.waits = false
		case !of.waits:
			delete(t.all, key)
		default:
			t.sent = append(t.sent, of)
			grade := bucket.UsageExact
			if key.local {
				grade = bucket.UsageLocal
			}
			const minutes = 60
			b.Counted = append(b.Counted, Counted{Tenant: key.tenant, Hour: timeOf(key.hour * minutes), Grade: grade})
		}
	}
}

// stored says that what was told last stands.
func (t *tells) stored() {
	for _, of := range t.sent {
		of.waits, of.told = false, t.minute
	}
	t.sent = t.sent[:0]
}
