package bucket

import (
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

const (
	// overrideHead is that of a record before its identity: its size and that of the identity.
	overrideHead = 2 + 2
	// overrideBody is what a record has between its identity and its texts.
	overrideBody = 2*state.DateSize + 2 + 2*state.DebtSize + state.DateSize + 2
)

// The levels and modes of a record by their numbers on the wire.
var (
	wireLevels = [...]Level{
		state.LevelTenant: Tenant, state.LevelTeam: Team, state.LevelUser: User, state.LevelOperation: Operation,
	}
	wireModes = [...]Mode{
		state.ModeEnforce: Enforce, state.ModeWarn: Warn, state.ModeShadow: Shadow, state.ModeOff: Off,
	}
)

// errOverrides says that override records cannot be read: another program or a later version wrote them.
var errOverrides = errors.New("malformed override records")

func newGeneration() generation {
	var g generation
	b := append(g[:0], state.OverridesVersion)
	state.AppendUint(b, state.GenerationSize-1, rand.Uint64()) //nolint:gosec // Unique is enough.
	return g
}

// packOverrideKey packs what addresses a record.
func packOverrideKey(owner Owner, limit string) string {
	level, part := byte(slices.Index(wireLevels[:], owner.Level)), ""
	if owner.Part != "" {
		level |= partFollows
		part = string(state.AppendUint(nil, 2, uint64(len(owner.Part)))) + owner.Part
	}
	b := state.AppendUint([]byte{level}, 2, uint64(len(owner.Name)))
	return string(b) + owner.Name + part + limit
}

// partFollows, in the level of what addresses a record, says that the part of the owner stands after its name.
const partFollows = 0x80

// readOverrideKey reads what addresses a record.
func readOverrideKey(id string) (owner Owner, limit string, ok bool) {
	if id == "" || int(id[0]&^partFollows) >= len(wireLevels) {
		return Owner{}, "", false
	}
	owner.Level = wireLevels[id[0]&^partFollows]
	if owner.Name, limit, ok = cutName(id[1:]); ok && id[0]&partFollows != 0 {
		owner.Part, limit, ok = cutName(limit)
	}
	return owner, limit, ok
}

// cutName cuts a name after its length of two bytes.
func cutName(text string) (name, after string, ok bool) {
	if len(text) < 2 || len(text) < 2+int(state.ReadUint(text, 2)) {
		return "", "", false
	}
	end := 2 + int(state.ReadUint(text, 2))
	return text[2:end], text[end:], true
}

// packOverride packs what the script stores after the identity, see override.lua: the end, the date at
// which it was set, which the script fills in, and what the record says.
func packOverride(o *Override) []byte {
	var expires, flags uint64
	mode := 0
	if !o.Expires.IsZero() {
		expires = uint64(o.Expires.UnixMilli())
	}
	if o.Unlimited {
		flags |= state.OverrideUnlimited
	}
	if o.Blocked {
		flags |= state.OverrideBlocked
	}
	if o.Mode != nil {
		mode = slices.Index(wireModes[state.ModeEnforce:], *o.Mode) + state.ModeEnforce
	}
	b := state.AppendUint(nil, state.DateSize, expires)
	b = state.AppendUint(b, 1, flags)
	b = state.AppendUint(b, 1, mode)
	b = state.AppendUint(b, state.DebtSize, uint64(o.Capacity))
	b = state.AppendUint(b, state.DebtSize, uint64(o.Refill))
	b = state.AppendUint(b, state.DateSize, uint64(o.Period.Milliseconds()))
	b = state.AppendUint(b, 2, uint64(len(o.Reason)))
	return append(append(b, o.Reason...), o.Actor...)
}

// readOverrides reads the records of a tenant as they are stored, nil if there are none.
func readOverrides(text string) (*overrideSet, error) {
	if text == "" {
		return nil, nil
	}
	if len(text) < state.GenerationSize || text[0] != state.OverridesVersion {
		return nil, errOverrides
	}
	set := &overrideSet{size: len(text)}
	copy(set.generation[:], text)
	for text = text[state.GenerationSize:]; text != ""; {
		if len(text) < overrideHead || len(text) < 2+int(state.ReadUint(text, 2)) {
			return nil, errOverrides
		}
		size := 2 + int(state.ReadUint(text, 2))
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
	if len(text) < 2 || len(text) < 2+int(state.ReadUint(text, 2))+overrideBody {
		return Override{}, false
	}
	id, rest := text[2:2+state.ReadUint(text, 2)], text[2+state.ReadUint(text, 2):]
	if o.Owner, o.Limit, ok = readOverrideKey(id); !ok {
		return Override{}, false
	}
	if expires := state.ReadUint(rest, state.DateSize); expires > 0 {
		o.Expires = time.UnixMilli(expires)
	}
	o.SetAt = time.UnixMilli(state.ReadUint(rest[state.DateSize:], state.DateSize))
	rest = rest[2*state.DateSize:]
	flags, mode := rest[0], Off+1
	o.Unlimited, o.Blocked = flags&state.OverrideUnlimited != 0, flags&state.OverrideBlocked != 0
	if n := int(rest[1]); n > 0 {
		// A limit whose mode nobody knows stays as it is.
		if n < len(wireModes) {
			mode = wireModes[n]
		}
		o.Mode = &mode
	}
	rest = rest[2:]
	o.Capacity, o.Refill = state.ReadUint(rest, state.DebtSize), state.ReadUint(rest[state.DebtSize:], state.DebtSize)
	rest = rest[2*state.DebtSize:]
	o.Period = milliseconds(state.ReadUint(rest, state.DateSize))
	reason := int(state.ReadUint(rest[state.DateSize:], 2))
	if rest = rest[state.DateSize+2:]; len(rest) < reason {
		return Override{}, false
	}
	o.Reason, o.Actor = rest[:reason], rest[reason:]
	return o, true
}
