package ratelimit

import (
	"cmp"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/backend"
)

// None is the value of a number for none at all, where a field says so. Zero is always the default, and any other
// negative number is a mistake.
const None = backend.None

// failFunc takes what is wrong with a field of a [Config].
type failFunc func(format string, args ...any)

// countOrNone fails for a negative number that is not [None].
func countOrNone(fail failFunc, field string, value int64) {
	if value < None {
		fail("%s is %d, want 0 or more, or None", field, value)
	}
}

// orNone fails for a number that is not from zero to most, nor [None].
func orNone[T int | time.Duration](fail failFunc, field string, value, most T) {
	if value < None || value > most {
		fail("%s is %v, want up to %v, or None", field, value, most)
	}
}

// within fails for a number that is not from least to most, and so for NaN.
func within[T cmp.Ordered](fail failFunc, field string, value, least, most T) {
	if inside := value >= least && value <= most; !inside {
		fail("%s is %v, want %v to %v", field, value, least, most)
	}
}
