package cost

import (
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// outlineCopy copies what an outline reads of a document: response names, arguments, directives and
// defaults. Every name and value of a parsed document is a part of its text, and every selection leads
// to those below it, so that one of them alone would keep the whole in memory. Each is copied once.
type outlineCopy struct {
	// priced are the directives of the schema whose arguments cost something.
	priced    map[string][]*inputField
	names     map[string]string
	fields    map[*ast.Field]*ast.Field
	variables map[*ast.VariableDefinition]*ast.VariableDefinition
	// bare stands for all fields without arguments and directives.
	bare *ast.Field
	// values and bytes are what was copied.
	values, bytes int
}

func newOutlineCopy(priced map[string][]*inputField) *outlineCopy {
	return &outlineCopy{
		priced:    priced,
		names:     map[string]string{},
		fields:    map[*ast.Field]*ast.Field{},
		variables: map[*ast.VariableDefinition]*ast.VariableDefinition{},
		bare:      &ast.Field{},
	}
}

// key copies a response name, which mostly is the name of the field in the schema.
func (c *outlineCopy) key(key string, info *fieldInfo) string {
	if key == info.name {
		return info.name
	}
	return c.name(key)
}

func (c *outlineCopy) name(name string) string {
	known, ok := c.names[name]
	if !ok {
		known = c.text(name)
		c.names[known] = known
	}
	return known
}

func (c *outlineCopy) text(text string) string {
	c.bytes += len(text)
	return strings.Clone(text)
}

// members copies the occurrences of a call. Those after the first are only read for their directives.
func (c *outlineCopy) members(members []occurrence) []occurrence {
	kept := make([]occurrence, 1, len(members))
	kept[0] = occurrence{c.field(members[0].field), always}
	directed := false
	for _, member := range members {
		directed = directed || c.directed(member.field)
	}
	if !directed {
		return kept[:1:1]
	}
	kept[0].condition = members[0].condition
	for _, member := range members[1:] {
		kept = append(kept, occurrence{c.field(member.field), member.condition})
	}
	c.values += len(kept)
	return kept
}

func (c *outlineCopy) directed(field *ast.Field) bool {
	for _, directive := range field.Directives {
		if directive != nil && c.priced[directive.Name] != nil {
			return true
		}
	}
	return false
}

func (c *outlineCopy) field(field *ast.Field) *ast.Field {
	if len(field.Arguments) == 0 && !c.directed(field) {
		return c.bare
	}
	if known := c.fields[field]; known != nil {
		return known
	}
	kept := &ast.Field{Arguments: c.arguments(field.Arguments)}
	for _, directive := range field.Directives {
		if directive != nil && c.priced[directive.Name] != nil {
			kept.Directives = append(kept.Directives, &ast.Directive{Name: c.name(directive.Name), Arguments: c.arguments(directive.Arguments)})
		}
	}
	c.values += 1 + len(kept.Directives)
	c.fields[field] = kept
	return kept
}

func (c *outlineCopy) arguments(arguments ast.ArgumentList) ast.ArgumentList {
	var kept ast.ArgumentList
	for _, arg := range arguments {
		kept = append(kept, &ast.Argument{Name: c.name(arg.Name), Value: c.value(arg.Value, 0)})
	}
	return kept
}

// value copies a value. What is nested too deeply is nothing that anybody reads.
func (c *outlineCopy) value(value *ast.Value, depth int) *ast.Value {
	if value == nil || depth > maxDepth+1 {
		return nil
	}
	c.values++
	kept := &ast.Value{Kind: value.Kind, VariableDefinition: c.variable(value.VariableDefinition)}
	if value.Kind == ast.Variable || value.Kind == ast.EnumValue {
		kept.Raw = c.name(value.Raw)
	} else {
		kept.Raw = c.text(value.Raw)
	}
	for _, child := range value.Children {
		kept.Children = append(kept.Children, &ast.ChildValue{Name: c.name(child.Name), Value: c.value(child.Value, depth+1)})
	}
	return kept
}

// variable copies the definition of a variable, of which only the default is read.
func (c *outlineCopy) variable(def *ast.VariableDefinition) *ast.VariableDefinition {
	if def == nil || def.DefaultValue == nil {
		return nil
	}
	known := c.variables[def]
	if known == nil {
		known = &ast.VariableDefinition{}
		c.variables[def] = known
		known.DefaultValue = c.value(def.DefaultValue, 0)
	}
	return known
}

// units measures the memory of what was copied, in the units of the cache. A value takes about two.
func (c *outlineCopy) units() int { return len(c.names) + 2*c.values + c.bytes/bytesPerUnit }
