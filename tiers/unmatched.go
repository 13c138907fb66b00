package tiers

import "strings"

// Unmatched returns the operation rules that no operation falls under where there are these root fields alone, by coordinates such as Mutation.checkout: those of
// tiers, of exceptions of tenants and of the backstop. They hold all the same, because a policy may be older or newer than the schema of
// a server, and one policy may be that of several servers. Rules for documents are not among them. There are at most 100, and of exceptions one for each spelling.
func (s *Snapshot) Unmatched(fields []string) []Warning {
	return s.family.unmatched(fields)
}

// namedOperation is an operation rule, and where it stands.
type namedOperation struct {
	spelling string
	at       finding
	place    Mistake
}

// unmatched returns the rules that match none of the fields.
func (f *family) unmatched(fields []string) []Warning {
	var all []Warning
	byRoot := make(map[string][]string)
	for _, field := range fields {
		byRoot[rootType(field)] = append(byRoot[rootType(field)], field)
	}
	for i := range f.operations {
		if len(all) >= maxWarnings {
			break
		}
		named := &f.operations[i]
		if anyMatches(named.spelling, byRoot[rootType(named.spelling)]) {
			continue
		}
		warning := Warning(named.place)
		warning.Problem = "no root field of the schema matches, so that nothing falls under the rule" + meant(named.spelling, fields)
		all = append(all, warning)
	}
	return all
}

func anyMatches(pattern string, fields []string) bool {
	for _, field := range fields {
		if matches(pattern, field) {
			return true
		}
	}
	return false
}

// meant asks whether a field was meant whose name is a slip away.
func meant(spelling string, fields []string) string {
	if strings.Contains(spelling, "*") {
		return ""
	}
	for _, field := range fields {
		if similar(spelling, field) {
			return "; is " + echo(field) + " meant?"
		}
	}
	return ""
}

// ruled is a tier, or the exception of a tenant, with its operation rules and those of its users.
type ruled struct {
	at         path
	exception  bool
	operations map[string]OperationRule
	personal   map[string]OwnerRule
}

// eachOperations yields each tier, and then each exception.
func (p *Policy) eachOperations(yield func(ruled)) {
	for _, name := range sorted(p.Tiers) {
		_, personal := p.Tiers[name].Users.split()
		yield(ruled{path("").to("tiers").to(name), false, p.Tiers[name].Operations, personal})
	}
	for _, name := range sorted(p.Tenants) {
		_, personal := p.Tenants[name].Users.split()
		yield(ruled{path("").to("tenants").to(name), true, p.Tenants[name].Operations, personal})
	}
}

// operations returns the rules for root fields: all of tiers and of the backstop, and of exceptions the first of each spelling that these do not have.
func (p *Policy) operations() []namedOperation {
	var all, ofTenants []namedOperation
	p.eachOperations(func(r ruled) {
		into := &all
		if r.exception {
			into = &ofTenants
		}
		*into = appendOperations(*into, r.at.to("operations"), r.operations)
		*into = appendOperations(*into, r.at.to("users").to("operations"), r.personal)
	})
	if b := p.Backstop; b != nil {
		all = appendOperations(all, path("").to("backstop").to("operations"), b.Operations)
	}
	known := make(map[string]bool)
	for i := range all {
		known[all[i].spelling] = true
	}
	for _, named := range ofTenants {
		if !known[named.spelling] {
			known[named.spelling] = true
			all = append(all, named)
		}
	}
	return all
}

func appendOperations[T any](all []namedOperation, at path, rules map[string]T) []namedOperation {
	for _, spelling := range sorted(rules) {
		if !isDocument(spelling) {
			all = append(all, namedOperation{spelling: spelling, at: finding{path: at.to(spelling)}})
		}
	}
	return all
}
