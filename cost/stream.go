package cost

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
