package show

import (
	"math"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// breakdownOf returns the breakdown as clients read it.
func breakdownOf(b *cost.Breakdown) *ratelimitclient.Breakdown {
	if b == nil {
		return nil
	}
	told := &ratelimitclient.Breakdown{
		Cost: ratelimitclient.BreakdownCost{
			Base: b.Cost.Base, Type: finite(b.Cost.Type), Field: finite(b.Cost.Field),
		},
		Entries: make([]ratelimitclient.BreakdownEntry, len(b.Entries)),
		Omitted: b.Omitted, OmittedType: finite(b.OmittedType), OmittedField: finite(b.OmittedField),
	}
	for i := range b.Entries {
		entry := &b.Entries[i]
		told.Entries[i] = ratelimitclient.BreakdownEntry{
			Path: entry.Path, Coordinate: entry.Coordinate, Calls: entry.Calls, Weight: entry.Weight,
			Arguments: entry.Arguments, Alias: entry.Alias, TypeWeight: entry.TypeWeight,
			Type: entry.Type, Field: entry.Field, Whole: entry.Whole,
			TypeClamped: entry.TypeClamped, FieldClamped: entry.FieldClamped,
			Complexity: entry.Complexity,
		}
		for _, argument := range entry.ArgumentCosts {
			told.Entries[i].ArgumentCosts = append(told.Entries[i].ArgumentCosts,
				ratelimitclient.BreakdownArgumentCost{Coordinate: argument.Coordinate, Cost: argument.Cost})
		}
		if list := entry.List; list != nil {
			told.Entries[i].List = &ratelimitclient.BreakdownList{
				Size: list.Size, Rule: string(list.Rule), Coordinate: list.Coordinate, Inherited: list.Inherited,
				Argument: list.Argument, Source: string(list.Source), Variable: list.Variable,
			}
		}
	}
	return told
}

// finite is for JSON, which has no infinity.
func finite(x float64) float64 { return min(x, math.MaxFloat64) }
