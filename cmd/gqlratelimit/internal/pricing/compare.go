package pricing

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// Change is the price of one operation under an old and a new schema.
type Change struct {
	Old, New Result
}

// Broken says that the operation fits the old schema and not the new one, that a server accepts it under
// the old schema and refuses it under the new one, or that it has no price any more.
func (c Change) Broken() bool {
	return !c.Old.Fatal && c.New.Fatal || !c.Old.Invalid && c.New.Invalid ||
		len(c.Old.Problems) == 0 && len(c.New.Problems) > 0
}

// Unpriced says that the operation has no price under the old schema, so that nothing can rise.
func (c Change) Unpriced() bool { return c.Old.Fatal }

// Rise returns by how much of the old price the new one is higher: 0.1 for ten per cent, negative for a
// fall, +Inf for an operation that was free. It is 0 if one of the prices is missing.
func (c Change) Rise() float64 {
	if c.Old.Fatal || c.New.Fatal || c.Old.Points == c.New.Points {
		return 0
	}
	if c.Old.Points == 0 {
		return math.Inf(1)
	}
	return float64(c.New.Points-c.Old.Points) / float64(c.Old.Points)
}

// Exceeds says whether the price rose by more than the share allowed.
func (c Change) Exceeds(allowed float64) bool { return c.Rise() > allowed }

// Cause is a path in the response, and by how much more or less what is called there adds to the cost than before.
type Cause struct {
	Path string
	// Coordinates are the fields that are called, sorted. They are several where an abstract type costs the maximum
	// over its object types and not the same one is the dearest in both schemas or in both components.
	Coordinates []string
	Old, New    float64
}

// Causes returns the paths at which more is added than before, those with the largest difference first. Calls
// that a breakdown left out are not among them.
func (c Change) Causes() []Cause {
	byPath := map[string]*Cause{}
	add := func(b cost.Breakdown, to func(*Cause) *float64) {
		for i := range b.Entries {
			entry := &b.Entries[i]
			path := strings.Join(entry.Path, ".")
			cause := byPath[path]
			if cause == nil {
				cause = &Cause{Path: path}
				byPath[path] = cause
			}
			if at, known := slices.BinarySearch(cause.Coordinates, entry.Coordinate); !known {
				cause.Coordinates = slices.Insert(cause.Coordinates, at, entry.Coordinate)
			}
			*to(cause) += entry.Type + entry.Field
		}
	}
	add(c.Old.Breakdown, func(cause *Cause) *float64 { return &cause.Old })
	add(c.New.Breakdown, func(cause *Cause) *float64 { return &cause.New })
	var causes []Cause
	for _, cause := range byPath {
		if cause.New > cause.Old {
			causes = append(causes, *cause)
		}
	}
	slices.SortFunc(causes, func(x, y Cause) int {
		return cmp.Or(cmp.Compare(y.New-y.Old, x.New-x.Old), cmp.Compare(x.Path, y.Path))
	})
	return causes
}
