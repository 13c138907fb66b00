package validation

import (
	"fmt"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator/core"
)

const (
	// visitsPerField and visitsBesides bound the work of a check.
	visitsPerField = 64
	visitsBesides  = 1 << 16
	// mostConflicts is how many conflicts are reported.
	mostConflicts = 10
)

// depth is what is asked of fields that are merged.
type depth byte

const (
	// shapes asks for one shape of answer: of fields of objects of which a response has only one.
	shapes depth = 's'
	// calls asks for the same field and arguments as well.
	calls depth = 'c'
)

// check is the check of one document.
type check struct {
	report     core.AddErrFunc
	schema     *ast.Schema
	selections *selections
	// done are the sets that were checked, and together the fields of fragments that are spread together.
	done     map[string]bool
	together map[string]map[string][]int
	// visits are left.
	visits int
	told   map[conflict]bool
	// path are the fields whose selections are merged, from the root on.
	path [][]int
	// seen and stamp tell which nodes the set has that is put together.
	seen  []int
	stamp int
}

func newCheck(report core.AddErrFunc) *check {
	return &check{report: report, selections: newSelections(), done: map[string]bool{}}
}

// root checks a selection set that nothing is merged with.
func (c *check) root(schema *ast.Schema, set ast.SelectionSet) {
	c.schema = schema
	known := len(c.selections.fields)
	root := c.selections.node(set)
	c.visits += visitsPerField * (len(c.selections.fields) - known)
	if known == 0 {
		c.visits += visitsBesides
	}
	if root != 0 {
		c.set([]int{root}, calls)
	}
}

// over reports whether the check is to end.
func (c *check) over() bool { return c.visits <= 0 || len(c.told) >= mostConflicts }

// visit counts work. When that is done it says so, once.
func (c *check) visit(n int) {
	if c.visits > 0 && c.visits <= n {
		c.report(core.Message("The document merges too many selections of fields to be checked: select each field once."))
	}
	c.visits -= n
}

// set checks nodes that are merged.
func (c *check) set(nodes []int, asked depth) {
	merged := c.expand(nodes)
	if c.over() || len(merged) == 0 {
		return
	}
	key := keyOf(merged, asked)
	if c.done[key] {
		return
	}
	c.done[key] = true
	for _, id := range merged {
		c.own(id)
	}
	if len(merged) > 1 {
		known, others := c.known(merged, asked)
		c.between(known, others, asked)
	}
}

// known returns the fields by response name of a part of the nodes that conflicts in nothing or was reported, and the
// other nodes: all fragments, which may be spread together in many places, or else the largest node.
func (c *check) known(merged []int, asked depth) (known map[string][]int, others []int) {
	nodes := c.selections.nodes
	var fragments []int
	largest := merged[0]
	for _, id := range merged {
		if nodes[id].fragment {
			fragments = append(fragments, id)
		} else {
			others = append(others, id)
		}
		if len(nodes[id].fields) > len(nodes[largest].fields) {
			largest = id
		}
	}
	if len(fragments) > 1 && len(others) > 0 {
		c.set(fragments, asked)
		return c.union(fragments), others
	}
	others = slices.DeleteFunc(slices.Clone(merged), func(id int) bool { return id == largest })
	return nodes[largest].names(c.selections.fields), others
}

// union returns the fields of nodes by response name.
func (c *check) union(ids []int) map[string][]int {
	key := keyOf(ids, calls)
	if u := c.together[key]; u != nil {
		return u
	}
	u := map[string][]int{}
	for _, id := range ids {
		n := &c.selections.nodes[id]
		c.visit(len(n.fields))
		if c.over() {
			break
		}
		for _, f := range n.fields {
			response := c.selections.fields[f].response
			u[response] = append(u[response], f)
		}
	}
	if c.together == nil {
		c.together = map[string]map[string][]int{}
	}
	c.together[key] = u
	return u
}

// keyOf is what is known of a set is found by.
func keyOf(merged []int, asked depth) string {
	return string(append(appendNumbers(make([]byte, 0, 4*len(merged)+1), merged), byte(asked)))
}

// expand returns the nodes and those of all fragments that they spread, sorted.
func (c *check) expand(nodes []int) []int {
	all := c.selections.nodes
	c.seen = append(c.seen, make([]int, len(all)-len(c.seen))...)
	c.stamp++
	merged := make([]int, 0, len(nodes))
	add := func(more []int) {
		for _, id := range more {
			if c.seen[id] != c.stamp {
				c.seen[id] = c.stamp
				merged = append(merged, id)
			}
		}
	}
	add(nodes)
	for next := 0; next < len(merged); {
		n := &all[merged[next]]
		add(n.spreads)
		c.visit(1 + len(n.spreads))
		next++
	}
	slices.Sort(merged)
	return merged
}

// own checks the fields of one node among themselves.
func (c *check) own(id int) {
	n := &c.selections.nodes[id]
	if n.checked {
		return
	}
	n.checked = true
	c.visit(len(n.fields))
	if len(n.fields) == 1 {
		c.merge(n.fields, calls)
		return
	}
	names := n.names(c.selections.fields)
	for _, field := range n.fields {
		same := names[c.selections.fields[field].response]
		if same[0] == field && !c.over() {
			c.merge(same, calls)
		}
	}
}

