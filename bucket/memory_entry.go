package bucket

import (
	"encoding/binary"
	"math"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// place is where an entry is: its pool, its slab, and which of the entries there. It is never zero.
type place uint64

const (
	placePool = 2
	placeSlab = 4
	placeSlot = 30
	placeBits = placePool + placeSlab + placeSlot
	// maxMemoryEntries is how many entries a Memory has at most, so that each has a place wherever it is.
	maxMemoryEntries = 1 << (placeSlot - 1)
)

func placeOf(kind poolKind, class int, slot uint32) place {
	return place(slot)<<(placePool+placeSlab) | place(class)<<placePool | place(kind+1)
}

func (p place) pool() poolKind { return poolKind(p&(1<<placePool-1)) - 1 }
func (p place) class() int     { return int(p >> placePool & (1<<placeSlab - 1)) }
func (p place) slot() uint32   { return uint32(p >> (placePool + placeSlab) & (1<<placeSlot - 1)) }

// entry is what is kept under a key, in the bytes of a slab:
//
//	expiry 8 | tag and kind 4 | length of the tenant 1 | of the name 1 | of the value 2 | tenant | name | value
//
// In the place of a value that no slab has room for stands where it is among the large ones: of which size 1, and which of them 4. An entry is good until another of its
// pool is removed.
type entry []byte

const (
	entryTag    = 8
	entryValue  = 14
	entryHead   = 16
	kindBits    = 4
	largeValue  = math.MaxUint16
	largeNumber = 1 + 4
)

// head is what the key of an entry has in the head.
func (k *entryKey) head() uint64 {
	return k.tag<<kindBits | uint64(k.kind) | uint64(len(k.tenant))<<32 | uint64(len(k.name))<<40
}

// is reports whether the entry has the key.
func (e entry) is(key *entryKey) bool {
	const mask = 1<<48 - 1
	n := len(key.tenant)
	return binary.LittleEndian.Uint64(e[entryTag:])&mask == key.head() && string(e[entryHead:entryHead+n]) == key.tenant &&
		(key.name == "" || string(e[entryHead+n:entryHead+n+len(key.name)]) == key.name)
}

// write makes it an entry of the key, without a value.
func (e entry) write(key *entryKey) {
	binary.LittleEndian.PutUint64(e[entryTag:], key.head())
	copy(e[entryHead+copy(e[entryHead:], key.tenant):], key.name)
}

// expires is the Unix millisecond at which the entry means the same as none.
func (e entry) expires() int64         { return int64(binary.LittleEndian.Uint64(e)) }
func (e entry) expireAt(expires int64) { binary.LittleEndian.PutUint64(e, uint64(expires)) }
func (e entry) tag() uint64            { return uint64(binary.LittleEndian.Uint32(e[entryTag:]) >> kindBits) }
func (e entry) kind() keyKind          { return keyKind(e[entryTag] & (1<<kindBits - 1)) }

// tenant is the name of the tenant, and start where the value starts.
func (e entry) tenant() []byte { return e[entryHead : entryHead+int(e[entryTag+4])] }
func (e entry) start() int     { return entryHead + int(e[entryTag+4]) + int(e[entryTag+5]) }

// key returns a copy of the key.
func (e entry) key() entryKey {
	n := entryHead + int(e[entryTag+4])
	return entryKey{tenant: string(e.tenant()), name: string(e[n:e.start()]), tag: e.tag(), kind: e.kind()}
}

// length is that of the value, or largeValue.
func (e entry) length() int { return int(binary.LittleEndian.Uint16(e[entryValue:])) }

// set sets the value, for which there is room.
func (e entry) set(value []byte) {
	binary.LittleEndian.PutUint16(e[entryValue:], uint16(len(value)))
	copy(e[e.start():], value)
}

func (e entry) setLarge(size int, number uint32) {
	binary.LittleEndian.PutUint16(e[entryValue:], largeValue)
	e[e.start()] = byte(size)
	binary.LittleEndian.PutUint32(e[e.start()+1:], number)
}

func (e entry) isLarge() bool { return e.length() == largeValue }

func (e entry) large() (size int, number uint32) {
	return int(e[e.start()]), binary.LittleEndian.Uint32(e[e.start()+1:])
}

// slabFor returns which slab an entry of the key and a value of the size goes to, and whether the value goes there too.
func slabFor(key *entryKey, size int) (class int, whole bool) {
	head := entryHead + len(key.tenant) + len(key.name)
	if class, whole = slabOf(head + size); whole {
		return class, true
	}
	class, _ = slabOf(head + largeNumber)
	return class, false
}

// at returns the entry in a place.
func (s *shard) at(p place) entry {
	class := p.class()
	block, from, size := span(class, p.slot())
	return s.pools[p.pool()].slabs[class].blocks[block][from : from+size : from+size]
}

// valueOf returns the value of an entry, which is nil only if the entry is. It is good as long as the entry.
func (s *shard) valueOf(e entry) []byte {
	if e == nil {
		return nil
	}
	n := e.length()
	if n == largeValue {
		size, number := e.large()
		return s.pools[e.kind().pool()].large[size].all[number].value
	}
	at := e.start()
	return e[at : at+n : at+n]
}

// Weights, in entries and in bytes, are of what an entry takes of the room. An eighth more than its slab has for it may be unused there, and
// indexBytes is what the index needs for it at most.
const (
	unusedShare = 8
	indexBytes  = 20
	largeBytes  = 40
)

// weigh returns how much of the room an entry takes in its slab, and apart from it, if no slab has room for its value.
func (s *shard) weigh(p place, e entry) (within, apart weight) {
	size, value := int64(slabSizes[p.class()]), s.valueOf(e)
	within.bytes = size + size/unusedShare + indexBytes
	if e.isLarge() {
		size = int64(len(value)) + largeBytes
		apart.bytes = size + size/unusedShare
	}
	switch e.kind() {
	case recordKey:
		within.entries = 1
		answer := int64(state.AnswerSize(value)+answerUnit-1) / answerUnit
		if e.isLarge() {
			apart.entries = answer
		} else {
			within.entries += answer
		}
	case overridesKey:
		within.entries = state.CountOverrides(value)
	case fleetKey:
	default:
		within.entries = 1
	}
	return within, apart
}
