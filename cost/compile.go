package cost

import (
	"encoding/binary"
	"errors"

	"github.com/vektah/gqlparser/v2/ast"
)

// summingFactor is how much more work summing may do than merging: it is linear in the document, but
// repeats for each possible type of a schema that may have hundreds.
const summingFactor = 20

// compiler compiles one operation.
type compiler struct {
	e    *Estimator
	op   *ast.OperationDefinition
	plan *Plan
	// work counts the selections visited and the values read; past limit it is over.
	work, limit int
	// depth counts nested calls.
	depth int
	// summing adds up selections instead of merging them.
	summing bool
	// typename is collected as __typename, which is left out if it is nil.
	typename *fieldInfo

	fragments map[string]*fragment
	// composite is how many fields of the document have selections, which is about how many calls there
	// are to remember.
	composite int
	// defaults are the default values of the variables that have one.
	defaults     map[string]*ast.Value
	slots        map[string]int32
	insides      map[inside]int32
	conditionIDs map[conditionKey]int32
	disjunctions map[string]int32

	// What was compiled before, by the selections and the sizes that they inherit.
	children map[childKey]ref
	merged   map[string]ref
	ids      map[*ast.Field]uint32
	sums     map[sumKey]ref
	highests map[highestKey]ref
	inherits map[inheritedSize]int32
	inherit  []inheritedSize
	inputs   map[inputKey]ownCost
	specs    map[inputKey]sizeSpec
	lookups  map[lookupsKey]int32
	sizes    map[sizeExpr]int32
	// argumentIDs number the arguments of the fields that were compared, argumentLists the arguments by
	// their spelling.
	argumentIDs   map[*ast.Field]int32
	argumentLists map[string]int32

	collector collector
}

type childKey struct {
	field   *ast.Field
	output  *outputType
	inherit int32
}

type inputKey struct {
	field *ast.Field
	info  *fieldInfo
}

func (e *Estimator) newCompiler(op *ast.OperationDefinition, limit int) *compiler {
	return &compiler{
		e:            e,
		op:           op,
		plan:         &Plan{conditions: []condition{{op: conditionAlways}}, values: e.options.maxValues},
		limit:        limit,
		slots:        map[string]int32{},
		insides:      map[inside]int32{},
		conditionIDs: map[conditionKey]int32{},
		disjunctions: map[string]int32{},
		merged:       map[string]ref{},
		ids:          map[*ast.Field]uint32{},
		sums:         map[sumKey]ref{},
		highests:     map[highestKey]ref{},
		inherits:     map[inheritedSize]int32{},
		// The first is that nothing is inherited.
		inherit: []inheritedSize{{}},
		inputs:  map[inputKey]ownCost{},
		lookups: map[lookupsKey]int32{},
		sizes:   map[sizeExpr]int32{},

		argumentIDs:   map[*ast.Field]int32{},
		argumentLists: map[string]int32{},
	}
}

// compile also returns the work that it took.
func (e *Estimator) compile(doc *ast.QueryDocument, op *ast.OperationDefinition) (*Plan, int, error) {
	if doc == nil || op == nil {
		return nil, 0, malformed("there is no operation")
	}
	kind := op.Operation
	if kind == "" {
		kind = ast.Query
	}
	root := e.roots[kind]
	if root == nil {
		return nil, 0, malformed("the schema has no %s type", kind)
	}
	c := e.newCompiler(op, e.options.workLimit)
	err := c.run(doc, root)
	work := c.work
	if errors.Is(err, ErrWorkLimit) && !e.options.refuse {
		c = e.newCompiler(op, e.options.workLimit*summingFactor)
		c.summing = true
		err = c.run(doc, root)
		work += c.work
	}
	if err != nil {
		return nil, work, err
	}
	c.plan.base = e.options.base[kind]
	c.plan.weight = root.weight
	c.plan.approximate = c.summing
	lower(c.plan)
	measured, err := c.limits(doc)
	if err != nil {
		return nil, work + measured, err
	}
	return c.plan, work + measured, nil
}

func (c *compiler) run(doc *ast.QueryDocument, root *objectType) error {
	if err := c.readDefaults(); err != nil {
		return err
	}
	if err := c.orderFragments(doc); err != nil {
		return err
	}
	c.children = make(map[childKey]ref, c.composite)
	c.specs = make(map[inputKey]sizeSpec, c.composite/2)
	c.plan.nodes = make([]node, 0, c.composite/2)
	c.plan.calls = make([]call, 0, c.composite/2)
	roots := rootFields{c: c, root: root, seen: map[*fragment]bool{}}
	if err := roots.add(c.op.SelectionSet, 0); err != nil {
		return err
	}
	c.plan.fields, c.plan.free = roots.result()
	var err error
	if c.summing {
		c.plan.root, err = c.sum(sumKey{object: root}, c.op.SelectionSet)
	} else {
		c.plan.root, err = c.set(nil, root, 0)
	}
	return err
}

// spend counts work.
func (c *compiler) spend(n int) error {
	c.work += n
	if c.work > c.limit {
		return ErrWorkLimit
	}
	return nil
}

// descend counts nested calls; the caller ascends.
func (c *compiler) descend() error {
	c.depth++
	if c.depth > maxDepth {
		return ErrTooDeep
	}
	return nil
}

func (c *compiler) ascend() { c.depth-- }

