package cost

import (
	"encoding/binary"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// compiler compiles one operation to its form.
type compiler struct {
	index *index
	op    *ast.OperationDefinition
	form  *form
	// whole keeps the calls that cost nothing, __typename among them, which a response is read with.
	whole bool
	// work counts the selections visited and the values read; past limit it is over.
	work, limit int
	// depth counts nested calls.
	depth int

	fragments map[string]*fragment
	// defaults are the default values of the variables that have one.
	defaults map[string]*ast.Value
	// required are the variables that a request has to give.
	required     map[string]bool
	slots        map[string]int32
	insides      map[inside]int32
	conditionIDs map[conditionKey]int32
	disjunctions map[string]int32

	// What was compiled before, by the selections.
	single map[singleKey]int32
	merged map[string]int32
	ids    map[*ast.Field]uint32
	sums   map[sumKey]int32
	// spreading are the first fields that select fragments and nothing else, by those fragments.
	spreading map[string]*ast.Field
	// partitions are how the fields and the type conditions of the document divide the possible types.
	partitions map[partitionKey]partition
	classified int
	// classes are those of the values that are being compiled.
	classes []class

	owns     map[inputKey]ownCost
	slicings map[inputKey]int32
	shared   map[lookupsKey]int32
	// aliased are the names of the fields that have an alias somewhere.
	aliased map[string]bool
	// earlier are the fields that were called in one of the sets, which repeated counts, that was last looked through for
	// fields under several names.
	earlier  map[*fieldInfo]earlierCall
	repeated int32
	// argumentIDs number the arguments of the fields that were compared, argumentLists the arguments by
	// their spelling.
	argumentIDs   map[*ast.Field]int32
	argumentLists map[string]int32

	collector collector
	merging   merging
	// roots are the calls on the root type.
	roots rootCalls
}

// singleKey addresses what is selected by one field on what it returns.
type singleKey struct {
	field  *ast.Field
	output *outputType
}

type inputKey struct {
	field *ast.Field
	info  *fieldInfo
}

// run compiles the operation.
func (c *compiler) run(doc *ast.QueryDocument) error {
	if err := c.readDefaults(); err != nil {
		return err
	}
	if err := c.survey(doc); err != nil {
		return err
	}
	// The first set is empty.
	composite := c.form.document.composite
	c.single = make(map[singleKey]int32, composite)
	c.slicings = make(map[inputKey]int32, composite/2)
	c.form.sets = make([]set, 1, 1+composite)
	c.form.calls = make([]call, 0, composite+composite/2)
	c.form.values = make([]value, 0, composite)
	c.form.classes = make([]class, 0, composite)
	c.form.slicings = make([]slicing, 0, composite/2)
	var err error
	if c.form.summed {
		c.form.root, err = c.sum(sumKey{object: c.form.rootType}, c.op.SelectionSet)
	} else {
		c.form.root, err = c.set(nil, c.form.rootType)
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
	if c.depth++; c.depth > maxDepth {
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
		switch {
		case def == nil:
		case def.DefaultValue != nil:
			c.defaults = remember(c.defaults, def.Variable, def.DefaultValue)
		case def.Type != nil && def.Type.NonNull:
			c.required = remember(c.required, def.Variable, true)
		}
	}
	return c.spend(len(c.op.VariableDefinitions))
}

// slot returns the index of a variable in the form.
func (c *compiler) slot(name string) int32 {
	if slot, ok := c.slots[name]; ok {
		return slot
	}
	v := variable{name: name, required: c.required[name]}
	// Coerced variables have their defaults already. Knowing them here keeps the price right for a
	// caller who passes the raw ones.
	if literal := c.defaults[name]; literal != nil {
		v.fallback, v.defaults = literalValue(literal, 0), true
		v.values = valuesIn(literal, 0)
		// The next to spend sees that the limit is passed.
		c.work += v.values
	}
	slot := int32(len(c.form.variables))
	c.form.variables = append(c.form.variables, v)
	c.slots = remember(c.slots, name, slot)
	return slot
}

// set merges selections on an object type; without members those of the operation.
func (c *compiler) set(members []occurrence, object *objectType) (int32, error) {
	lo, err := c.collect(members, object)
	if err != nil || lo == len(c.collector.groups) {
		return 0, err
	}
	defer c.release(lo)
	if members == nil {
		c.keepRoots(c.collector.groups[lo:])
	}
	calls, err := c.addCalls(c.collector.groups[lo:], object)
	return push(&c.form.sets, set{calls: calls}), err
}

// addCalls compiles the calls of a set, which are neighbours: those below them come when all are known.
func (c *compiler) addCalls(groups []group, object *objectType) (calls span, err error) {
	calls.lo = int32(len(c.form.calls))
	for i := range groups {
		if err := c.call(groups[i].key, groups[i].info, groups[i].members); err != nil {
			return calls, err
		}
	}
	groups = c.repeat(calls.lo, groups, object)
	calls.hi = int32(len(c.form.calls))
	for i := range groups {
		g := &groups[i]
		if g.info.output == nil || g.info.kind == constant {
			continue
		}
		unconditional(g.members)
		if c.form.calls[int(calls.lo)+i].value, err = c.value(g.members, g.info.output); err != nil {
			return calls, err
		}
	}
	return calls, nil
}

// unconditional drops a condition that all members share: it is that of the call.
func unconditional(members []occurrence) {
	if slices.ContainsFunc(members, func(m occurrence) bool { return m.condition != members[0].condition }) {
		return
	}
	for i := range members {
		members[i].condition = always
	}
}

// value compiles what calls with the members return.
func (c *compiler) value(members []occurrence, output *outputType) (int32, error) {
	key, long := singleKey{output: output}, ""
	if len(members) == 1 {
		var err error
		if key.field, err = c.alike(members[0].field); err != nil {
			return 0, err
		}
		if id, ok := c.single[key]; ok {
			return id, nil
		}
	} else {
		if err := c.spend(len(members)); err != nil {
			return 0, err
		}
		long = c.memberKey(members, output)
		if id, ok := c.merged[long]; ok {
			return id, nil
		}
	}
	id, err := c.addValue(members, output)
	if len(members) == 1 {
		c.single[key] = id
	} else {
		c.merged = remember(c.merged, long, id)
	}
	return id, err
}

// alike returns the first field that selects the same, if that is fragments without a condition and nothing else, so that
// what is spread under many aliases is merged once. A further spread of a fragment adds nothing to a set, as in execution.
// Other fields are returned as they are, and all where selections are summed, which counts each spread.
func (c *compiler) alike(field *ast.Field) (*ast.Field, error) {
	if c.form.summed {
		return field, nil
	}
	orders := make([]int, 0, 8)
	for _, selection := range field.SelectionSet {
		s, spread := selection.(*ast.FragmentSpread)
		if !spread || len(s.Directives) > 0 {
			return field, nil
		}
		// No two fragments have the same order, and sets are collected in it.
		orders = append(orders, c.fragments[s.Name].order)
	}
	if err := c.spend(len(orders)); err != nil {
		return nil, err
	}
	slices.Sort(orders)
	var spelled []byte
	for _, order := range slices.Compact(orders) {
		spelled = binary.LittleEndian.AppendUint32(spelled, uint32(order))
	}
	return once(&c.spreading, string(spelled), func() *ast.Field { return field }), nil
}

func (c *compiler) addValue(members []occurrence, output *outputType) (int32, error) {
	if err := c.descend(); err != nil {
		return 0, err
	}
	defer c.ascend()
	divided := output.undivided
	if len(output.objects) > 1 {
		var err error
		if divided, err = c.classify(members, output); err != nil {
			return 0, err
		}
	}
	// The classes of a value are neighbours, and those below it come first.
	lo := len(c.classes)
	for _, objects := range divided {
		set, err := c.selectedOn(members, objects[0])
		if err != nil {
			return 0, err
		}
		c.classes = append(c.classes, class{set, objects})
	}
	v := value{output: output, classes: span{lo: int32(len(c.form.classes))}}
	c.form.classes = append(c.form.classes, c.classes[lo:]...)
	c.classes = c.classes[:lo]
	v.classes.hi = int32(len(c.form.classes))
	return push(&c.form.values, v), nil
}

// selectedOn compiles what the members select on one type.
func (c *compiler) selectedOn(members []occurrence, object *objectType) (int32, error) {
	if c.form.summed {
		return c.sum(sumKey{field: members[0].field, object: object}, members[0].field.SelectionSet)
	}
	return c.set(members, object)
}

// memberKey spells out several members with their conditions, and the type that they are selected on.
func (c *compiler) memberKey(members []occurrence, output *outputType) string {
	spelled := make([]byte, 0, len(output.name)+8*len(members)+1)
	spelled = append(spelled, output.name...)
	spelled = append(spelled, 0)
	for _, member := range members {
		id := once(&c.ids, member.field, func() uint32 { return uint32(len(c.ids)) })
		spelled = binary.LittleEndian.AppendUint32(spelled, id)
		spelled = binary.LittleEndian.AppendUint32(spelled, uint32(member.condition))
	}
	return string(spelled)
}
