package number

import "math"

// Sum adds numbers that anybody may have written, without overflow. What is negative counts as nothing.
func Sum(a, b int64) int64 {
	a, b = max(0, a), max(0, b)
	if s := a + b; s >= 0 {
		return s
	}
	return math.MaxInt64
}
