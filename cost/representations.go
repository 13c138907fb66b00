package cost

import (
	"math"
	"reflect"

	"github.com/vektah/gqlparser/v2/ast"
)

// shared are the shares of a call, and how many representations it has.
type shared struct {
	shares []share
	total  int
}

// share is how many representations of an _entities call are priced as one object type. The numbers
// of the two components differ where a type is unknown and the dearest of each component counts.
type share struct {
	// object is the index of the possible type.
	object     int
	typ, field float64
	// one is what one representation costs.
	one pair
}

func (s *share) price() pair { return pair{times(s.typ, s.one.typ), times(s.field, s.one.field)} }

// shares returns the possible types of an _entities call with their representations, which are read
// once.
func (r *reading) shares(c *outlineCall) shared {
	known, ok := r.shared[c]
	if !ok {
		known = r.divide(c)
		r.shared = remember(r.shared, c, known)
	}
	return known
}

func (r *reading) divide(c *outlineCall) shared {
	v := &r.o.values[c.value]
	shares := make([]share, len(v.output.objects))
	typ, field := 0, 0
	for i, object := range v.output.objects {
		below := r.set(r.o.sets[int(v.lo)+i], parentSizes{})
		shares[i] = share{object: i, one: pair{max(0, object.weight+below.typ), below.field}}
		if shares[i].one.typ > shares[typ].one.typ {
			typ = i
		}
		if shares[i].one.field > shares[field].one.field {
			field = i
		}
	}
	names := r.representations(c)
	if len(names) > r.o.e.options.maxEntries || !r.m.visit(len(names)) {
		for i := range shares {
			shares[i].typ, shares[i].field = math.Inf(1), math.Inf(1)
		}
		return shared{shares, len(names)}
	}
	// There may be many of both, and many such calls.
	index := make(map[string]int, len(v.output.objects))
	for i, object := range v.output.objects {
		index[object.name] = i
	}
	for _, name := range names {
		if at, ok := index[name]; ok {
			shares[at].typ++
			shares[at].field++
		} else if len(shares) > 0 {
			shares[typ].typ++
			shares[field].field++
		}
	}
	return shared{shares, len(names)}
}

// representations returns the __typename of each representation, empty where it is missing.
func (r *reading) representations(c *outlineCall) []string {
	arg := c.members[0].field.Arguments.ForName("representations")
	if arg == nil || arg.Value == nil {
		return nil
	}
	switch arg.Value.Kind {
	case ast.Variable:
		value, _ := r.variable(arg.Value.Raw)
		return r.represented(value)
	case ast.ListValue:
		names := make([]string, len(arg.Value.Children))
		for i, child := range arg.Value.Children {
			names[i] = r.literalTypename(child.Value)
		}
		return names
	default:
		// Input coercion makes a list of a single value.
		return []string{r.literalTypename(arg.Value)}
	}
}

func (r *reading) literalTypename(value *ast.Value) string {
	if value == nil {
		return ""
	}
	if value.Kind == ast.Variable {
		given, _ := r.variable(value.Raw)
		return typenameOf(given)
	}
	if value.Kind != ast.ObjectValue {
		return ""
	}
	given := value.Children.ForName("__typename")
	switch {
	case given == nil:
		return ""
	case given.Kind == ast.Variable:
		value, _ := r.variable(given.Raw)
		name, _ := value.(string)
		return name
	default:
		return given.Raw
	}
}

// represented returns the typenames in a variable that carries the whole list.
func (r *reading) represented(value any) []string {
	limit := r.o.e.options.maxEntries + 1
	switch list := value.(type) {
	case nil:
		return nil
	case []any:
		names := make([]string, min(limit, len(list)))
		for i := range names {
			names[i] = typenameOf(list[i])
		}
		return names
	case []map[string]any:
		names := make([]string, min(limit, len(list)))
		for i := range names {
			names[i] = typenameOf(list[i])
		}
		return names
	case map[string]any:
		return []string{typenameOf(list)}
	}
	if v := reflect.ValueOf(value); v.Kind() == reflect.Slice {
		return make([]string, min(limit, v.Len()))
	}
	return make([]string, 1)
}

func typenameOf(representation any) string {
	object, _ := representation.(map[string]any)
	name, _ := object["__typename"].(string)
	return name
}
