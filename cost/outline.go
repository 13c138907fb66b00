package cost

import "github.com/vektah/gqlparser/v2/ast"

// Outline is the form of an operation for reading: the same selections as its [Plan] prices, but with
// nothing folded, so that [Outline.Explain] can say what each call costs and [Outline.Tally] can
// price a response. It is immutable, safe for concurrent use, and holds nothing of the document but
// strings, and the arguments that [Config.Complexity] is given.
//
// Like the plan it shares what is below equal selections, so its size is bounded by
// [Config.WorkLimit] even where the operation unfolds into exponentially many calls.
type Outline struct {
	*form
	plan *Plan
	// index finds the calls of large sets, by the set.
	index map[int32]map[string]int32
	// query are the classes of what an operation returns, which is one.
	query []typeClass
	// told are the values for a response, in which classes of types that it need not tell apart are one.
	told []toldValue
	// untold are the object types that a response may not tell from others.
	untold map[string]bool
}

// outline compiles the operation with what a plan can do without.
func (x *index) outline(doc *ast.QueryDocument, op *ast.OperationDefinition) (*Plan, *Outline, error) {
	f, plan, _, err := x.compile(doc, op, true)
	if err != nil {
		return nil, nil, err
	}
	o := &Outline{form: f, plan: plan}
	o.prepareResponses()
	return plan, o, nil
}

// Stream returns what a subscription is estimated at for so many events, from the estimate of
// [Plan.Evaluate], which is that of one event: the base and the weight of the root type count once, and
// what is selected once for each event. It is an upper bound of [Tally.Cost] after as many events that
// respect the declared sizes. No events, or less, cost the base and the root type.
func (o *Outline) Stream(estimate Cost, events int64) Cost {
	n := float64(max(0, events))
	// Where a negative weight of the root type has taken the type cost to 0, this is more than an event has.
	event := estimate.Type - o.rootType.weight
	estimate.Type = max(0, o.rootType.weight+times(n, event))
	estimate.Field = times(n, estimate.Field)
	return estimate
}

// units measures the memory of the outline, in the units of the cache.
func (o *Outline) units() int { return o.form.units() + len(o.told) }
