package bucket

const (
	// tagBits is how much of the hash of a key the index keeps. Tags may be equal: the keys in the entries decide.
	tagBits = 64 - placeBits
	// leafSlots makes a leaf 2 KiB.
	leafSlots = 255
	// leafMost is how many places a leaf has before it is divided.
	leafMost = 208
	// leafDepth is by how many bits of a tag leaves are told apart at most.
	leafDepth = 20
)

// index finds the places of entries by the tags of their keys, in integers alone. It is a directory of leaves by the first
// bits of a tag. A leaf that is full is divided in two, and two that have become small are joined, so that no call moves
// more than the places of two leaves. The zero value is an empty one.
type index struct {
	// directory has the leaf of each value of the first depth bits.
	directory []*leaf
	depth     uint32
	// deepest is how many leaves are told apart by all of these bits.
	deepest int
}

// leaf is a hash table with open addressing. A slot is a tag and a place, and zero if there is none.
type leaf struct {
	n, depth uint32
	slots    [leafSlots]uint64
}

// home is the slot at which the search for a tag begins: not told by the bits that tell leaves apart.
func home(tag uint64) int {
	return int(tag&0xff*leafSlots) >> 8
}

func after(i int) int {
	if i++; i == leafSlots {
		return 0
	}
	return i
}

func (g *leaf) put(slot uint64) {
	i := home(slot >> placeBits)
	for g.slots[i] != 0 {
		i = after(i)
	}
	g.slots[i] = slot
	g.n++
}

// find returns where a slot stands, and false if it is not there.
func (g *leaf) find(slot uint64) (at int, ok bool) {
	for i := home(slot >> placeBits); g.slots[i] != 0; i = after(i) {
		if g.slots[i] == slot {
			return i, true
		}
	}
	return 0, false
}

// remove empties a slot, and moves those after it that would not be found any more.
func (g *leaf) remove(at int) {
	g.n--
	for i := after(at); g.slots[i] != 0; i = after(i) {
		// How far it stands from its home, and how far from the gap, around the end.
		from := (i - home(g.slots[i]>>placeBits) + leafSlots) % leafSlots
		if gap := (i - at + leafSlots) % leafSlots; from >= gap {
			g.slots[at], at = g.slots[i], i
		}
	}
	g.slots[at] = 0
}

// leaf returns that of a tag, nil if the index is empty.
func (x *index) leaf(tag uint64) *leaf {
	if x.directory == nil {
		return nil
	}
	return x.directory[tag>>(tagBits-x.depth)]
}

// insert adds a place. It returns false if the index has no room for one more of this tag.
func (x *index) insert(tag uint64, p place) bool {
	if x.directory == nil {
		x.directory, x.deepest = []*leaf{new(leaf)}, 1
	}
	for {
		g := x.leaf(tag)
		switch {
		case g.n < leafMost, g.depth == leafDepth && g.n < leafSlots-1:
			g.put(tag<<placeBits | uint64(p))
			return true
		case g.depth == leafDepth:
			return false
		}
		x.divide(g, tag)
	}
}

// remove forgets a place.
func (x *index) remove(tag uint64, p place) {
	g := x.leaf(tag)
	if at, ok := g.find(tag<<placeBits | uint64(p)); ok {
		g.remove(at)
		x.join(g, tag)
	}
}

// move notes that what was in one place is in another.
func (x *index) move(tag uint64, from, to place) {
	g := x.leaf(tag)
	if at, ok := g.find(tag<<placeBits | uint64(from)); ok {
		g.slots[at] = tag<<placeBits | uint64(to)
	}
}

// any returns a place of the leaf of a tag, which has one.
func (x *index) any(tag uint64) place {
	g, i := x.leaf(tag), home(tag)
	for g.slots[i] == 0 {
		i = after(i)
	}
	return place(g.slots[i] & (1<<placeBits - 1))
}

// entries is the part of the directory that a leaf of the depth has, of the tags that begin like this one.
func (x *index) entries(tag uint64, depth uint32) []*leaf {
	each := x.depth - depth
	first := tag >> (tagBits - depth) << each
	return x.directory[first : first+1<<each]
}

func (x *index) divide(g *leaf, tag uint64) {
	if g.depth == x.depth {
		larger := make([]*leaf, 2*len(x.directory))
		for i, g := range x.directory {
			larger[2*i], larger[2*i+1] = g, g
		}
		x.directory, x.deepest = larger, 0
		x.depth++
	}
	all := x.entries(tag, g.depth)
	halves := [2]*leaf{{depth: g.depth + 1}, {depth: g.depth + 1}}
	for _, slot := range g.slots {
		if slot != 0 {
			halves[slot>>(63-g.depth)&1].put(slot)
		}
	}
	for i := range all {
		all[i] = halves[2*i/len(all)]
	}
	if g.depth+1 == x.depth {
		x.deepest += 2
	}
}

// join joins the leaf with the one that it was divided from, if both together would not soon be divided again.
func (x *index) join(g *leaf, tag uint64) {
	for g.depth > 0 {
		all := x.entries(tag, g.depth-1)
		low, high := all[0], all[len(all)-1]
		if low.depth != high.depth || low.n+high.n > leafMost/2 {
			return
		}
		for _, slot := range high.slots {
			if slot != 0 {
				low.put(slot)
			}
		}
		for i := range all {
			all[i] = low
		}
		if low.depth == x.depth {
			x.deepest -= 2
		}
		low.depth--
		x.shrink()
		g = low
	}
}

// shrink halves the directory as long as no leaf needs all of it.
func (x *index) shrink() {
	for x.deepest == 0 && x.depth > 0 {
		smaller := make([]*leaf, len(x.directory)/2)
		x.depth--
		for i := range smaller {
			smaller[i] = x.directory[2*i]
			if smaller[i].depth == x.depth {
				x.deepest++
			}
		}
		x.directory = smaller
	}
}
