package cost

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// occurrence is a field as the document selects it, and the condition under which it is included.
type occurrence struct {
	field     *ast.Field
	condition int32
}

// group is one call: all occurrences of a response name on an object type. Two aliases are two calls.
type group struct {
	key     string
	info    *fieldInfo
	members []occurrence
	// on are the types that members are selected on, nil if these are one.
	on []*ast.Definition
	// apart says that gqlgen does not merge the members, see [merging.join].
	apart bool
	// next is the next group of the same response name: of a field that is called apart, or, which only documents that
	// were not validated have, of another field or other arguments; 0 is none.
	next int
}

// collector collects selections as execution does. The groups of nested sets lie on one stack.
type collector struct {
	groups []group
	// queue are the fragments spread but not collected yet.
	queue queue[*fragment]
	arena []occurrence
}

// indexedFrom is how many groups are found by comparing names.
const indexedFrom = 12

// collect merges the selections of the members on the object type; without members those of the
// operation. The groups from lo on are to be released.
func (c *compiler) collect(members []occurrence, object *objectType) (lo int, err error) {
	lo = len(c.collector.groups)
	// Nothing else is collected meanwhile.
	m := &c.merging
	*m = merging{c: c, object: object, lo: lo}
	if members == nil {
		if err := c.walk(m, c.op.SelectionSet, object, always, 0); err != nil {
			return lo, err
		}
	}
	for _, member := range members {
		if err := c.walk(m, member.field.SelectionSet, object, member.condition, 0); err != nil {
			return lo, err
		}
	}
	// A fragment is collected when nothing that could spread it is left, once, under the disjunction
	// of the conditions of all its spreads.
	for len(c.collector.queue) > 0 {
		f := c.collector.queue.next()
		condition := c.either(f.pending)
		f.pending = f.pending[:0]
		applies, err := c.applies(f.def.TypeCondition, object)
		if err != nil {
			return lo, err
		}
		if !applies || condition == never {
			continue
		}
		if err := c.walk(m, f.def.SelectionSet, object, condition, 0); err != nil {
			return lo, err
		}
	}
	return lo, nil
}

func (c *compiler) release(lo int) {
	clear(c.collector.groups[lo:])
	c.collector.groups = c.collector.groups[:lo]
}

// selector takes what applies to an object in the selections that are walked: fields, and the fragments that
// are spread.
type selector interface {
	field(field *ast.Field, condition int32) error
	spread(f *fragment, condition int32) error
}

