package validation

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// selections are what a document selects, equal selections once. Numbers stand for nodes and fields; node 0 is none.
type selections struct {
	nodes     []node
	fields    []field
	nodeIDs   map[string]int
	fieldIDs  map[fieldKey]int
	fragments map[*ast.FragmentDefinition]int
}

// node is a selection set, inline fragments included.
type node struct {
	// fields are those that stand in it, by response name in byName once somebody asks, and spreads the nodes of the
	// fragments that it spreads.
	fields  []int
	spreads []int
	byName  map[string][]int
	// fragment says that a fragment is written so.
	fragment bool
	// checked says that no two of its own fields conflict, or that it was reported.
	checked bool
}

// field is a field of a selection set.
type field struct {
	fieldKey

	// written is where it stands first.
	written *ast.Field
}

// fieldKey is what makes fields equal.
type fieldKey struct {
	response, name, arguments string
	parent                    *ast.Definition
	definition                *ast.FieldDefinition
	// selected is the node of its selection set.
	selected int
}

// typename is the definition of __typename, of which gqlparser makes a new one for each occurrence.
var typename = &ast.FieldDefinition{Name: "__typename", Type: ast.NamedType("String", nil)}

func newSelections() *selections {
	return &selections{
		nodes: make([]node, 1, 8), fields: make([]field, 0, 8), nodeIDs: map[string]int{}, fieldIDs: map[fieldKey]int{},
		fragments: map[*ast.FragmentDefinition]int{},
	}
}

// node returns the node of a selection set, 0 if it has nothing.
func (s *selections) node(set ast.SelectionSet) int {
	var n node
	s.collect(&n, set)
	n.fields, n.spreads = unique(n.fields), unique(n.spreads)
	if len(n.fields) == 0 && len(n.spreads) == 0 {
		return 0
	}
	key := make([]byte, 0, 4*(len(n.fields)+len(n.spreads)+1))
	key = binary.BigEndian.AppendUint32(key, uint32(len(n.fields)))
	key = appendNumbers(appendNumbers(key, n.fields), n.spreads)
	id, known := s.nodeIDs[string(key)]
	if !known {
		id = len(s.nodes)
		s.nodes, s.nodeIDs[string(key)] = append(s.nodes, n), id
	}
	return id
}

func (s *selections) collect(n *node, set ast.SelectionSet) {
	for _, selection := range set {
		switch selection := selection.(type) {
		case *ast.Field:
			// Below what does not exist nothing can be compared, and another rule reports it.
			if selection.ObjectDefinition != nil {
				n.fields = append(n.fields, s.field(selection))
			}
		case *ast.InlineFragment:
			s.collect(n, selection.SelectionSet)
		case *ast.FragmentSpread:
			if id := s.fragment(selection.Definition); id != 0 {
				n.spreads = append(n.spreads, id)
			}
		}
	}
}

// fragment returns the node of a fragment, 0 if it does not exist, or while it is found to spread itself, which another
// rule reports.
func (s *selections) fragment(fragment *ast.FragmentDefinition) int {
	if fragment == nil {
		return 0
	}
	id, known := s.fragments[fragment]
	if !known {
		s.fragments[fragment] = 0
		id = s.node(fragment.SelectionSet)
		s.fragments[fragment] = id
		s.nodes[id].fragment = true
	}
	return id
}

func (s *selections) field(written *ast.Field) int {
	key := fieldKey{
		response: written.Alias, name: written.Name, arguments: argumentsOf(written.Arguments),
		parent: written.ObjectDefinition, definition: written.Definition, selected: s.node(written.SelectionSet),
	}
	if key.response == "" {
		key.response = key.name
	}
	if key.name == typename.Name {
		key.definition = typename
	}
	id, known := s.fieldIDs[key]
	if !known {
		id = len(s.fields)
		s.fields, s.fieldIDs[key] = append(s.fields, field{key, written}), id
	}
	return id
}

// argumentsOf returns a text that is the same for arguments that gqlparser takes for the same: names and values in any order.
func argumentsOf(arguments ast.ArgumentList) string {
	if len(arguments) == 0 {
		return ""
	}
	all := make([]string, len(arguments))
	for i, a := range arguments {
		all[i] = string(appendValue(append([]byte(a.Name), 0), a.Value))
	}
	slices.Sort(all)
	return strings.Join(all, "\x00")
}

// appendValue appends a text that is the same for the same values.
func appendValue(b []byte, v *ast.Value) []byte {
	if v == nil {
		return b
	}
	b = append(b, byte('0'+v.Kind))
	b = append(binary.AppendUvarint(b, uint64(len(v.Raw))), v.Raw...)
	if !installed().values {
		return b
	}
	children := make([]string, len(v.Children))
	for i, child := range v.Children {
		children[i] = string(appendValue(append([]byte(child.Name), 0), child.Value))
	}
	if v.Kind == ast.ObjectValue {
		slices.Sort(children)
	}
	b = binary.AppendUvarint(b, uint64(len(children)))
	for _, child := range children {
		b = append(binary.AppendUvarint(b, uint64(len(child))), child...)
	}
	return b
}

// concrete reports whether the fields of the parent exclude those of other such parents.
func (f *field) concrete() bool { return f.parent.Kind == ast.Object && f.definition != nil }

// names returns the fields of a node by response name.
func (n *node) names(fields []field) map[string][]int {
	if n.byName == nil {
		n.byName = make(map[string][]int, len(n.fields))
		for _, id := range n.fields {
			response := fields[id].response
			n.byName[response] = append(n.byName[response], id)
		}
	}
	return n.byName
}

// unique sorts numbers and takes out repeated ones.
func unique(numbers []int) []int {
	slices.Sort(numbers)
	return slices.Compact(numbers)
}

func appendNumbers(key []byte, numbers []int) []byte {
	for _, n := range numbers {
		key = binary.BigEndian.AppendUint32(key, uint32(n))
	}
	return key
}
