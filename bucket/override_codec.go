package bucket

import (
	"errors"
	"math/rand/v2"
	"time"
)

// generationSize is that of the first bytes of the records of a tenant: the version of their layout,
// and the rest of their generation.
const (
	generationSize = 8
	overrideLayout = 1
	// overrideHead is that of a record before its identity: its size and that of the identity.
	overrideHead = 2 + 2
	// overrideBody is what a record has between its identity and its texts.
	overrideBody = 2*dateSize + 2 + 2*debtSize + dateSize + 2
)

const (
	overrideUnlimited = 1
	overrideBlocked   = 2
)

// errOverrides says that override records cannot be read: another program or a later version wrote them.
var errOverrides = errors.New("malformed override records")

func newGeneration() generation {
	var g generation
	b := append(g[:0], overrideLayout)
	appendUint(b, generationSize-1, rand.Uint64()) //nolint:gosec // Unique is enough.
	return g
}

// packOverrideKey packs what addresses a record.
func packOverrideKey(owner Owner, limit string) string {
	b := appendUint([]byte{byte(owner.Level)}, 2, uint64(len(owner.Name)))
	return string(b) + owner.Name + limit
}

// packOverride packs what the script stores after the identity, see override.lua: the end, the date at
// which it was set, which the script fills in, and what the record says.
func packOverride(o *Override) []byte {
	var expires, flags, mode uint64
	if !o.Expires.IsZero() {
		expires = uint64(o.Expires.UnixMilli())
	}
	if o.Unlimited {
		flags |= overrideUnlimited
	}
	if o.Blocked {
		flags |= overrideBlocked
	}
	if o.Mode != nil {
		mode = uint64(*o.Mode) + 1
	}
	b := appendUint(nil, dateSize, expires)
	b = appendUint(b, 1, flags)
	b = appendUint(b, 1, mode)
	b = appendUint(b, debtSize, uint64(o.Capacity))
	b = appendUint(b, debtSize, uint64(o.Refill))
	b = appendUint(b, dateSize, uint64(o.Period.Milliseconds()))
	b = appendUint(b, 2, uint64(len(o.Reason)))
	return append(append(b, o.Reason...), o.Actor...)
}

// overrideSize is what a record takes in its stored form.
func overrideSize(o *Override) int {
	return overrideHead + 1 + 2 + len(o.Owner.Name) + len(o.Limit) + overrideBody + len(o.Reason) + len(o.Actor)
}

// size is what the records take in their stored form.
func (s *overrideSet) size() int {
	size := generationSize
	for i := range s.records {
		size += overrideSize(&s.records[i])
	}
	return size
}

// readOverrides reads the records of a tenant as they are stored, nil if there are none.
func readOverrides(text string) (*overrideSet, error) {
	if text == "" {
		return nil, nil
	}
	if len(text) < generationSize || text[0] != overrideLayout {
		return nil, errOverrides
	}
	set := &overrideSet{}
	copy(set.generation[:], text)
	for text = text[generationSize:]; text != ""; {
		if len(text) < overrideHead || len(text) < 2+int(readUint(text, 2)) {
			return nil, errOverrides
		}
		size := 2 + int(readUint(text, 2))
		o, ok := readOverride(text[2:size])
		if !ok {
			return nil, errOverrides
		}
		set.records = append(set.records, o)
		text = text[size:]
	}
	return set, nil
}

// readOverride reads one record after its size.
func readOverride(text string) (o Override, ok bool) {
	if len(text) < 2 || len(text) < 2+int(readUint(text, 2))+overrideBody {
		return Override{}, false
	}
	id, rest := text[2:2+readUint(text, 2)], text[2+readUint(text, 2):]
	if len(id) < 3 || len(id) < 3+int(readUint(id[1:], 2)) || id[0] > byte(Operation) {
		return Override{}, false
	}
	name := 3 + readUint(id[1:], 2)
	o.Owner, o.Limit = Owner{Level: Level(id[0]), Name: id[3:name]}, id[name:]
	if expires := readUint(rest, dateSize); expires > 0 {
		o.Expires = time.UnixMilli(expires)
	}
	o.SetAt = time.UnixMilli(readUint(rest[dateSize:], dateSize))
	rest = rest[2*dateSize:]
	flags, mode := rest[0], Mode(rest[1])
	o.Unlimited, o.Blocked = flags&overrideUnlimited != 0, flags&overrideBlocked != 0
	if mode > 0 {
		mode--
		o.Mode = &mode
	}
	rest = rest[2:]
	o.Capacity, o.Refill = readUint(rest, debtSize), readUint(rest[debtSize:], debtSize)
	rest = rest[2*debtSize:]
	o.Period = milliseconds(readUint(rest, dateSize))
	reason := int(readUint(rest[dateSize:], 2))
	if rest = rest[dateSize+2:]; len(rest) < reason {
		return Override{}, false
	}
	o.Reason, o.Actor = rest[:reason], rest[reason:]
	return o, true
}
