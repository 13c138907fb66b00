package tiers

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// decoder turns the tree of a document into a policy, whose fields are found by their yaml tags. Unlike the decoder of the
// library it goes on after a mistake, and knows where each key stands.
type decoder struct {
	root *yaml.Node
	// lines are where keys stand.
	lines    lines
	findings []finding
	// broken has the paths that were reported here: nothing that follows from them is reported too.
	broken map[path]bool
	// spoiled has the mappings with a broken entry, which may be what they say.
	spoiled map[path]bool
	// misspelled has the mappings with an unknown key, which may be the one that is missing.
	misspelled map[path]bool
	// fieldsOf are those of the types that were met.
	fieldsOf map[reflect.Type][]field
}

func newDecoder(root *yaml.Node) *decoder {
	return &decoder{
		root:       root,
		lines:      linesOf(root),
		broken:     make(map[path]bool),
		spoiled:    make(map[path]bool),
		misspelled: make(map[path]bool),
		fieldsOf:   make(map[reflect.Type][]field),
	}
}

const versionProblem = "the version of the document is required; 1 fits"

func (d *decoder) policy() Policy {
	var p Policy
	d.value("", d.root, reflect.ValueOf(&p))
	_, versioned := d.lines.of(path("").to("version"))
	if !versioned && !d.broken[""] && !d.misspelled[""] {
		d.findings = append(d.findings, finding{path: path("").to("version"), problem: versionProblem})
	}
	return p
}

// value reads a node into what a pointer leads to. A part that is broken is kept as far as it was read, so that what refers
// to it is not reported as unknown.
func (d *decoder) value(at path, node *yaml.Node, pointer reflect.Value) {
	switch into := pointer.Interface().(type) {
	case *string:
		d.text(at, node, into)
	case *bool:
		d.flag(at, node, into)
	case *int64:
		d.number(at, node, into)
	case *int:
		d.version(at, node, into)
	case *Factor:
		d.factor(at, node, into)
	case *Period:
		d.period(at, node, into)
	case *[]string:
		d.paths(at, node, into)
	default:
		d.composite(at, node, pointer.Elem())
	}
}

// composite reads a mapping.
func (d *decoder) composite(at path, node *yaml.Node, into reflect.Value) {
	switch into.Kind() {
	case reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		d.value(at, node, into)
	case reflect.Map:
		d.names(at, node, into)
	default:
		d.fields(at, node, into)
	}
}

// names reads a mapping whose keys are names. Null is an entry that is nil, where entries can be.
func (d *decoder) names(at path, node *yaml.Node, into reflect.Value) {
	into.Set(reflect.MakeMap(into.Type()))
	d.mapping(at, node, func(name string, child path, value *yaml.Node) {
		entry := reflect.New(into.Type().Elem())
		if entry.Elem().Kind() != reflect.Pointer || !isNull(value) {
			d.value(child, value, entry)
		}
		into.SetMapIndex(reflect.ValueOf(name), entry.Elem())
	})
}

// field is a key that fits, and where its value belongs.
type field struct {
	key   string
	index []int
}

// fields reads a mapping whose keys are fixed.
func (d *decoder) fields(at path, node *yaml.Node, into reflect.Value) {
	known := d.known(into.Type())
	d.mapping(at, node, func(name string, child path, value *yaml.Node) {
		i := slices.IndexFunc(known, func(f field) bool { return f.key == name })
		if i < 0 {
			keys := make([]string, len(known))
			for i := range known {
				keys[i] = known[i].key
			}
			d.misspelled[at] = true
			d.fail(child, "unknown key; "+strings.Join(keys, ", ")+" fit")
			return
		}
		part := into.FieldByIndex(known[i].index)
		if name == "enforceFrom" && isDate(value) {
			part.SetString(value.Value)
			return
		}
		d.value(child, value, part.Addr())
	})
}

// known returns the fields of a type, with those of the types that it embeds.
func (d *decoder) known(of reflect.Type) []field {
	fields, met := d.fieldsOf[of]
	if met {
		return fields
	}
	for _, f := range reflect.VisibleFields(of) {
		if !f.Anonymous {
			key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			fields = append(fields, field{key, f.Index})
		}
	}
	d.fieldsOf[of] = fields
	return fields
}

// mapping visits the entries of a mapping whose keys are names and unique.
func (d *decoder) mapping(at path, node *yaml.Node, visit func(name string, at path, value *yaml.Node)) {
	if node.Kind != yaml.MappingNode {
		d.fail(at, kindOf(node)+"; a mapping fits")
		return
	}
	seen := make(map[string]*yaml.Node, len(node.Content)/2)
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		here := position{key.Line, key.Column}
		if !isKey(key) {
			d.findings = append(d.findings, finding{path: at, problem: "the key is " + kindOf(key) + "; text fits", at: here})
			d.misspelled[at] = true
			continue
		}
		child := at.to(key.Value)
		if first := seen[key.Value]; first != nil {
			problem := fmt.Sprintf("duplicate key; the first stands in line %d", first.Line)
			d.findings = append(d.findings, finding{path: child, problem: problem, at: here})
			continue
		}
		seen[key.Value] = key
		visit(key.Value, child, value)
	}
}

// fail reports a mistake in the form of the document.
func (d *decoder) fail(at path, problem string) {
	d.broken[at] = true
	d.spoiled[at.parent()] = true
	d.findings = append(d.findings, finding{path: at, problem: problem})
}

// mistakes returns the findings of the decoder and those of the compiler, without those that only
// follow from another, each with its position.
func (d *decoder) mistakes(compiled []finding) []Mistake {
	var mistakes []Mistake
	for _, f := range d.findings {
		mistakes = append(mistakes, d.mistake(f))
	}
	for _, f := range compiled {
		if !d.follows(f) {
			mistakes = append(mistakes, d.mistake(f))
		}
	}
	return mistakes
}

// mistake says where a finding stands.
func (d *decoder) mistake(f finding) Mistake {
	at := f.at
	if at == (position{}) {
		at = d.locate(f.path)
	}
	return Mistake{Line: at.line, Column: at.column, Path: f.path.String(), Problem: f.problem}
}

// follows reports whether a finding of the compiler follows from one of the decoder.
func (d *decoder) follows(f finding) bool {
	for at := f.path; ; at = at.parent() {
		if d.broken[at] && (at != "" || f.path == "") {
			return true
		}
		if at == "" {
			break
		}
	}
	switch f.kind {
	case wrong:
		return false
	case missing:
		_, found := d.lines.of(f.path)
		return !found && (d.misspelled[f.path.parent()] || d.broken[f.path.parent()])
	case empty:
		return d.misspelled[f.path] || d.spoiled[f.path]
	}
	return false
}

// locate returns the position of a path, or of what it should stand in.
func (d *decoder) locate(at path) position {
	for ; at != ""; at = at.parent() {
		if found, ok := d.lines.of(at); ok {
			return found
		}
	}
	return position{d.root.Line, d.root.Column}
}
