package cost

import (
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// countingNodes returns an estimator of the same schema whose type cost is the number of list nodes: an
// element of a list of objects weighs 1, and nothing else weighs anything. What sizes a list is the
// same, so that both take a list to be equally long.
func (e *Estimator) countingNodes() *Estimator {
	n := &Estimator{
		options: e.options,
		objects: make(map[string]*objectType, len(e.objects)),
		outputs: make(map[string]*outputType, len(e.outputs)),
		roots:   make(map[ast.Operation]*objectType, len(e.roots)),
	}
	n.options.limits = Limits{}
	n.options.base = nil
	// The price has a rule for the number of representations.
	n.options.maxEntries = maxCount

	// Introspection types are no objects of the schema, but are returned like them.
	objects := make(map[*objectType]*objectType, len(e.objects))
	copied := func(object *objectType) *objectType {
		if objects[object] == nil {
			// Representations weigh what their type does.
			objects[object] = &objectType{name: object.name, weight: 1, conditions: object.conditions}
		}
		return objects[object]
	}
	elements := make(map[*outputType]*outputType, len(e.outputs))
	for name, output := range e.outputs {
		single := &outputType{name: name}
		for _, object := range output.objects {
			single.objects = append(single.objects, copied(object))
		}
		element := &outputType{name: name, objects: single.objects}
		if !strings.HasPrefix(name, "__") {
			element.weight = 1
		}
		n.outputs[name], elements[output] = single, element
	}
	for name, object := range e.objects {
		n.objects[name] = copied(object)
	}
	for op, root := range e.roots {
		if root != nil {
			n.roots[op] = copied(root)
		}
	}
	sizes := map[*listSize]*listSize{nil: nil}
	for object, counting := range objects {
		counting.fields = make(map[string]*fieldInfo, len(object.fields))
		for name, field := range object.fields {
			counting.fields[name] = field.countingNodes(n.outputs, elements, sizes)
		}
	}
	return n
}

// countingNodes returns the field without weights and without rules, which are those of the price.
func (f *fieldInfo) countingNodes(outputs map[string]*outputType, elements map[*outputType]*outputType, sizes map[*listSize]*listSize) *fieldInfo {
	counting := &fieldInfo{
		coordinate: f.coordinate, name: f.name, kind: f.kind, depth: f.depth, scale: f.scale,
		argsFree: true,
	}
	if f.output != nil {
		counting.output = outputs[f.output.name]
		if f.depth > 0 {
			counting.output = elements[f.output]
		}
	}
	if f.sizes != nil && sizes[f.sizes] == nil {
		free := *f.sizes
		free.one = false
		sizes[f.sizes] = &free
	}
	counting.sizes = sizes[f.sizes]
	return counting
}
