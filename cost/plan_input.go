package cost

import (
	"encoding/json"
	"math"
)

// visit counts values that are read. It says whether the evaluation may read them.
func (m *machine) visit(n int) bool {
	if m.left >= 0 {
		m.left -= n
	}
	return m.left >= 0
}

// inside returns what the input fields in a variable cost. It is found out when the first call asks,
// because a variable may be large, and a document may use it in hundreds of calls.
func (m *machine) inside(t *tables, at int32) float64 {
	if at < 0 {
		return 0
	}
	in := &m.insides[at]
	if !in.known {
		*in = insideCost{m.value(t.insides[at].typ, m.values[t.insides[at].slot].value, 0), true}
	}
	return in.cost
}

// value returns what the fields inside a value of the type cost, given as variables carry it: a map
// for an object, a slice for a list.
func (m *machine) value(t *inputType, value any, depth int) float64 {
	if t == nil || len(t.costly) == 0 || value == nil {
		return 0
	}
	if depth > maxDepth || !m.visit(1) {
		return math.Inf(1)
	}
	if object, ok := value.(map[string]any); ok {
		return m.object(t, object, depth)
	}
	total := 0.0
	if values, ok := listOf(value); ok {
		for i := 0; i < values.len() && m.left >= 0; i++ {
			if element := values.at(i); element != nil {
				total += m.value(t, element, depth+1)
			} else {
				m.visit(1)
			}
		}
	}
	return total
}

// object looks for each field that can cost something, given or not.
func (m *machine) object(t *inputType, value map[string]any, depth int) float64 {
	if !m.visit(len(t.costly)) {
		return math.Inf(1)
	}
	total := 0.0
	for _, field := range t.costly {
		if given, ok := value[field.name]; ok {
			if field.values != nil {
				total += m.weigh(field.values, given, depth+1)
			} else {
				total += field.weight + m.value(field.typ, given, depth+1)
			}
		} else {
			total += field.absent
		}
	}
	return total
}

// weigh is the weight with a value of a variable. In a list each element has the weight that it has alone.
func (m *machine) weigh(w *valueWeights, value any, depth int) float64 {
	switch value.(type) {
	case nil, string, bool, int64, json.Number:
		// Most values are no lists, and most lists are []any.
		return w.of(value)
	}
	values, isList := listOf(value)
	if !isList {
		return w.of(value)
	}
	if depth > maxDepth || !m.visit(values.len()) {
		return math.Inf(1)
	}
	total := 0.0
	for i := range values.len() {
		total += m.weigh(w, values.at(i), depth+1)
	}
	return total
}