// walk finds the selections on an object that are included under a condition.
func (c *compiler) walk(to selector, selections ast.SelectionSet, object *objectType, outer int32, depth int) error {
	if depth > maxDepth {
		return ErrTooDeep
	}
	for _, selection := range selections {
		var err error
		var condition int32
		switch s := selection.(type) {
		case *ast.Field:
			if condition, err = c.enters(outer, "", s.Directives, object); condition != never {
				err = to.field(s, condition)
			}
		case *ast.InlineFragment:
			if condition, err = c.enters(outer, s.TypeCondition, s.Directives, object); condition != never {
				err = c.walk(to, s.SelectionSet, object, condition, depth+1)
			}
		case *ast.FragmentSpread:
			if condition, err = c.enters(outer, "", s.Directives, object); condition != never {
				err = to.spread(c.fragments[s.Name], condition)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// merging is the set that is being collected, whose groups begin at lo.
type merging struct {
	c      *compiler
	object *objectType
	lo     int
	// index finds the place after the first group of a response name, once there are many; it has the groups
	// before indexed.
	index   map[string]int
	indexed int
}

// enters returns the condition under which a selection on the object is included, given that of its
// surroundings.
func (c *compiler) enters(outer int32, typeCondition string, directives ast.DirectiveList, object *objectType) (int32, error) {
	if err := c.spend(1 + len(directives)); err != nil {
		return never, err
	}
	applies, err := c.applies(typeCondition, object)
	if err != nil || !applies {
		return never, err
	}
	return c.included(outer, directives), nil
}

func (m *merging) spread(f *fragment, condition int32) error {
	if len(f.pending) == 0 {
		m.c.collector.queue.add(f)
	}
	f.pending = append(f.pending, condition)
	return nil
}

// responseName is the key of the field in the response.
func responseName(field *ast.Field) string {
	if field.Alias != "" {
		return field.Alias
	}
	return field.Name
}

// costsNothing says whether a call can be left out of the price, as most scalars can.
func (c *compiler) costsNothing(field *ast.Field, info *fieldInfo) bool {
	return info.free() && (len(field.Directives) == 0 || len(c.index.directives) == 0)
}

// selected returns the field that is called, nil if the call is to be left out.
func (c *compiler) selected(field *ast.Field, object *objectType) (*fieldInfo, error) {
	keeps := c.whole || c.mayRepeat(field)
	if field.Name == typenameField.name {
		if keeps {
			return typenameField, nil
		}
		return nil, nil
	}
	info := object.fields[field.Name]
	if info == nil {
		return nil, malformed("%s has no field %q", object.name, field.Name)
	}
	if info.output != nil && info.kind != constant && len(field.SelectionSet) == 0 {
		return nil, malformed("%s needs a selection", info.coordinate)
	}
	// Those of the root tell what the operation does, whatever they cost.
	if !keeps && object != c.form.rootType && c.costsNothing(field, info) {
		return nil, nil
	}
	return info, nil
}

func (m *merging) field(field *ast.Field, condition int32) error {
	c := m.c
	info, err := c.selected(field, m.object)
	if info == nil {
		return err
	}
	// What calls that cost nothing are given does not matter, and no work is counted for them.
	free := c.costsNothing(field, info)
	key := responseName(field)
	at := m.find(key)
	for at >= 0 {
		g := &c.collector.groups[at]
		same := g.info == info
		if same && !free {
			if same, err = c.sameArguments(g.members[0].field, field); err != nil {
				return err
			}
		}
		if same {
			m.join(at, occurrence{field, condition}, free)
			return nil
		}
		if g.next == 0 {
			g.next = len(c.collector.groups)
			break
		}
		at = g.next
		if err := c.spend(1); !free && err != nil {
			return err
		}
	}
	c.collector.groups = append(c.collector.groups, group{key: key, info: info, members: c.alone(field, condition)})
	return nil
}

// join adds an occurrence to a group of its response name. gqlgen merges selections on types of which one implements the
// other. It calls the field once more for a selection on an unrelated interface, and which ones it calls together depends on
// their order and on variables. So each occurrence of such a field is a call of its own, which is no less than gqlgen makes.
// A field that costs nothing is called as often and stays one.
func (m *merging) join(at int, one occurrence, free bool) {
	g := &m.c.collector.groups[at]
	if free || !g.apart && g.mergesWith(one.field.ObjectDefinition) {
		g.members = append(g.members, one)
		return
	}
	rest := g.members[1:]
	g.members, g.on, g.apart = g.members[:1:1], nil, true
	for _, other := range rest {
		m.apart(at, other)
	}
	m.apart(at, one)
}

// apart adds a call of its own to the response name of a group.
func (m *merging) apart(at int, one occurrence) {
	groups := m.c.collector.groups
	first := &groups[at]
	g := group{key: first.key, info: first.info, members: m.c.alone(one.field, one.condition), next: first.next}
	first.next = len(groups)
	m.c.collector.groups = append(groups, g)
}

// mergesWith reports whether gqlgen merges a selection on a type with each one of the group.
func (g *group) mergesWith(on *ast.Definition) bool {
	first := g.members[0].field.ObjectDefinition
	if on == first || slices.Contains(g.on, on) {
		return true
	}
	if !related(first, on) || slices.ContainsFunc(g.on, func(other *ast.Definition) bool { return !related(other, on) }) {
		return false
	}
	g.on = append(g.on, on)
	return true
}

// related reports whether two types are one, or one implements the other.
func related(a, b *ast.Definition) bool {
	return a == b || a != nil && b != nil && (a.Name == b.Name || slices.Contains(a.Interfaces, b.Name) || slices.Contains(b.Interfaces, a.Name))
}

// alone returns one occurrence, which others can be appended to.
func (c *compiler) alone(field *ast.Field, condition int32) []occurrence {
	if len(c.collector.arena) == cap(c.collector.arena) {
		c.collector.arena = make([]occurrence, 0, 64)
	}
	n := len(c.collector.arena)
	c.collector.arena = append(c.collector.arena, occurrence{field, condition})
	return c.collector.arena[n : n+1 : n+1]
}

// find returns the first group of the response name, -1 if there is none.
func (m *merging) find(key string) int {
	groups := m.c.collector.groups
	if len(groups)-m.lo < indexedFrom {
		for i := m.lo; i < len(groups); i++ {
			if groups[i].key == key {
				return i
			}
		}
		return -1
	}
	for m.indexed = max(m.indexed, m.lo); m.indexed < len(groups); m.indexed++ {
		if name := groups[m.indexed].key; m.index[name] == 0 {
			m.index = remember(m.index, name, m.indexed+1)
		}
	}
	return m.index[key] - 1
}
