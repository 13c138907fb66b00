package cost

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// valueWeights are the weights that an argument or input field has with certain values. It is immutable.
type valueWeights struct {
	// typeName is the declared type of one value.
	typeName string
	// weights are by the spelling of the value: the text of a string, an enum value or an ID, true and false, an
	// integer in decimal digits.
	weights map[string]float64
	// other is the weight with any other value, and with null. dearest is the largest of all.
	other, dearest float64
	// longest is how long the longest value is that has a weight.
	longest int
	// spelled tells them from others.
	spelled string
}

// of is the weight with one value as a variable carries it, which is no list. A value that cannot be told has the
// dearest.
func (w *valueWeights) of(value any) float64 {
	var digits [20]byte
	var text string
	switch value := value.(type) {
	case nil:
		return w.other
	case string:
		text = value
	case json.Number:
		text = string(value)
	case bool:
		text = strconv.FormatBool(value)
	case int64:
		return w.spelledAs(strconv.AppendInt(digits[:0], value, 10))
	default:
		v := reflect.ValueOf(value)
		switch {
		case v.CanInt():
			return w.spelledAs(strconv.AppendInt(digits[:0], v.Int(), 10))
		case v.CanUint():
			return w.spelledAs(strconv.AppendUint(digits[:0], v.Uint(), 10))
		case v.Kind() == reflect.String:
			text = v.String()
		case v.Kind() == reflect.Bool:
			text = strconv.FormatBool(v.Bool())
		default:
			return w.dearest
		}
	}
	switch w.typeName {
	case "Int":
		if len(text) > maxDigits {
			return w.dearest
		}
		// A server reads numbers in strings, with signs and zeros before them.
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return w.dearest
		}
		return w.spelledAs(strconv.AppendInt(digits[:0], n, 10))
	case "Boolean":
		if text != "true" && text != "false" {
			return w.dearest
		}
	}
	// A long text is not read, because a document may use it in hundreds of calls.
	if len(text) > w.longest {
		return w.other
	}
	if weight, ok := w.weights[text]; ok {
		return weight
	}
	return w.other
}

func (w *valueWeights) spelledAs(text []byte) float64 {
	if w.typeName == "Boolean" {
		return w.dearest
	}
	if weight, ok := w.weights[string(text)]; ok {
		return weight
	}
	return w.other
}

// most is the weight with a value that nobody knows.
func (f *inputField) most() float64 {
	if f.values == nil {
		return f.weight
	}
	return f.values.dearest
}

// valueWeights returns the weights of values of an argument or input field that the configuration gives, else its
// directives; nil if there are none, or if one is wrong.
func (b *builder) valueWeights(f *inputField, directives ast.DirectiveList) *valueWeights {
	given, ok := b.cfg.ValueWeights[f.coordinate]
	before := len(b.errs)
	if ok {
		b.used["value "+f.coordinate] = true
	} else {
		given = b.directiveValues(f.coordinate, directives)
	}
	if len(given) == 0 {
		return nil
	}
	w := &valueWeights{typeName: f.declared.Name(), weights: make(map[string]float64, len(given)), other: f.weight, dearest: f.weight}
	def := b.schema.Types[w.typeName]
	if f.typ != nil || w.typeName == "Float" || def == nil {
		b.fail(f.coordinate, "values of type %s have no weights: only those of an enum, Int, Boolean, ID, String or a scalar that is text", w.typeName)
		return nil
	}
	var spelled []string
	for _, value := range slices.Sorted(maps.Keys(given)) {
		weight := given[value]
		switch {
		case !validWeight(weight):
			b.fail(f.coordinate, "weight %v of the value %s is not a number between -2^53 and 2^53", weight, value)
		case !possibleValue(def, value):
			b.fail(f.coordinate, "%s is no value of type %s", value, w.typeName)
		}
		w.weights[value] = weight
		w.dearest = max(w.dearest, weight)
		w.longest = max(w.longest, len(value))
		spelled = append(spelled, fmt.Sprintf("%q %v", value, weight))
	}
	if len(b.errs) > before {
		return nil
	}
	w.spelled = strings.Join(spelled, " ")
	return w
}

// possibleValue says whether a value can be of the type in the spelling in which it is compared.
func possibleValue(def *ast.Definition, value string) bool {
	switch {
	case def.Kind == ast.Enum:
		return def.EnumValues.ForName(value) != nil
	case def.Name == "Boolean":
		return value == "true" || value == "false"
	case def.Name == "Int":
		n, err := strconv.ParseInt(value, 10, 64)
		return err == nil && strconv.FormatInt(n, 10) == value
	default:
		return true
	}
}

// directiveValues reads the @costWhen directives of an argument or input field.
func (b *builder) directiveValues(coordinate string, directives ast.DirectiveList) map[string]float64 {
	var weights map[string]float64
	for _, directive := range directives.ForNames("costWhen") {
		value := directive.Arguments.ForName("value")
		if value == nil || value.Value == nil || value.Value.Kind != ast.StringValue && value.Value.Kind != ast.BlockValue {
			b.fail(coordinate, "@costWhen has no value")
			continue
		}
		weight, reason := weightArgument("costWhen", directive)
		if _, twice := weights[value.Value.Raw]; twice {
			reason = "@costWhen gives the value " + value.Value.Raw + " twice"
		}
		if reason != "" {
			b.fail(coordinate, "%s", reason)
		}
		weights = remember(weights, value.Value.Raw, weight)
	}
	return weights
}
