package state

import "slices"

// Holder is who leases parts of the limits of an owner, as it is stored.
type Holder struct {
	// Name is drawn at random when a lease begins.
	Name string
	// Ends is when its lease does, in Unix milliseconds.
	Ends int64
	// Parts has one for each of the limits that were asked for. It is zero for one that is not leased.
	Parts []HolderPart
}

// HolderPart is what one holder has of a limit, in units of which there are Unit in a token.
type HolderPart struct {
	// Capacity is what it can have at once, zero of a window, Rate what comes back to it each millisecond, and Level what it had after its last exchange.
	Capacity, Rate, Level int64
	Unit                  int64
}

// ReadHolders reads who leases parts of limits with these ids, from what is stored of an owner, nil if nothing is. It returns false if something
// else is stored.
func ReadHolders(stored []byte, ids []uint16) (all []Holder, ok bool) {
	h, ok := readHoldings(stored)
	if !ok {
		return nil, false
	}
	for i := range h.records {
		r := &h.records[i]
		if r.id == noHolder {
			continue
		}
		holder := Holder{Name: r.id, Ends: r.ends, Parts: make([]HolderPart, len(ids))}
		for j := range h.sums {
			at, p := slices.Index(ids, h.sums[j].id), &r.parts[j]
			if at < 0 || h.sums[j].p == 0 {
				continue
			}
			holder.Parts[at] = HolderPart{Capacity: p.capacity, Rate: p.rate, Level: p.level, Unit: h.sums[j].p}
		}
		all = append(all, holder)
	}
	return all, true
}
