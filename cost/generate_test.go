package cost_test

import (
	"cmp"
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

// selection is a piece of a generated document over testdata/schemas/bypass.graphqls.
type selection struct {
	// head is a field with alias and arguments, or the type condition of an inline fragment, or a
	// spread.
	head  string
	where string
	below []selection
}

// document is a generated document: its own selections, and its fragments.
type document struct {
	// header is what stands before the selections, header if it is empty.
	header    string
	set       []selection
	fragments []fragmentText
}

type fragmentText struct {
	on  string
	set []selection
}

const header = "query ($x: Boolean!, $y: Boolean!, $n: Int, $m: Int!) "

// fieldsOf are the fields of each type with the type they return. A response name always stands for
// the same field and arguments, so that every generated document can be merged.
var fieldsOf = map[string][][2]string{
	"Query": {
		{"a", "Query"},
		{"items_n: items(first: $n)", "Item"},
		{"items_2: items(first: 2, last: $n)", "Item"},
		{"users_m: users(first: $m)", "User"},
		{"conn_n: conn(first: $n)", "Connection"},
		{"conn_3: conn(first: 3)", "Connection"},
		{"paged_n: paged(page: {first: $n})", "Item"},
		{"def", "Item"},
		{"node", "Node"},
		{"e1", "Item"},
		{"__typename", ""},
	},
	"Node":       {{"id", ""}, {"__typename", ""}},
	"Item":       {{"id", ""}, {"heavy", ""}, {"rel_m: rel(first: $m)", "Item"}},
	"User":       {{"id", ""}, {"heavy", ""}, {"posts_2: posts(first: 2)", "Item"}, {"posts_m: posts(first: $m)", "Item"}},
	"Connection": {{"edges", "Edge"}, {"more: edges", "Edge"}},
	"Edge":       {{"node", "Item"}},
}

var narrower = map[string][]string{"Node": {"Item", "User", "Node"}}

var wheres = []string{"", "", "", "", "@include(if: $x)", "@skip(if: $x)", "@include(if: $y)", "@skip(if: $y) @include(if: $x)"}

func drawDocument(t *rapid.T) document {
	var d document
	// A fragment spreads only earlier ones, so that there are no cycles.
	for range rapid.IntRange(0, 4).Draw(t, "fragments") {
		on := rapid.SampledFrom([]string{"Query", "Item", "Node", "Connection"}).Draw(t, "on")
		d.fragments = append(d.fragments, fragmentText{on, d.draw(t, on, 2)})
	}
	d.set = d.draw(t, "Query", 4)
	return d
}

func (d *document) draw(t *rapid.T, on string, depth int) []selection {
	var set []selection
	for range rapid.IntRange(1, 4).Draw(t, "selections") {
		where := rapid.SampledFrom(wheres).Draw(t, "where")
		switch kind := rapid.IntRange(0, 9).Draw(t, "kind"); {
		case (kind == 0 || kind < 7 && on == "Node") && depth > 0:
			condition := rapid.SampledFrom(append([]string{on}, narrower[on]...)).Draw(t, "condition")
			set = append(set, selection{"... on " + condition, where, d.draw(t, condition, depth-1)})
		case kind <= 2 && len(d.fragments) > 0:
			i := rapid.IntRange(0, len(d.fragments)-1).Draw(t, "spread")
			if possible := d.fragments[i].on; possible == on || on == "Item" && possible == "Node" || on == "Node" && possible == "Item" {
				set = append(set, selection{head: fmt.Sprintf("...F%d", i), where: where})
			}
		default:
			field := rapid.SampledFrom(fieldsOf[on]).Draw(t, "field")
			if field[1] == "" {
				set = append(set, selection{head: field[0], where: where})
			} else if depth > 0 {
				set = append(set, selection{field[0], where, d.draw(t, field[1], depth-1)})
			}
		}
	}
	if len(set) == 0 {
		set = []selection{{head: "__typename"}}
	}
	return set
}

func (d document) String() string {
	var b strings.Builder
	b.WriteString(cmp.Or(d.header, header))
	write(&b, d.set)
	for i, f := range d.fragments {
		fmt.Fprintf(&b, "\nfragment F%d on %s ", i, f.on)
		write(&b, f.set)
	}
	return b.String()
}

func write(b *strings.Builder, set []selection) {
	b.WriteString("{")
	for _, s := range set {
		b.WriteString(" " + s.head)
		if s.where != "" {
			b.WriteString(" " + s.where)
		}
		if len(s.below) > 0 {
			b.WriteString(" ")
			write(b, s.below)
		}
	}
	b.WriteString(" }")
}

// respell returns the document with its selections in another order, some of them doubled, in inline
// fragments without a type, or moved into new named fragments. It means the same.
func respell(t *rapid.T, d document) document {
	out := document{}
	var change func(on string, set []selection) []selection
	change = func(on string, set []selection) []selection {
		var changed []selection
		for _, s := range rapid.Permutation(set).Draw(t, "order") {
			s.below = append([]selection(nil), s.below...)
			if len(s.below) > 0 {
				s.below = change("", s.below)
			}
			switch rapid.IntRange(0, 4).Draw(t, "spelling") {
			case 0:
				s = selection{head: "...", below: []selection{s}}
			case 1:
				changed = append(changed, s)
			case 2:
				if on != "" {
					out.fragments = append(out.fragments, fragmentText{on, []selection{s}})
					s = selection{head: fmt.Sprintf("...F%d", len(d.fragments)+len(out.fragments)-1)}
				}
			}
			changed = append(changed, s)
		}
		return changed
	}
	set := change("Query", d.set)
	extra := out.fragments
	out = document{header: d.header}
	for _, f := range d.fragments {
		out.fragments = append(out.fragments, fragmentText{f.on, change("", f.set)})
	}
	out.fragments = append(out.fragments, extra...)
	out.set = set
	return out
}
