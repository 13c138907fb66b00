package cost

import "slices"

// Variables returns the names of the variables on which the price can depend, or whether a limit is broken,
// sorted. No other variable changes what [Plan.Evaluate] returns. The lists whose elements
// [Limits.MaxListNodes] counts are those of the price, also where they cost nothing.
func (p *Plan) Variables() []string {
	var names []string
	for i := range p.variables {
		names = append(names, p.variables[i].name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
