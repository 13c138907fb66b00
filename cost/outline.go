package cost

import "github.com/vektah/gqlparser/v2/ast"

// Outline is an operation compiled for reading: the same merged selections as its [Plan] prices, but
// with nothing folded, so that [Outline.Explain] can say what each call costs and [Outline.Tally] can
// price a response. It is immutable, safe for concurrent use, and keeps nothing of the document but
// copies of names and values.
//
// Like the plan it shares what is below equal selections, so its size is bounded by
// [Config.WorkLimit] even where the operation unfolds into exponentially many calls.
type Outline struct {
	e    *Estimator
	plan *Plan
	// root is what is selected on the root type; calls, sets and values refer to each other by index.
	root       span
	calls      []outlineCall
	sets       []span
	values     []outlineValue
	conditions []condition
	// slots are the names of the variables that conditions read.
	slots []string
	// defers says that parts of the response may come later.
	defers bool
	// defaults are what the operation's variables hold when they are not given.
	defaults map[string]any
	rootType *objectType
	// copied is the memory of what was copied from the document, in the units of the cache.
	copied int

	// index finds the calls of large sets, by the first call of the set.
	index map[int]map[string]int
	// untold are the object types that a response may not tell from others.
	untold map[string]bool
}

// outlineCall is one call: all occurrences of a response name on an object type.
type outlineCall struct {
	key     string
	info    *fieldInfo
	members []occurrence
	// condition decides whether the call happens.
	condition int32
	// value is what is selected below, -1 if nothing is, or nothing that has a price of its own.
	value int32
	// settled says that neither arguments nor directives can cost anything.
	settled bool
}

// typenameField is __typename in an outline. It costs nothing, but tells types in a response.
var typenameField = &fieldInfo{coordinate: "__typename", name: "__typename", kind: constant, argsFree: true}

// outlineValue is what is selected on a composite value: sets[lo+i] on the i-th possible type.
type outlineValue struct {
	output  *outputType
	lo      int32
	classes []typeClass
	// agree says that calls of one response name cost the same in all classes that have it.
	agree bool
}

// Outline returns the operation compiled for reading, from the cache if it was asked for before. It
// belongs to the cached [Plan] of the operation, is compiled when it is first asked for, and leaves the
// cache with the plan, or before it where all outlines together are too large. As for [Estimator.Plan], neither the document nor the
// operation may change afterwards. Callers who ask for one outline at the same time wait for one of them
// to compile it.
//
// The errors are those of [Estimator.Plan], and [ErrWorkLimit] for an operation that is too large to
// merge: its price is a sum ([Cost.Approximate]), of which there is no breakdown.
func (e *Estimator) Outline(doc *ast.QueryDocument, op *ast.OperationDefinition) (*Outline, error) {
	return e.OutlineText("", doc, op)
}

// OutlineText is [Estimator.Outline] for a caller who knows the text that the document was parsed from,
// as [Estimator.PlanText] is. It finds the outline of an operation that was parsed again.
func (e *Estimator) OutlineText(text string, doc *ast.QueryDocument, op *ast.OperationDefinition) (*Outline, error) {
	plan, err := e.PlanText(text, doc, op)
	if err != nil {
		return nil, err
	}
	return e.outlines.get(plan, func() (*Outline, error) { return e.outline(doc, op, plan) })
}

// outline compiles the operation, which was compiled to the plan before.
func (e *Estimator) outline(doc *ast.QueryDocument, op *ast.OperationDefinition, plan *Plan) (*Outline, error) {
	if plan.approximate {
		return nil, ErrWorkLimit
	}
	kind := op.Operation
	if kind == "" {
		kind = ast.Query
	}
	c := e.newCompiler(op, e.options.workLimit)
	c.typename = typenameField
	if err := c.orderFragments(doc); err != nil {
		return nil, err
	}
	b := outliner{
		c:      c,
		copy:   newOutlineCopy(e.directives),
		o:      &Outline{e: e, plan: plan, rootType: e.roots[kind], defaults: map[string]any{}, defers: defers(doc, op)},
		single: map[outlineKey]int32{},
		merged: map[string]int32{},
	}
	for _, def := range op.VariableDefinitions {
		if def != nil && def.DefaultValue != nil {
			b.o.defaults[b.copy.name(def.Variable)] = literalValue(b.copy.variable(def).DefaultValue, 0)
		}
	}
	var err error
	if b.o.root, err = b.set(nil, b.o.rootType); err != nil {
		return nil, err
	}
	b.o.conditions = c.plan.conditions
	for i := range c.plan.variables {
		b.o.slots = append(b.o.slots, b.copy.name(c.plan.variables[i].name))
	}
	b.o.copied = b.copy.units()
	b.o.prepareResponses()
	return b.o, nil
}

// outliner compiles one outline. It collects with a compiler whose plan only holds the conditions.
type outliner struct {
	c    *compiler
	o    *Outline
	copy *outlineCopy
	// What was compiled before, by the selections.
	single map[outlineKey]int32
	merged map[string]int32
}

type outlineKey struct {
	field  *ast.Field
	output *outputType
}

// set outlines merged selections on an object type.
func (b *outliner) set(members []occurrence, object *objectType) (span, error) {
	groups, err := b.c.collect(members, object)
	if err != nil {
		return span{}, err
	}
	defer b.c.release(groups)
	// The calls of a set are neighbours, so those below are outlined when all are known.
	lo := len(b.o.calls)
	for _, g := range b.c.collector.groups[groups.lo:groups.hi] {
		b.o.calls = append(b.o.calls, outlineCall{
			key: b.copy.key(g.key, g.info), info: g.info, members: b.copy.members(g.members), condition: b.c.anyOf(g.members), value: -1,
		})
	}
	set := span{lo: lo, hi: len(b.o.calls)}
	for i := set.lo; i < set.hi; i++ {
		call := b.o.calls[i]
		if call.info.output == nil || call.info.kind == constant {
			continue
		}
		members := b.c.collector.groups[groups.lo+i-set.lo].members
		unconditional(members)
		value, err := b.value(members, call.info.output)
		if err != nil {
			return span{}, err
		}
		b.o.calls[i].value = value
	}
	return set, nil
}

// value outlines what calls with the members return.
func (b *outliner) value(members []occurrence, output *outputType) (int32, error) {
	if err := b.c.descend(); err != nil {
		return 0, err
	}
	defer b.c.ascend()
	key, long := outlineKey{output: output}, ""
	if len(members) == 1 {
		key.field = members[0].field
		if id, ok := b.single[key]; ok {
			return id, nil
		}
	} else {
		if err := b.c.spend(len(members)); err != nil {
			return 0, err
		}
		long = b.c.memberKey(members, output, 0)
		if id, ok := b.merged[long]; ok {
			return id, nil
		}
	}
	sets := make([]span, len(output.objects))
	for i, object := range output.objects {
		var err error
		if sets[i], err = b.set(members, object); err != nil {
			return 0, err
		}
	}
	id := int32(len(b.o.values))
	b.o.values = append(b.o.values, outlineValue{output: output, lo: int32(len(b.o.sets))})
	b.o.sets = append(b.o.sets, sets...)
	if len(members) == 1 {
		b.single[key] = id
	} else {
		b.merged[long] = id
	}
	return id, nil
}

// units measures the memory of the outline, in the units of the cache.
func (o *Outline) units() int {
	return 1 + len(o.calls) + len(o.sets) + len(o.values) + len(o.conditions) + o.copied
}
