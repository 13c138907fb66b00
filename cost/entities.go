package cost

import "github.com/vektah/gqlparser/v2/ast"

// typename leads from a representation to the name of its type.
var typename = []step{{name: "__typename"}}

// entityCall prices a call of _entities: each representation by its type.
func (c *compiler) entityCall(cl call, field *ast.Field, selected func(*objectType) (ref, error)) (ref, error) {
	ec := entityCall{call: cl, whole: -1, byType: make(map[string]ref, len(cl.info.output.objects)), max: c.e.options.maxEntries}
	var unknown maxBuilder
	for _, object := range cl.info.output.objects {
		child, err := selected(object)
		if err != nil {
			return ref{}, err
		}
		one := call{info: cl.info, key: cl.key, n: 1, size: -1, weight: object.weight, child: child}
		if c.summing {
			one.weight = max(0, one.weight)
		}
		r := c.finish(one)
		ec.byType[object.name] = r
		unknown.add(r)
	}
	ec.unknown = c.addMax(unknown)
	if arg := field.Arguments.ForName("representations"); arg != nil && arg.Value != nil {
		if err := c.representations(&ec, arg.Value); err != nil {
			return ref{}, err
		}
	}
	c.plan.entities = append(c.plan.entities, ec)
	return ref{node: c.addNode(node{kind: nodeEntities, lo: int32(len(c.plan.entities) - 1)})}, nil
}

// representations reads the argument, which is a variable in all but hand-written queries.
func (c *compiler) representations(ec *entityCall, value *ast.Value) error {
	switch value.Kind {
	case ast.Variable:
		ec.whole = c.slot(value.Raw)
		return nil
	case ast.ListValue:
		for _, child := range value.Children {
			if err := c.spend(1); err != nil {
				return err
			}
			c.representation(ec, child.Value)
		}
		return nil
	default:
		// Input coercion makes a list of a single value.
		c.representation(ec, value)
		return nil
	}
}

func (c *compiler) representation(ec *entityCall, value *ast.Value) {
	if value != nil && value.Kind == ast.Variable {
		ec.found = append(ec.found, lookup{slot: c.slot(value.Raw), steps: typename})
		return
	}
	name := ""
	if value != nil && value.Kind == ast.ObjectValue {
		if given := value.Children.ForName("__typename"); given != nil {
			if given.Kind == ast.Variable {
				ec.found = append(ec.found, lookup{slot: c.slot(given.Raw)})
				return
			}
			name = given.Raw
		}
	}
	ec.names = append(ec.names, name)
}
