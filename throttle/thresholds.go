package throttle

import "time"

// Thresholds returns the share that is kept by the steps that recipes have: processor time, in shares of what there is, the 99th percentile of
// latency, which begins to count at a target, and the share of operations that fail. The worst of them decides.
//
//	processor   below 0.70: 1; from there to 0.85 down to 0.5; then down to 0.1
//	latency     below the target: 1; below four times the target: 0.6; then 0.2
//	errors      below 0.01: 1; below 0.05: 0.75; then 0.25
//
// An instance that decides so, by itself and at once, swings: docs/reports/throttle.md has how much.
func Thresholds(processor float64, latency, target time.Duration, errors float64) float64 {
	keep := 1.0
	switch {
	case processor < 0.70:
	case processor < 0.85:
		keep = 1 - 0.5*(processor-0.70)/0.15
	default:
		keep = max(0.1, 0.5-0.4*(processor-0.85)/0.15)
	}
	switch {
	case latency < target:
	case latency < 4*target:
		keep = min(keep, 0.6)
	default:
		keep = min(keep, 0.2)
	}
	switch {
	case errors < 0.01:
	case errors < 0.05:
		keep = min(keep, 0.75)
	default:
		keep = min(keep, 0.25)
	}
	return keep
}

// recipeLatency is the target that recipes have.
const recipeLatency = 200 * time.Millisecond
