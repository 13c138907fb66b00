package bucket

import (
	"context"
	"fmt"
)

// CheckAccounts returns what is wrong with what the store knows of the weight of its entries, and of where they are.
func (m *Memory) CheckAccounts() error {
	for i := range m.shards {
		m.shards[i].mu.Lock()
		err := m.shards[i].checkAccounts()
		m.shards[i].mu.Unlock()
		if err != nil {
			return fmt.Errorf("shard %d: %w", i, err)
		}
	}
	return nil
}

func (s *shard) checkAccounts() error {
	for kind := range poolKinds {
		p := &s.pools[kind]
		if p.slabs == nil {
			continue
		}
		var all weight
		var apart [largeSizes]weight
		n := 0
		for class := range p.slabs {
			var within weight
			for slot := range p.slabs[class].n {
				at := placeOf(kind, class, slot)
				e := s.at(at)
				key := e.key()
				if found, _ := s.lookup(&key); found != at {
					return fmt.Errorf("the entry in %x is found in %x", at, found)
				}
				in, more := s.weigh(at, e)
				within.add(in, 1)
				all.add(in, 1)
				all.add(more, 1)
				n++
				if e.isLarge() {
					size, number := e.large()
					if p.large[size].all[number].at != at {
						return fmt.Errorf("the value of the entry in %x is that of %x", at, p.large[size].all[number].at)
					}
					apart[size].add(more, 1)
				}
			}
			if within != p.slabs[class].used {
				return fmt.Errorf("pool %d, slab %d: %v, and not %v", kind, class, p.slabs[class].used, within)
			}
		}
		for size := range apart {
			if p.large != nil && apart[size] != p.large[size].used {
				return fmt.Errorf("pool %d, large %d: %v, and not %v", kind, size, p.large[size].used, apart[size])
			}
		}
		if used := (weight{p.used.entries.Load(), p.used.bytes.Load()}); used != all || n != p.n {
			return fmt.Errorf("pool %d: %d entries of %v, and not %d of %v", kind, p.n, used, n, all)
		}
	}
	return nil
}

// The slabs, and how many entries one has at most.
const (
	Slabs   = slabs
	MaxSlot = 1<<placeSlot - 1
)

// Span is span, with the size of the block.
func Span(class int, slot uint32) (block uint32, from, size, whole int) {
	block, from, size = span(class, slot)
	_, entries, _ := locate(slot, pageShifts[class])
	return block, from, size, blockBytes(class, entries)
}

// TakeByCall is Take, by the call of a script whatever the take is.
func (m *Memory) TakeByCall(ctx context.Context, take Take) (Result, error) {
	return m.core.Take(ctx, take)
}

// WithoutID returns the result without what is random in it.
func (r Result) WithoutID() Result {
	r.Receipt.id = [16]byte{}
	return r
}

// Dump returns what is kept, and when it expires, but for the markers of receipts.
func (m *Memory) Dump() map[string]string {
	all := map[string]string{}
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		for kind := range poolKinds {
			for _, key := range s.keys(kind) {
				if _, e := s.lookup(&key); key.kind != settledKey {
					all[fmt.Sprintf("%q %q %d", key.tenant, key.name, key.kind)] = fmt.Sprintf("%d %q", e.expires(), s.valueOf(e))
				}
			}
		}
		s.mu.Unlock()
	}
	return all
}