// between checks the fields of different nodes whose response names are the same. It looks them up among those that are
// known, and does not visit these.
func (c *check) between(known map[string][]int, others []int, asked depth) {
	nodes, fields := c.selections.nodes, c.selections.fields
	// first are the nodes that a response name was met in first, and several the fields of names that are met again.
	first, several := map[string]int{}, map[string][]int{}
	var order []string
	for _, id := range others {
		c.visit(len(nodes[id].fields))
		if c.over() {
			return
		}
		for _, f := range nodes[id].fields {
			response := fields[f].response
			from, met := first[response]
			switch {
			case several[response] != nil:
				several[response] = append(several[response], f)
			case known[response] != nil:
				several[response] = append(slices.Clone(known[response]), f)
				order = append(order, response)
			case !met:
				first[response] = id
			case from != id:
				several[response] = append(slices.Clone(nodes[from].names(fields)[response]), f)
				order = append(order, response)
			}
		}
	}
	for _, response := range order {
		c.merge(unique(several[response]), asked)
	}
}

// merge checks fields of one response name, and what they select.
func (c *check) merge(same []int, asked depth) {
	c.visit(len(same))
	if c.over() {
		return
	}
	if len(same) == 1 {
		c.below(same, asked)
		return
	}
	if asked == shapes {
		if c.oneShape(same) {
			c.below(same, shapes)
		}
		return
	}
	parents, of, abstract := c.parents(same)
	if len(parents) <= 1 {
		if c.oneCall(same) && c.oneShape(same) {
			c.below(same, calls)
		}
		return
	}
	if !c.oneShape(same) {
		return
	}
	c.below(same, shapes)
	for _, parent := range parents {
		together := slices.Concat(abstract, of[parent])
		c.visit(len(together))
		if c.over() {
			return
		}
		if c.oneCall(together) {
			c.below(together, calls)
		}
	}
}

// parents sorts fields by the objects that they are of; abstract are those of interfaces and unions, which any object may
// be.
func (c *check) parents(same []int) (parents []string, of map[string][]int, abstract []int) {
	of = map[string][]int{}
	for _, id := range same {
		f := &c.selections.fields[id]
		if !f.concrete() {
			abstract = append(abstract, id)
			continue
		}
		if of[f.parent.Name] == nil {
			parents = append(parents, f.parent.Name)
		}
		of[f.parent.Name] = append(of[f.parent.Name], id)
	}
	return parents, of, abstract
}

// below checks what fields select together.
func (c *check) below(same []int, asked depth) {
	nodes := make([]int, 0, len(same))
	for _, id := range same {
		if selected := c.selections.fields[id].selected; selected != 0 {
			nodes = append(nodes, selected)
		}
	}
	if len(nodes) == 0 {
		return
	}
	c.path = append(c.path, same)
	c.set(unique(nodes), asked)
	c.path = c.path[:len(c.path)-1]
}

// oneCall reports whether all call the same field with the same arguments, and reports a conflict.
func (c *check) oneCall(same []int) bool {
	a := &c.selections.fields[same[0]]
	for _, id := range same[1:] {
		b := &c.selections.fields[id]
		if a.name != b.name {
			c.conflict(same[0], id, fmt.Sprintf(`"%s" and "%s" are different fields`, a.name, b.name))
			return false
		}
		if a.arguments != b.arguments {
			c.conflict(same[0], id, "they have differing arguments")
			return false
		}
	}
	return true
}

// oneShape reports whether the answers of all have the same shape, and reports a conflict.
func (c *check) oneShape(same []int) bool {
	first, leaf, object := -1, -1, -1
	for _, id := range same {
		f := &c.selections.fields[id]
		if f.definition == nil {
			continue
		}
		if first < 0 {
			first = id
		}
		other := first
		conflicts := !sameWrapping(c.selections.fields[first].definition.Type, f.definition.Type)
		if named := c.leaf(f); !conflicts && named != "" {
			if leaf < 0 {
				leaf = id
			}
			other, conflicts = leaf, c.leaf(&c.selections.fields[leaf]) != named
		} else if object < 0 {
			object = id
		}
		if !conflicts && leaf >= 0 && object >= 0 && installed().leaves {
			other, conflicts = min(leaf, object), true
			if other == id {
				other = max(leaf, object)
			}
		}
		if conflicts {
			c.conflict(other, id, fmt.Sprintf(`they return conflicting types "%s" and "%s"`,
				c.selections.fields[other].definition.Type, f.definition.Type))
			return false
		}
	}
	return true
}

// leaf returns the name of the scalar or enum that a field has, empty if it has another type.
func (c *check) leaf(f *field) string {
	named := c.schema.Types[f.definition.Type.Name()]
	if named == nil || named.Kind != ast.Scalar && named.Kind != ast.Enum {
		return ""
	}
	return named.Name
}

// sameWrapping reports whether two types are the same but for the named ones in them.
func sameWrapping(a, b *ast.Type) bool {
	for a.Elem != nil && b.Elem != nil {
		if a.NonNull != b.NonNull && installed().lists {
			return false
		}
		a, b = a.Elem, b.Elem
	}
	return a.Elem == nil && b.Elem == nil && a.NonNull == b.NonNull
}
