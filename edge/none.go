package edge

import "math"

// None is the value of a number for none at all, where a field says so. Zero is always the default, and any other
// negative number is a mistake.
const None = -1

// bounded returns the bound that a number of a [Config] is, which for [None] nothing exceeds.
func bounded(value int) int {
	if value < 0 {
		return math.MaxInt
	}
	return value
}

// failFunc takes what is wrong with a field of a [Config].
type failFunc func(format string, args ...any)

// countOrNone fails for a negative number that is not [None].
func countOrNone(fail failFunc, field string, value int) {
	if value < None {
		fail("%s is %d, want 0 or more, or None", field, value)
	}
}
