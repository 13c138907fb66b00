package cost

import "github.com/vektah/gqlparser/v2/ast"

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
	// next is the next group of the same response name but with another field or other arguments,
	// which only documents that were not validated have; 0 is none.
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
			g.members = append(g.members, occurrence{field, condition})
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