// readDefaults finds the variables that have a default, once, because a document may use as many
// variables as it defines. Of several definitions of one variable, which only documents that were not
// validated have, the last counts.
func (c *compiler) readDefaults() error {
	for _, def := range c.op.VariableDefinitions {
		if def == nil || def.DefaultValue == nil {
			continue
		}
		if c.defaults == nil {
			c.defaults = make(map[string]*ast.Value)
		}
		c.defaults[def.Variable] = def.DefaultValue
	}
	return c.spend(len(c.op.VariableDefinitions))
}

// slot returns the index of a variable in the plan.
func (c *compiler) slot(name string) int32 {
	if slot, ok := c.slots[name]; ok {
		return slot
	}
	v := variable{name: name}
	// Coerced variables have their defaults already. Knowing them here keeps the price right for a
	// caller who passes the raw ones.
	if literal := c.defaults[name]; literal != nil {
		v.fallback, v.defaults = literalValue(literal, 0), true
		v.values = valuesIn(literal, 0)
		// The next to spend sees that the limit is passed.
		c.work += v.values
	}
	slot := int32(len(c.plan.variables))
	c.plan.variables = append(c.plan.variables, v)
	c.slots[name] = slot
	return slot
}

// set prices merged selections on an object type.
func (c *compiler) set(members []occurrence, object *objectType, inherit int32) (ref, error) {
	groups, err := c.collect(members, object)
	if err != nil {
		return ref{}, err
	}
	defer c.release(groups)
	total := sumBuilder{}
	for i := groups.lo; i < groups.hi; i++ {
		r, err := c.call(c.collector.groups[i], inherit)
		if err != nil {
			return ref{}, err
		}
		total.add(r)
	}
	return c.addSum(total), nil
}

// value prices what a call returns: the maximum over the possible types.
func (c *compiler) value(members []occurrence, info *fieldInfo, inherit int32) (ref, error) {
	if err := c.descend(); err != nil {
		return ref{}, err
	}
	defer c.ascend()
	var long string
	key := childKey{output: info.output, inherit: inherit}
	if len(members) == 1 {
		key.field = members[0].field
		if r, ok := c.children[key]; ok {
			return r, nil
		}
	} else {
		if err := c.spend(len(members)); err != nil {
			return ref{}, err
		}
		long = c.memberKey(members, info.output, inherit)
		if r, ok := c.merged[long]; ok {
			return r, nil
		}
	}
	highest := maxBuilder{}
	for _, object := range info.output.objects {
		r, err := c.set(members, object, inherit)
		if err != nil {
			return ref{}, err
		}
		highest.add(r)
	}
	r := c.addMax(highest)
	if len(members) == 1 {
		c.children[key] = r
	} else {
		c.merged[long] = r
	}
	return r, nil
}

// memberKey spells out several members with their conditions, the type that they are selected on, and
// the size that they inherit.
func (c *compiler) memberKey(members []occurrence, output *outputType, inherit int32) string {
	spelled := make([]byte, 0, len(output.name)+8*len(members)+8)
	spelled = append(spelled, output.name...)
	spelled = append(spelled, 0)
	spelled = binary.LittleEndian.AppendUint32(spelled, uint32(inherit))
	for _, member := range members {
		id, ok := c.ids[member.field]
		if !ok {
			id = uint32(len(c.ids))
			c.ids[member.field] = id
		}
		spelled = binary.LittleEndian.AppendUint32(spelled, id)
		spelled = binary.LittleEndian.AppendUint32(spelled, uint32(member.condition))
	}
	return string(spelled)
}

// sumBuilder adds up results, constants at once.
type sumBuilder struct {
	constant pair
	edges    []edge
}

func (b *sumBuilder) add(r ref) {
	b.constant = b.constant.plus(r.constant)
	if !r.isFixed() {
		b.edges = append(b.edges, edge{node: r.node})
	}
}

func (c *compiler) addSum(b sumBuilder) ref {
	switch len(b.edges) {
	case 0:
		return fixed(b.constant)
	case 1:
		return ref{constant: b.constant, node: b.edges[0].node}
	}
	lo := int32(len(c.plan.edges))
	c.plan.edges = append(c.plan.edges, b.edges...)
	return ref{constant: b.constant, node: c.addNode(node{kind: nodeSum, lo: lo, hi: int32(len(c.plan.edges))})}
}

// maxBuilder takes the maximum of results, constants at once.
type maxBuilder struct {
	constant pair
	edges    []edge
}

func (b *maxBuilder) add(r ref) {
	if r.isFixed() {
		// No cost is negative, so a maximum may start at zero.
		b.constant = b.constant.max(r.constant)
	} else {
		b.edges = append(b.edges, r)
	}
}

func (c *compiler) addMax(b maxBuilder) ref {
	switch {
	case len(b.edges) == 0:
		return fixed(b.constant)
	case len(b.edges) == 1 && b.constant == pair{}:
		return b.edges[0]
	}
	lo := int32(len(c.plan.edges))
	c.plan.edges = append(c.plan.edges, b.edges...)
	c.plan.edges = append(c.plan.edges, fixed(b.constant))
	return ref{node: c.addNode(node{kind: nodeMax, lo: lo, hi: int32(len(c.plan.edges))})}
}

func (c *compiler) addNode(n node) int32 {
	c.plan.nodes = append(c.plan.nodes, n)
	return int32(len(c.plan.nodes) - 1)
}
