package tiers

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// decoder turns the tree of a document into a policy. Unlike a decoder by reflection it goes on
// after a mistake, and knows where each key stands.
type decoder struct {
	root *yaml.Node
	// positions are where keys stand, once somebody asks: most documents have no mistakes.
	positions map[path]position
	findings  []finding
	// broken has the paths that were reported here: nothing that follows from them is reported too.
	broken map[path]bool
	// spoiled has the mappings with a broken entry, which may be what they say.
	spoiled map[path]bool
	// misspelled has the mappings with an unknown key, which may be the one that is missing.
	misspelled map[path]bool
}

type position struct{ line, column int }

func newDecoder(root *yaml.Node) *decoder {
	return &decoder{
		root:       root,
		broken:     make(map[path]bool),
		spoiled:    make(map[path]bool),
		misspelled: make(map[path]bool),
	}
}

// field is a key of a mapping with a fixed set of keys, and what reads its value.
type field struct {
	key  string
	read func(path, *yaml.Node)
}

func (d *decoder) policy() Policy {
	var p Policy
	versioned := false
	d.fields("", d.root, []field{
		{"version", func(at path, node *yaml.Node) { p.Version, versioned = d.version(at, node), true }},
		{"default", d.text(&p.Default)},
		{"mode", d.text(&p.Mode)},
		{"enforceFrom", d.date(&p.EnforceFrom)},
		{"tiers", func(at path, node *yaml.Node) { p.Tiers = collect(d, at, node, d.tier) }},
		{"parameters", func(at path, node *yaml.Node) { p.Parameters = collect(d, at, node, d.parameter) }},
		{"custom", func(at path, node *yaml.Node) { p.Custom = collect(d, at, node, d.custom) }},
		{"backstop", d.backstop(&p.Backstop)},
		{"tenants", func(at path, node *yaml.Node) { p.Tenants = collect(d, at, node, d.exception) }},
	})
	if !versioned && !d.broken[""] && !d.misspelled[""] {
		d.findings = append(d.findings, finding{path: path("").to("version"), problem: versionProblem})
	}
	return p
}

const versionProblem = "the version of the document is required; 1 fits"

func (d *decoder) version(at path, node *yaml.Node) int {
	var version int64
	d.number(&version)(at, node)
	if version == 0 && !d.broken[at] {
		d.fail(at, versionProblem)
	}
	// A number that an int does not hold must not become one that fits.
	return int(max(-1, min(version, 1<<30)))
}

func (d *decoder) tier(at path, node *yaml.Node) Tier {
	var t Tier
	d.fields(at, node, []field{
		{"mode", d.text(&t.Mode)},
		{"enforceFrom", d.date(&t.EnforceFrom)},
		{"enforcement", d.enforcement(&t.Enforcement)},
		{"failMode", d.text(&t.FailMode)},
		{"store", d.text(&t.Store)},
		{"maxCost", d.number(&t.MaxCost)},
		{"limits", func(at path, node *yaml.Node) { t.Limits = collect(d, at, node, d.limit) }},
		{"teams", func(at path, node *yaml.Node) { t.Teams = pointer(d.owner(at, node)) }},
		{"users", func(at path, node *yaml.Node) { t.Users = pointer(d.user(at, node)) }},
		{"operations", func(at path, node *yaml.Node) { t.Operations = collect(d, at, node, d.operation) }},
		{"unlimited", d.flag(&t.Unlimited)},
		{"blocked", d.flag(&t.Blocked)},
		{"costReport", d.flag(&t.CostReport)},
		{"costValidate", d.flag(&t.CostValidate)},
		{"hide", func(at path, node *yaml.Node) { t.Hide = d.hide(at, node) }},
		{"usage", d.text(&t.Usage)},
		{"lease", d.text(&t.Lease)},
		{"throttle", d.throttle(&t.Throttle)},
	})
	return t
}

