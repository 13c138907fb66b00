package report

import (
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/pricing"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// costsJSON is the JSON of the sub-command cost.
type costsJSON struct {
	Version    int             `json:"version"`
	Operations []operationJSON `json:"operations"`
	// Broken are files that cannot be read or parsed.
	Broken  []*cli.FileError `json:"broken,omitempty"`
	MaxCost int64            `json:"maxCost,omitempty"`
	Failed  bool             `json:"failed"`
}

// operationJSON is an operation and its price. An operation without a price has no points.
type operationJSON struct {
	Name             string           `json:"name"`
	Kind             string           `json:"kind"`
	File             string           `json:"file"`
	Line             int              `json:"line"`
	Column           int              `json:"column"`
	Points           *int64           `json:"points,omitempty"`
	Type             float64          `json:"type"`
	Field            float64          `json:"field"`
	Base             float64          `json:"base"`
	Free             bool             `json:"free,omitempty"`
	Approximate      bool             `json:"approximate,omitempty"`
	Unmerged         bool             `json:"unmerged,omitempty"`
	OverMaxCost      bool             `json:"overMaxCost,omitempty"`
	MissingVariables []string         `json:"missingVariables,omitempty"`
	AssumedVariables []string         `json:"assumedVariables,omitempty"`
	ChosenVariables  []string         `json:"chosenVariables,omitempty"`
	Problems         []*cli.FileError `json:"problems,omitempty"`
	Calls            []cost.Entry     `json:"calls,omitempty"`
	Omitted          int              `json:"omitted,omitempty"`
	OmittedType      float64          `json:"omittedType,omitempty"`
	OmittedField     float64          `json:"omittedField,omitempty"`
}

func operation(r pricing.Result) operationJSON {
	op := operationJSON{
		Name:             r.Operation.Name,
		Kind:             string(r.Operation.Definition.Operation),
		File:             r.Operation.File,
		Line:             r.Operation.Line,
		Column:           r.Operation.Column,
		MissingVariables: r.Missing,
		AssumedVariables: r.Assumed,
		ChosenVariables:  r.Chosen,
		Problems:         r.Problems,
		Unmerged:         r.Unmerged,
	}
	if r.Fatal {
		return op
	}
	op.Points = &r.Points
	op.Type, op.Field, op.Base = finite(r.Cost.Type), finite(r.Cost.Field), finite(r.Cost.Base)
	op.Free, op.Approximate = r.Cost.Free, r.Cost.Approximate
	op.Calls, op.Omitted = r.Breakdown.Entries, r.Breakdown.Omitted
	op.OmittedType, op.OmittedField = finite(r.Breakdown.OmittedType), finite(r.Breakdown.OmittedField)
	return op
}

func (c Costs) json() costsJSON {
	out := costsJSON{Version: cli.FormatVersion, Operations: []operationJSON{}, Broken: c.Broken, MaxCost: c.MaxCost, Failed: c.Failed()}
	for _, r := range c.shown() {
		op := operation(r)
		op.OverMaxCost = c.Over(r)
		out.Operations = append(out.Operations, op)
	}
	return out
}
