package cost

import (
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
)

// sizedFields are the lists below a field that its list size gives a length to. Equal ones are one value.
type sizedFields struct {
	// spelled tells them from others.
	spelled string
	// lists are the names of fields that are lists.
	lists []string
	// inner are the fields that return an object whose lists are sized, by their name.
	inner map[string]*sizedFields
}

// names says whether a field of the returned object is a list with a size of its parent.
func (s *sizedFields) names(info *fieldInfo) bool {
	return info.depth > 0 && slices.Contains(s.lists, info.name)
}

// through returns what the parent sizes below a field of the returned object, nil if it sizes nothing there.
func (s *sizedFields) through(info *fieldInfo) *sizedFields {
	if s == nil {
		return nil
	}
	return s.inner[info.name]
}

// passage is a field that a list size sizes lists through.
type passage struct{ coordinate, field string }

// sizedFields reads the sizedFields of a field: names, or paths such as "results { page }". It checks that they
// lead to lists, and, if the list size is effective, records these as sized.
func (b *builder) sizedFields(coordinate string, field *ast.FieldDefinition, given []string, effective bool) *sizedFields {
	selections, err := parser.ParseQuery(&ast.Source{Input: "{" + strings.Join(given, " ") + "}"})
	if err != nil || len(selections.Operations) != 1 || len(selections.Fragments) > 0 {
		b.fail(coordinate, "sizedFields are names of fields, or paths to them such as results { page }, and not %q", given)
		return nil
	}
	return b.sizedBelow(coordinate, field.Type.Name(), selections.Operations[0].SelectionSet, effective)
}

func (b *builder) sizedBelow(coordinate, typeName string, selections ast.SelectionSet, effective bool) *sizedFields {
	sized := &sizedFields{}
	var spelled []string
	for _, selection := range selections {
		field, ok := selection.(*ast.Field)
		if !ok || responseName(field) != field.Name || len(field.Arguments)+len(field.Directives) > 0 {
			b.fail(coordinate, "sizedFields are names of fields, or paths to them such as results { page }, without arguments and fragments")
			return nil
		}
		name := field.Name
		if slices.Contains(sized.lists, name) || sized.inner[name] != nil {
			b.fail(coordinate, "sized field %q is given twice", name)
			continue
		}
		targets := b.sizedTargets(coordinate, typeName, name)
		if len(field.SelectionSet) == 0 {
			sized.lists = append(sized.lists, name)
			spelled = append(spelled, name)
			b.sizeLists(coordinate, targets, effective)
		} else if below := b.passThrough(coordinate, targets, field.SelectionSet, effective); below != nil {
			sized.inner = remember(sized.inner, name, below)
			spelled = append(spelled, name+" {"+below.spelled+"}")
		}
	}
	sized.spelled = strings.Join(spelled, " ")
	return once(&b.sized, sized.spelled, func() *sizedFields { return sized })
}

// target is a field of an object type that is named by sizedFields.
type target struct {
	object string
	field  *ast.FieldDefinition
}

// sizedTargets looks a field up as pricing does: on the object types, which all have the fields of their
// interfaces.
func (b *builder) sizedTargets(coordinate, typeName, name string) []target {
	def := b.schema.Types[typeName]
	if def == nil || !def.IsCompositeType() {
		b.fail(coordinate, "sized field %q cannot be a field of %s", name, typeName)
		return nil
	}
	var targets []target
	for _, object := range b.schema.GetPossibleTypes(def) {
		if field := object.Fields.ForName(name); field != nil {
			targets = append(targets, target{object.Name, field})
		}
	}
	if len(targets) == 0 {
		b.fail(coordinate, "sized field %q is no field of %s", name, typeName)
	}
	return targets
}

func (b *builder) sizeLists(coordinate string, targets []target, effective bool) {
	for _, t := range targets {
		if t.field.Type.Elem == nil {
			b.fail(coordinate, "sized field %q is not a list on %s", t.field.Name, t.object)
		}
		if effective {
			b.sizedBy[t.object+"."+t.field.Name] = true
		}
	}
}

// passThrough reads what is sized below a field. Its price has to be the sum of what the parent sizes and of
// the rest, so it returns one object of one type; [builder.checkPassages] checks what else that takes.
func (b *builder) passThrough(coordinate string, targets []target, selections ast.SelectionSet, effective bool) *sizedFields {
	var sized *sizedFields
	for _, t := range targets {
		returned := t.field.Type.Name()
		if def := b.schema.Types[returned]; t.field.Type.Elem != nil || def == nil || def.Kind != ast.Object {
			b.fail(coordinate, "sizedFields lead through %s.%s, which does not return one object of an object type: give the lists below a @listSize at their own fields",
				t.object, t.field.Name)
			return nil
		}
		if sized = b.sizedBelow(coordinate, returned, selections, effective); sized == nil {
			return nil
		}
		if effective {
			b.passages = append(b.passages, passage{coordinate, t.object + "." + t.field.Name})
		}
	}
	return sized
}

// checkPassages reports list sizes that lead through a field of which the price is no such sum.
func (b *builder) checkPassages() {
	for _, p := range b.passages {
		object, name, _ := strings.Cut(p.field, ".")
		info := b.objects[object].fields[name]
		switch {
		case info.sizes != nil:
			b.fail(p.coordinate, "sizedFields lead through %s, which has a list size of its own: size the lists below it there", p.field)
		case info.complexity != nil:
			b.fail(p.coordinate, "sizedFields lead through %s, which has a function: give the lists below a @listSize at their own fields", p.field)
		case info.output.objects[0].weight < 0:
			b.fail(p.coordinate, "sizedFields lead through %s, whose type has a negative weight: give the lists below a @listSize at their own fields", p.field)
		}
	}
}