func (d *decoder) exception(at path, node *yaml.Node) Exception {
	var x Exception
	if tier, only := onlyTier(node); only {
		// Most of a large policy is this.
		x.Tier = tier
		return x
	}
	d.fields(at, node, []field{
		{"tier", d.text(&x.Tier)},
		{"mode", d.text(&x.Mode)},
		{"enforceFrom", d.date(&x.EnforceFrom)},
		{"failMode", d.text(&x.FailMode)},
		{"store", d.text(&x.Store)},
		{"times", d.factor(&x.Times)},
		{"percent", d.factor(&x.Percent)},
		{"maxCost", d.number(&x.MaxCost)},
		{"limits", func(at path, node *yaml.Node) { x.Limits = collect(d, at, node, d.limit) }},
		{"teams", func(at path, node *yaml.Node) { x.Teams = pointer(d.owners(at, node)) }},
		{"users", func(at path, node *yaml.Node) { x.Users = pointer(d.users(at, node)) }},
		{"operations", func(at path, node *yaml.Node) { x.Operations = collect(d, at, node, d.operation) }},
		{"custom", func(at path, node *yaml.Node) { x.Custom = collect(d, at, node, d.custom) }},
		{"unlimited", d.flag(&x.Unlimited)},
		{"blocked", d.flag(&x.Blocked)},
		{"costReport", d.flag(&x.CostReport)},
		{"costValidate", d.flag(&x.CostValidate)},
		{"hide", func(at path, node *yaml.Node) { x.Hide = d.hide(at, node) }},
		{"usage", d.text(&x.Usage)},
		{"lease", d.text(&x.Lease)},
		{"throttle", d.throttle(&x.Throttle)},
	})
	return x
}

func (d *decoder) hide(at path, node *yaml.Node) *Hide {
	var h Hide
	d.fields(at, node, []field{
		{"cost", d.flag(&h.Cost)},
		{"limits", d.flag(&h.Limits)},
		{"remaining", d.flag(&h.Remaining)},
		{"owners", d.flag(&h.Owners)},
	})
	return &h
}

func (d *decoder) operation(at path, node *yaml.Node) OperationRule {
	var o OperationRule
	d.fields(at, node, []field{
		{"mode", d.text(&o.Mode)},
		{"enforceFrom", d.date(&o.EnforceFrom)},
		{"failMode", d.text(&o.FailMode)},
		{"maxCost", d.number(&o.MaxCost)},
		{"instead", d.flag(&o.Instead)},
		{"limits", func(at path, node *yaml.Node) { o.Limits = collect(d, at, node, d.limit) }},
		{"units", func(at path, node *yaml.Node) { o.Units = collect(d, at, node, d.paths) }},
	})
	return o
}

func (d *decoder) user(at path, node *yaml.Node) UserRule {
	var u UserRule
	d.fields(at, node, []field{
		{"mode", d.text(&u.Mode)},
		{"enforceFrom", d.date(&u.EnforceFrom)},
		{"failMode", d.text(&u.FailMode)},
		{"limits", func(at path, node *yaml.Node) { u.Limits = collect(d, at, node, d.limit) }},
		{"operations", func(at path, node *yaml.Node) { u.Operations = collect(d, at, node, d.owner) }},
	})
	return u
}

func (d *decoder) users(at path, node *yaml.Node) UserException {
	var u UserException
	d.fields(at, node, []field{
		{"mode", d.text(&u.Mode)},
		{"enforceFrom", d.date(&u.EnforceFrom)},
		{"failMode", d.text(&u.FailMode)},
		{"limits", func(at path, node *yaml.Node) { u.Limits = collect(d, at, node, d.limit) }},
		{"operations", func(at path, node *yaml.Node) { u.Operations = collect(d, at, node, d.owner) }},
		{"byName", func(at path, node *yaml.Node) { u.ByName = collect(d, at, node, d.owner) }},
	})
	return u
}

func (d *decoder) owner(at path, node *yaml.Node) OwnerRule {
	var o OwnerRule
	d.fields(at, node, []field{
		{"mode", d.text(&o.Mode)},
		{"enforceFrom", d.date(&o.EnforceFrom)},
		{"failMode", d.text(&o.FailMode)},
		{"limits", func(at path, node *yaml.Node) { o.Limits = collect(d, at, node, d.limit) }},
	})
	return o
}

