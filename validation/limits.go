package validation

import (
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator/core"
)

const (
	// mostErrors is how many errors a rule reports, and after how many a validation ends, as in graphql-js.
	mostErrors = 100
	// lettersPerError is how many letters of a name that is not there count as one more error, because a server that suggests
	// other names compares each letter.
	lettersPerError = 32
	// mostValues is what values may take altogether, and bytesPerValue what one takes beside its text. Half a megabyte
	// of small values, or four of text, is some milliseconds.
	mostValues    = 4 << 20
	bytesPerValue = 32
)

// MaxErrors ends a validation with an error of its own when about 100 fields were found that are not there or do not select
// what they have to, fewer if their names are long. Nothing is checked any more after that. It counts a field again for
// each operation and fragment that it is reached from, as gqlparser reports it again. The fields themselves are told by the
// rules FieldsOnCorrectType and ScalarLeafs, of which a gqlgen server always uses its own.
//
// A field that is missing in a fragment that is reached from 100 others was told 100 times, and looked up among all names of its
// type each time: 5 kB took 200 ms.
var MaxErrors = core.Rule{Name: "MaxErrors", RuleFunc: maxErrors}

func maxErrors(events *core.Events, report core.AddErrFunc) {
	found := 0
	events.OnField(func(w *core.Walker, field *ast.Field) {
		if !missing(w.Schema, field) {
			return
		}
		found += 1 + len(field.Name)/lettersPerError
		if found >= mostErrors {
			report(core.Message("Too many validation errors, error limit reached. Validation aborted."))
			end(w)
		}
	})
}

// missing says whether a field is one of which FieldsOnCorrectType or ScalarLeafs tells.
func missing(schema *ast.Schema, field *ast.Field) bool {
	if field.Definition == nil {
		return field.ObjectDefinition != nil
	}
	of := schema.Types[field.Definition.Type.Name()]
	return of != nil && of.IsLeafType() != (len(field.SelectionSet) == 0)
}

// end ends a validation: what the walker still comes to is nobody's affair, and it follows no spread.
func end(w *core.Walker) { w.Observers, w.Document = &core.Events{}, &ast.QueryDocument{} }

// limited is rules of which each reports so many errors, under its own name, and keeps silent about more.
func limited(of ...core.Rule) core.RuleFunc {
	names := make([]core.ErrorOption, len(of))
	for i := range of {
		names[i] = func(err *gqlerror.Error) { err.Rule = of[i].Name }
	}
	return func(events *core.Events, report core.AddErrFunc) {
		reported := make([]int, len(of))
		for i := range of {
			of[i].RuleFunc(events, func(options ...core.ErrorOption) {
				if reported[i]++; reported[i] <= mostErrors {
					report(append(options, names[i])...)
				}
			})
		}
	}
}

// MaxValues refuses a document whose values take too long to be checked, and ends the validation. The rule ValuesOfCorrectType
// evaluates a value again at each level that it is nested in, with the defaults of its variables: lists of variables that have
// lists for defaults, in objects in each other, took more than a second within 2.2 kB. Four megabytes of text may be read so
// altogether, of which each value is 32 bytes beside its own: no document comes near whose values stand in it once, at a
// depth of ten, and larger ones belong into variables.
var MaxValues = core.Rule{Name: "MaxValues", RuleFunc: maxValues}

func maxValues(events *core.Events, report core.AddErrFunc) {
	var v values
	events.OnValue(func(w *core.Walker, value *ast.Value) {
		found := v.of(value)
		if value.Kind == ast.ListValue || value.Kind == ast.ObjectValue {
			if v.weights == nil {
				v.weights = map[*ast.Value]weight{}
			}
			v.weights[value] = found
		}
		if !evaluated(value) {
			return
		}
		v.spent += found.work
		if v.spent > mostValues {
			report(core.Message("The values of the document take too long to be checked: send them in variables, or nest them less."),
				core.At(value.Position))
			// This rule comes before the one that would evaluate it.
			value.ExpectedType = nil
			end(w)
		}
	})
}

// values are what lists and objects weigh. A walker comes to what is in a value before the value.
type values struct {
	weights map[*ast.Value]weight
	spent   int
}

// weight is how long the text of a value is, and what it takes to write that: all of it again at each level.
type weight struct{ text, work int }

func (v *values) of(value *ast.Value) weight {
	found := weight{text: bytesPerValue + len(value.Raw)}
	for _, child := range value.Children {
		in := v.known(child.Value)
		found.text += len(child.Name) + in.text
		found.work += in.work
	}
	if definition := value.VariableDefinition; value.Kind == ast.Variable && definition != nil && definition.DefaultValue != nil {
		in := v.known(definition.DefaultValue)
		found.text += in.text
		found.work += in.work
	}
	found.work += found.text
	return found
}

func (v *values) known(value *ast.Value) weight {
	if found, known := v.weights[value]; known {
		return found
	}
	return v.of(value)
}

// evaluated says whether ValuesOfCorrectType evaluates a value.
func evaluated(value *ast.Value) bool {
	if value.Definition == nil || value.ExpectedType == nil {
		return false
	}
	return value.Definition.Kind != ast.Scalar || value.Definition.OneOf("Int", "Float", "String", "Boolean", "ID")
}
