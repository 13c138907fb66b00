package main

import (
	"math/rand/v2"
	"slices"
)

// gene is one thing in a document: an operation, a fragment, a selection or a value. Its numbers are choices among what the
// schema offers at its place, so that each genome is a document.
type gene struct {
	// Pick chooses among what may stand there, below mostPicks.
	Pick int
	// Times is how often it stands there, each time with another number, and Deep how often in itself.
	Times, Deep int
	// Long is how many letters a name or a string has.
	Long  int
	Marks marks
	// In is what stands in it.
	In []*gene
}

// marks are what a gene has besides.
type marks uint

const (
	// inline and spread make the selection a fragment.
	inline marks = 1 << iota
	spread
	// renamed gives a field an alias, directed a directive, and argued an argument.
	renamed
	directed
	argued
	// variable puts a variable in the place of a value, and wrong puts there what is none.
	variable
	wrong
	allMarks
)

// has says whether the gene has a mark.
func (g *gene) has(m marks) bool { return g.Marks&m != 0 }

// genome is a document to be.
type genome struct{ Operations, Fragments []*gene }

// The bounds of the numbers of a gene. The size of the document bounds them further.
const (
	mostPicks = 1 << 6
	mostTimes = 1 << 10
	mostDeep  = 1 << 10
	mostLong  = 1 << 16
	mostIn    = 6
)

// randomGene is one with others in it, to a depth.
func randomGene(r *rand.Rand, depth int) *gene {
	g := &gene{Pick: r.IntN(mostPicks), Times: 1}
	for mark := marks(1); mark < allMarks; mark <<= 1 {
		if r.IntN(4) == 0 {
			g.Marks |= mark
		}
	}
	if r.IntN(8) != 0 {
		g.Marks &^= wrong
	}
	if r.IntN(3) == 0 {
		g.Times = 1 << r.IntN(9)
	}
	if r.IntN(5) == 0 {
		g.Deep = 1 << r.IntN(8)
	}
	if r.IntN(8) == 0 {
		g.Long = 1 << r.IntN(15)
	}
	for range r.IntN(3) * min(depth, 1) {
		g.In = append(g.In, randomGene(r, depth-1))
	}
	return g
}

func randomGenome(r *rand.Rand) *genome {
	d := &genome{}
	for range 1 + r.IntN(2) {
		d.Operations = append(d.Operations, randomGene(r, 3))
	}
	for range r.IntN(3) {
		d.Fragments = append(d.Fragments, randomGene(r, 3))
	}
	return d
}

// clone returns a gene that shares nothing.
func (g *gene) clone() *gene {
	c := *g
	c.In = clones(g.In)
	return &c
}

func clones(genes []*gene) []*gene {
	var all []*gene
	for _, g := range genes {
		all = append(all, g.clone())
	}
	return all
}

func (d *genome) clone() *genome {
	return &genome{Operations: clones(d.Operations), Fragments: clones(d.Fragments)}
}

// all returns all genes.
func (d *genome) all() []*gene {
	genes := slices.Concat(d.Operations, d.Fragments)
	for i := 0; i < len(genes); i++ {
		genes = append(genes, genes[i].In...)
	}
	return genes
}

// child returns a change of d, with a part of other in it at times.
func (d *genome) child(r *rand.Rand, other *genome) *genome {
	c := d.clone()
	for range 1 + r.IntN(3) {
		all := c.all()
		g := all[r.IntN(len(all))]
		if r.IntN(8) == 0 {
			others := other.all()
			*g = *others[r.IntN(len(others))].clone()
			continue
		}
		g.change(r)
	}
	if r.IntN(12) == 0 {
		c.Fragments = append(c.Fragments, randomGene(r, 2))
	}
	if r.IntN(12) == 0 && len(c.Operations) > 1 {
		c.Operations = c.Operations[:len(c.Operations)-1]
	}
	return c
}

// change changes one thing.
func (g *gene) change(r *rand.Rand) {
	switch r.IntN(8) {
	case 0:
		g.Pick = r.IntN(mostPicks)
	case 1:
		g.Marks ^= 1 << r.IntN(7)
	case 2:
		g.Times = resized(r, g.Times, mostTimes)
	case 3:
		g.Deep = resized(r, g.Deep, mostDeep)
	case 4:
		g.Long = resized(r, g.Long, mostLong)
	case 5:
		if len(g.In) > 0 {
			g.In = slices.Delete(g.In, 0, 1)
		}
	case 6:
		if len(g.In) > 0 && len(g.In) < mostIn {
			g.In = append(g.In, g.In[r.IntN(len(g.In))].clone())
		}
	default:
		if len(g.In) < mostIn {
			g.In = append(g.In, randomGene(r, 1))
		}
	}
}

// resized returns a number near n, or far from it.
func resized(r *rand.Rand, n, most int) int {
	switch r.IntN(4) {
	case 0:
		n *= 4
	case 1:
		n *= 2
	case 2:
		n /= 2
	default:
		n += r.IntN(3) - 1
	}
	return min(max(n, 0), most)
}

// shrink halves the largest number, which makes the document smaller.
func (d *genome) shrink() {
	var largest *int
	for _, g := range d.all() {
		for _, n := range []*int{&g.Times, &g.Deep, &g.Long} {
			if largest == nil || *n > *largest {
				largest = n
			}
		}
	}
	if largest != nil {
		*largest /= 2
	}
}
