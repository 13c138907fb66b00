package lint

import (
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/doctor"
)

// sizing is what a @listSize directive says, as far as it can be read. What is wrong in it cost.New
// reports.
type sizing struct {
	assumed bool
	slicing []string
	sized   []string
}

// sizingOf reads the effective list size of a field of an object type: that of the configuration or of
// the directive. It returns false if there is none.
func (l *linter) sizingOf(coordinate string, field *ast.FieldDefinition) (sizing, bool) {
	if given, ok := l.cfg.ListSizes[coordinate]; ok {
		return sizing{assumed: given.AssumedSize != nil, slicing: given.SlicingArguments, sized: given.SizedFields}, true
	}
	directive := field.Directives.ForName("listSize")
	if directive == nil {
		return sizing{}, false
	}
	var s sizing
	if arg := directive.Arguments.ForName("assumedSize"); arg != nil && arg.Value != nil {
		s.assumed = arg.Value.Kind == ast.IntValue
	}
	s.slicing = stringsOf(directive.Arguments.ForName("slicingArguments"))
	s.sized = stringsOf(directive.Arguments.ForName("sizedFields"))
	return s, true
}

func stringsOf(arg *ast.Argument) []string {
	if arg == nil || arg.Value == nil {
		return nil
	}
	if arg.Value.Kind == ast.StringValue {
		return []string{arg.Value.Raw}
	}
	var values []string
	for _, child := range arg.Value.Children {
		values = append(values, child.Value.Raw)
	}
	return values
}

// listSizes looks for @listSize directives that change nothing.
func (l *linter) listSizes() {
	always := l.alwaysInherited()
	for _, def := range l.definitions() {
		if def.Kind != ast.Object && def.Kind != ast.Interface {
			continue
		}
		for _, field := range def.Fields {
			directive := field.Directives.ForName("listSize")
			if directive == nil {
				continue
			}
			coordinate := def.Name + "." + field.Name
			_, configured := l.cfg.ListSizes[coordinate]
			s, _ := l.sizingOf(coordinate, field)
			switch {
			case def.Kind == ast.Interface:
				l.interfaceListSize(def, field, directive)
			case configured:
				l.add(doctor.Note, Overridden, coordinate, directive.Position,
					"the configuration gives the list size: remove @listSize, or keep the size in one place")
			case l.costsNothing(field, s):
				l.add(doctor.Note, UselessListSize, coordinate, directive.Position,
					"the elements cost nothing, so that their number does not matter")
			case s.assumed && l.alwaysGiven(field, s.slicing):
				l.add(doctor.Note, UnusedAssumedSize, coordinate, directive.Position,
					"assumedSize never counts, because a slicing argument is required")
			case s.assumed && always[coordinate]:
				l.add(doctor.Note, UnusedAssumedSize, coordinate, directive.Position,
					"assumedSize never counts, because every field that returns %s sizes the list by its sizedFields", def.Name)
			}
		}
	}
}

// interfaceListSize reports a list size on an interface that no object type inherits, because all of them have
// their own.
func (l *linter) interfaceListSize(def *ast.Definition, field *ast.FieldDefinition, directive *ast.Directive) {
	for _, object := range l.schema.GetPossibleTypes(def) {
		own := object.Fields.ForName(field.Name)
		if own == nil {
			continue
		}
		if _, ok := l.sizingOf(object.Name+"."+field.Name, own); !ok {
			return
		}
	}
	l.add(doctor.Note, UselessListSize, def.Name+"."+field.Name, directive.Position,
		"@listSize of an interface is for object types without their own, and all have their own")
}

// costsNothing says whether the lists that a size is for hold scalars or enums without a weight.
func (l *linter) costsNothing(field *ast.FieldDefinition, s sizing) bool {
	if len(s.sized) == 0 {
		return field.Type.Elem != nil && l.isFree(field.Type)
	}
	def := l.schema.Types[field.Type.Name()]
	if def == nil {
		return false
	}
	found := false
	for _, object := range l.schema.GetPossibleTypes(def) {
		for _, name := range s.sized {
			sized := object.Fields.ForName(name)
			if sized == nil {
				continue
			}
			if sized.Type.Elem == nil || !l.isFree(sized.Type) {
				return false
			}
			found = true
		}
	}
	return found
}

// isFree says whether values of the type are scalars or enums without a weight.
func (l *linter) isFree(typ *ast.Type) bool {
	def := l.schema.Types[typ.Name()]
	if def == nil || !def.IsLeafType() {
		return false
	}
	if weight, ok := l.cfg.Weights[def.Name]; ok {
		return weight == 0
	}
	directive := def.Directives.ForName("cost")
	if directive == nil {
		return true
	}
	weight, ok := weightOf(directive)
	return ok && weight == 0
}

// alwaysGiven says whether one of the slicing arguments has a value in every request. A default is not
// enough, because null beats it.
func (l *linter) alwaysGiven(field *ast.FieldDefinition, slicing []string) bool {
	return slices.ContainsFunc(slicing, func(path string) bool {
		name, rest, _ := strings.Cut(path, ".")
		arg := field.Arguments.ForName(name)
		if arg == nil || !arg.Type.NonNull {
			return false
		}
		typ := arg.Type
		for rest != "" {
			name, rest, _ = strings.Cut(rest, ".")
			def := l.schema.Types[typ.Name()]
			if def == nil {
				return false
			}
			in := def.Fields.ForName(name)
			if in == nil || !in.Type.NonNull {
				return false
			}
			typ = in.Type
		}
		return true
	})
}

// alwaysInherited returns the list fields of object types that every field returning the type sizes.
func (l *linter) alwaysInherited() map[string]bool {
	sized, other := map[string]bool{}, map[string]bool{}
	for _, parent := range l.definitions() {
		if parent.Kind != ast.Object {
			continue
		}
		for _, field := range parent.Fields {
			s, _ := l.sizingOf(parent.Name+"."+field.Name, field)
			sizes := s.assumed || l.alwaysGiven(field, s.slicing)
			def := l.schema.Types[field.Type.Name()]
			if def == nil || !def.IsCompositeType() {
				continue
			}
			for _, object := range l.schema.GetPossibleTypes(def) {
				for _, list := range object.Fields {
					coordinate := object.Name + "." + list.Name
					if sizes && slices.Contains(s.sized, list.Name) {
						sized[coordinate] = true
					} else {
						other[coordinate] = true
					}
				}
			}
		}
	}
	for coordinate := range other {
		delete(sized, coordinate)
	}
	return sized
}