func (d *decoder) owners(at path, node *yaml.Node) OwnerException {
	var o OwnerException
	d.fields(at, node, []field{
		{"mode", d.text(&o.Mode)},
		{"enforceFrom", d.date(&o.EnforceFrom)},
		{"failMode", d.text(&o.FailMode)},
		{"limits", func(at path, node *yaml.Node) { o.Limits = collect(d, at, node, d.limit) }},
		{"byName", func(at path, node *yaml.Node) { o.ByName = collect(d, at, node, d.owner) }},
	})
	return o
}

func pointer[T any](value T) *T { return &value }

// limit returns nil for null.
func (d *decoder) limit(at path, node *yaml.Node) *Limit {
	if isNull(node) {
		return nil
	}
	var l Limit
	d.fields(at, node, []field{
		{"unit", d.text(&l.Unit)},
		{"capacity", d.number(&l.Capacity)},
		{"refill", d.number(&l.Refill)},
		{"per", func(at path, node *yaml.Node) {
			var text string
			d.text(&text)(at, node)
			if d.broken[at] {
				return
			}
			if err := l.Per.UnmarshalText([]byte(text)); err != nil {
				d.fail(at, echo(text)+" is "+err.Error())
			}
		}},
		{"window", d.text(&l.Window)},
		{"anchorDay", d.number(&l.AnchorDay)},
		{"anchorMonth", d.number(&l.AnchorMonth)},
		{"zone", d.text(&l.Zone)},
		{"by", d.text(&l.By)},
		{"across", d.flag(&l.Across)},
		{"soft", d.flag(&l.Soft)},
		{"mode", d.text(&l.Mode)},
		{"enforceFrom", d.date(&l.EnforceFrom)},
		{"failMode", d.text(&l.FailMode)},
	})
	return &l
}

// collect reads a mapping whose keys are names. Entries that are broken are kept, so that what
// refers to them is not reported as unknown.
func collect[T any](d *decoder, at path, node *yaml.Node, read func(path, *yaml.Node) T) map[string]T {
	entries := make(map[string]T)
	d.mapping(at, node, func(name string, at path, _, value *yaml.Node) {
		entries[name] = read(at, value)
	})
	return entries
}

// fields reads a mapping whose keys are fixed.
func (d *decoder) fields(at path, node *yaml.Node, known []field) {
	d.mapping(at, node, func(name string, child path, key, value *yaml.Node) {
		i := slices.IndexFunc(known, func(f field) bool { return f.key == name })
		if i >= 0 {
			known[i].read(child, value)
			return
		}
		keys := make([]string, len(known))
		for i := range known {
			keys[i] = known[i].key
		}
		d.misspelled[at] = true
		d.fail(child, "unknown key; "+strings.Join(keys, ", ")+" fit")
	})
}

// mapping visits the entries of a mapping whose keys are names and unique.
func (d *decoder) mapping(at path, node *yaml.Node, visit func(name string, at path, key, value *yaml.Node)) {
	if node.Kind != yaml.MappingNode {
		d.fail(at, kindOf(node)+"; a mapping fits")
		return
	}
	seen := newSeenKeys(node)
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		here := position{key.Line, key.Column}
		if !isKey(key) {
			d.findings = append(d.findings, finding{path: at, problem: "the key is " + kindOf(key) + "; text fits", at: here})
			d.misspelled[at] = true
			continue
		}
		child := at.to(key.Value)
		if first := seen.first(node.Content[:i], key); first != nil {
			problem := fmt.Sprintf("duplicate key; the first stands in line %d", first.Line)
			d.findings = append(d.findings, finding{path: child, problem: problem, at: here})
			continue
		}
		visit(key.Value, child, key, value)
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
		_, found := d.position(f.path)
		return !found && (d.misspelled[f.path.parent()] || d.broken[f.path.parent()])
	case empty:
		return d.misspelled[f.path] || d.spoiled[f.path]
	}
	return false
}

// locate returns the position of a path, or of what it should stand in.
func (d *decoder) locate(at path) position {
	for {
		if found, ok := d.position(at); ok || at == "" {
			return found
		}
		at = at.parent()
	}
}
