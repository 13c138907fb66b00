package cost

import "slices"

// broken finds the first rule that a call breaks which really happens, going down from the root. It
// returns nil if only calls break rules that the variables exclude.
func (p *Plan) broken(m *machine) error {
	s := search{plan: p, m: m, seen: make([]bool, len(p.nodes))}
	if s.visit(p.root) {
		return s.found
	}
	return nil
}

type search struct {
	plan  *Plan
	m     *machine
	seen  []bool
	path  []string
	found *LimitError
}

func (s *search) visit(r ref) bool {
	if r.isFixed() || s.seen[r.node] {
		return false
	}
	s.seen[r.node] = true
	n := &s.plan.nodes[r.node]
	switch n.kind {
	case nodeCall:
		c := &s.plan.calls[n.lo]
		if !s.m.holds[c.condition] {
			return false
		}
		s.path = append(s.path, c.key)
		if given := s.m.given(s.plan, c.lookupsLo, c.lookupsHi) + int(c.given); c.rule && given != 1 {
			return s.report(RuleSlicingArguments, c.info, c.info.sizes.reason, given, 1)
		}
		if s.visit(c.child) {
			return true
		}
		s.path = s.path[:len(s.path)-1]
		return false
	case nodeEntities:
		e := &s.plan.entities[n.lo]
		if !s.m.holds[e.call.condition] {
			return false
		}
		s.path = append(s.path, e.call.key)
		if given := s.m.represented(e); given > e.max {
			return s.report(RuleRepresentations, e.call.info, "there are too many representations", given, e.max)
		}
		s.path = s.path[:len(s.path)-1]
		return s.visit(e.unknown)
	case nodeFunction:
		return s.visit(s.plan.functions[n.lo].ordinary)
	case nodeGate:
		return s.m.holds[n.condition] && s.visit(s.plan.edges[n.lo])
	default:
		return slices.ContainsFunc(s.plan.edges[n.lo:n.hi], s.visit)
	}
}

func (s *search) report(rule Rule, info *fieldInfo, reason string, given, allowed int) bool {
	s.found = &LimitError{Rule: rule, Coordinate: info.coordinate, Path: slices.Clone(s.path), Reason: reason, Given: given, Allowed: allowed}
	return true
}
