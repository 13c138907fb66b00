package bucket

import "math/bits"

// slabSizes are the sizes in bytes of the entries that a pool keeps beside each other. An entry takes the smallest that it
// fits, and what does not fit the last has its value elsewhere.
var slabSizes = [slabs]uint32{48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 384, 512, 768, 1024, 1536, 2048}

const (
	slabs = 16
	// pageBytes is the most that the smallest allocation of a slab takes: the last slab has one entry in it, the first
	// ones have 1 << pageShift.
	pageBytes = 2048
	pageShift = 4
	// blocksPerDouble is by how many allocations a slab doubles: an eighth of it at most is unused, beside its first page.
	blocksPerDouble = 8
)

// slab holds entries of one size, without a gap between them, in blocks without pointers. Blocks are as many pages
// each as makes [blocksPerDouble] of them double the slab, so that entries never move because it grows.
type slab struct {
	blocks [][]byte
	// n is the number of entries, and used what they weigh here.
	n    uint32
	used weight
}

// slabOf returns which slab has entries of the size, or false if it is too large for any.
func slabOf(size int) (class int, ok bool) {
	for class, most := range slabSizes {
		if size <= int(most) {
			return class, true
		}
	}
	return 0, false
}

// pageShifts are the binary logarithms of the entries in a page.
var pageShifts = func() (all [slabs]uint8) {
	for class, size := range slabSizes {
		all[class] = uint8(min(pageShift, bits.Len32(pageBytes/size)-1))
	}
	return all
}()

// locate returns in which block an entry is, how many entries the block has, as a power of two, and which of them it is.
func locate(slot uint32, shift uint8) (block uint32, size uint8, at uint32) {
	page := slot >> (shift & 31)
	// The first pages, before they double for the first time, are a block each.
	doubled := uint8(bits.Len32(page|(2*blocksPerDouble-1)) - bits.Len32(2*blocksPerDouble-1))
	size = doubled + shift
	return blocksPerDouble*uint32(doubled) + page>>(doubled&31), size, slot & (1<<(size&31) - 1)
}

// span returns in which block an entry of a slab is, where it begins there, and its size. It is in words of the machine: a block of a
// large slab may have more bytes than 32 bits count.
func span(class int, slot uint32) (block uint32, from, size int) {
	block, _, at := locate(slot, pageShifts[class])
	size = int(slabSizes[class])
	return block, int(at) * size, size
}

// blockBytes is how large a block is whose entries are a power of two.
func blockBytes(class int, size uint8) int {
	return int(slabSizes[class]) << (size & 63)
}

// push adds an entry after the last one, and returns which it is.
func (s *slab) push(class int) uint32 {
	block, size, _ := locate(s.n, pageShifts[class])
	if int(block) == len(s.blocks) {
		s.blocks = append(s.blocks, make([]byte, blockBytes(class, size)))
	}
	s.n++
	return s.n - 1
}

// pop removes the last entry, and keeps one block at most that is not used.
func (s *slab) pop(class int) {
	s.n--
	used := 0
	if s.n > 0 {
		block, _, _ := locate(s.n-1, pageShifts[class])
		used = int(block) + 1
	}
	if last := len(s.blocks) - 1; last > used {
		s.blocks[last] = nil
		s.blocks = s.blocks[:last]
	}
}
