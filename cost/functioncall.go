package cost

import (
	"reflect"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// functionCall is a call whose field has a function.
type functionCall struct {
	info      *fieldInfo
	condition int32
	// node is the index of its node.
	node      int32
	arguments ast.ArgumentList
	// values is how many values the arguments consist of, slots are the variables in them.
	values int
	slots  []int32
	weight float64
	// child is what is selected on one element, ordinary what the call costs without the function, and
	// own what its arguments and the directives of the query cost: in the program the three forms from
	// form on.
	child, ordinary, own ref
	form                 int32
}

// finishCall is finish for a call whose field may have a function.
func (c *compiler) finishCall(cl call, field *ast.Field) (ref, error) {
	ordinary := c.finish(cl)
	if cl.info.complexity == nil {
		return ordinary, nil
	}
	f := functionCall{
		info: cl.info, condition: cl.condition, arguments: field.Arguments, weight: cl.weight,
		child: cl.child, ordinary: ordinary,
	}
	for _, arg := range field.Arguments {
		c.readArgument(&f, arg.Value, 0)
	}
	if err := c.spend(1 + f.values); err != nil {
		return ref{}, err
	}
	own := cl
	own.own -= cl.info.weight
	own.n, own.size, own.weight, own.child, own.rule = 0, -1, 0, fixed(pair{}), false
	f.own = c.finish(own)
	f.node = c.addNode(node{kind: nodeFunction, lo: int32(len(c.plan.functions))})
	c.plan.functions = append(c.plan.functions, f)
	return ref{node: f.node}, nil
}

// readArgument counts the values of an argument and notes its variables.
func (c *compiler) readArgument(f *functionCall, value *ast.Value, depth int) {
	if value == nil || depth > maxDepth {
		return
	}
	f.values++
	if value.Kind == ast.Variable {
		f.slots = append(f.slots, c.slot(value.Raw))
	}
	for _, child := range value.Children {
		c.readArgument(f, child.Value, depth+1)
	}
}

// function lowers a call whose field has a function.
func (l *lowering) function(at int32) form {
	f := &l.plan.functions[at]
	f.form = l.formOf(f.child)
	l.formOf(f.ordinary)
	l.formOf(f.own)
	l.compute(opFunction, at, 0)
	return l.end(pair{})
}

// function returns what a call costs whose field has a function. The function is asked only about
// calls that happen.
func (m *machine) function(p *Plan, f *functionCall) pair {
	if !m.happens[f.node] || !m.holds[f.condition] {
		return pair{}
	}
	// The function may read all that it is given, for each call again.
	m.visit(1 + f.values)
	for _, slot := range f.slots {
		m.visitAll(m.values[slot].value, 0)
	}
	if m.left < 0 {
		return infinite
	}
	price := f.info.complexity.price(f.arguments, m.variables, f.weight, m.form(p, &p.forms[f.form]))
	ordinary := m.form(p, &p.forms[f.form+1])
	return price.of(ordinary, m.form(p, &p.forms[f.form+2]).field)
}

// visitAll counts all values in a value.
func (m *machine) visitAll(value any, depth int) {
	if depth > maxDepth {
		m.left = -1
	}
	if !m.visit(1) {
		return
	}
	switch value := value.(type) {
	case nil, string, bool, int64, float64:
	case map[string]any:
		for _, inner := range value {
			m.visitAll(inner, depth+1)
		}
	case []any:
		for i := 0; i < len(value) && m.left >= 0; i++ {
			m.visitAll(value[i], depth+1)
		}
	default:
		if v := reflect.ValueOf(value); v.Kind() == reflect.Slice {
			for i := 0; i < v.Len() && m.left >= 0; i++ {
				m.visitAll(v.Index(i).Interface(), depth+1)
			}
		}
	}
}

// reach finds the nodes of calls that happen, going down from the root: a node stands after those that
// it reads.
func (m *machine) reach(p *Plan) {
	m.happens = slices.Grow(m.happens[:0], len(p.nodes))[:len(p.nodes)]
	clear(m.happens)
	m.mark(p.root)
	for i := len(p.nodes) - 1; i >= 0; i-- {
		if !m.happens[i] {
			continue
		}
		switch n := &p.nodes[i]; n.kind {
		case nodeCall:
			if c := &p.calls[n.lo]; m.holds[c.condition] {
				m.mark(c.child)
			}
		case nodeEntities:
			if e := &p.entities[n.lo]; m.holds[e.call.condition] {
				m.mark(e.unknown)
			}
		case nodeFunction:
			if f := &p.functions[n.lo]; m.holds[f.condition] {
				m.mark(f.ordinary)
			}
		case nodeGate:
			if m.holds[n.condition] {
				m.mark(p.edges[n.lo])
			}
		default:
			for _, e := range p.edges[n.lo:n.hi] {
				m.mark(e)
			}
		}
	}
}

func (m *machine) mark(r ref) {
	if !r.isFixed() {
		m.happens[r.node] = true
	}
}
