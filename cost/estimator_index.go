package cost

import (
	"hash/maphash"
	"math/bits"
	"sync/atomic"

	"github.com/vektah/gqlparser/v2/ast"
)

// planKey names an operation: by its pointer, or by the text of its document and its own name.
type planKey struct {
	op         *ast.OperationDefinition
	text, name string
}

// units measures the memory that the key keeps, in the units of the cache.
func (k *planKey) units() int {
	if k.op != nil && k.op.Position != nil && k.op.Position.Src != nil {
		return 1 + len(k.op.Position.Src.Input)/bytesPerDocumentUnit
	}
	return 1 + len(k.text)/bytesPerUnit
}

// planIndex finds the entries of a cache. Finding takes no lock and allocates nothing; changes are made
// by one goroutine at a time. It is a hash table of fixed length whose chains are never modified, only
// replaced, so that a reader sees one state or the next.
type planIndex struct {
	// seed is secret, so that no client can make operations that fall into one chain.
	seed   maphash.Seed
	chains []atomic.Pointer[planLink]
}

// planLink is a link of a chain.
type planLink struct {
	entry *planEntry
	next  *planLink
}

// maxChains bounds the memory of an index whose cache may hold very many plans: half a megabyte.
const maxChains = 1 << 16

func newPlanIndex(size int) planIndex {
	chains := min(maxChains, 1<<bits.Len(uint(max(32, size))))
	return planIndex{seed: maphash.MakeSeed(), chains: make([]atomic.Pointer[planLink], chains)}
}

// hash only reads the parts that tell the keys of one kind apart.
func (x *planIndex) hash(key *planKey) uint64 {
	if key.op != nil {
		return maphash.Comparable(x.seed, key.op)
	}
	return maphash.String(x.seed, key.text) ^ bits.RotateLeft64(maphash.String(x.seed, key.name), 1)
}

func (x *planIndex) chain(hash uint64) *atomic.Pointer[planLink] {
	return &x.chains[hash&uint64(len(x.chains)-1)]
}

// find returns the entry of the key, nil if there is none.
func (x *planIndex) find(key *planKey, hash uint64) *planEntry {
	for link := x.chain(hash).Load(); link != nil; link = link.next {
		if link.entry.hash == hash && link.entry.key == *key {
			return link.entry
		}
	}
	return nil
}

func (x *planIndex) add(entry *planEntry) {
	chain := x.chain(entry.hash)
	chain.Store(&planLink{entry, chain.Load()})
}

func (x *planIndex) remove(entry *planEntry) {
	chain := x.chain(entry.hash)
	var rest *planLink
	for link := chain.Load(); link != nil; link = link.next {
		if link.entry != entry {
			rest = &planLink{link.entry, rest}
		}
	}
	chain.Store(rest)
}
