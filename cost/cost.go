package cost

import (
	"encoding/json"
	"math"
)

// MaxPoints is the largest price: the largest integer that a Lua double, in which stores count,
// holds exactly together with its neighbours.
const MaxPoints = 1<<53 - 1

// noise is the relative error of floating-point sums that rounding up must not turn into a point:
// ten weights of 0.1 are one point, not two.
const noise = 1e-9

// Cost is what an operation costs with given variables. The zero value is an operation that does
// nothing; it still has a price of one point.
type Cost struct {
	// Type counts the objects that can be returned, by weight. It is not negative and may be +Inf.
	Type float64
	// Field counts the resolver calls that can be made, by weight. It is not negative and may be +Inf.
	Field float64
	// Base is what an operation of this kind costs before anything is selected.
	Base float64
	// Free says that the operation only reads the budget: its price is zero points.
	Free bool
	// Approximate says that the operation was too large to merge exactly, and that its selections were
	// summed instead. The cost is still an upper bound.
	Approximate bool
}

// Points returns the price: 0 if the cost is Free, else base, type and field together, rounded up,
// at least 1 and at most [MaxPoints]. Floating-point noise up to one part in 10⁹ is removed before
// rounding.
func (c Cost) Points() int64 {
	if c.Free {
		return 0
	}
	total := c.Base + c.Type + c.Field
	// The negated form also catches a NaN that a caller put into the struct.
	if !(total < MaxPoints) {
		return MaxPoints
	}
	return max(1, int64(roundUp(total)))
}

// roundUp rounds to an integer, up unless what is above it is noise.
func roundUp(x float64) float64 {
	whole := math.Round(x)
	if math.Abs(x-whole) > noise*math.Max(1, math.Abs(x)) {
		whole = math.Ceil(x)
	}
	return whole
}

// pair is a cost in the making.
type pair struct {
	typ, field float64
}

func (p pair) plus(q pair) pair { return pair{p.typ + q.typ, p.field + q.field} }

func (p pair) max(q pair) pair { return pair{max(p.typ, q.typ), max(p.field, q.field)} }

// infinite is the cost of what has no bound.
var infinite = pair{math.Inf(1), math.Inf(1)}

// each multiplies component by component.
func (p pair) each(q pair) pair { return pair{times(p.typ, q.typ), times(p.field, q.field)} }

func (p pair) times(n float64) pair { return pair{times(n, p.typ), times(n, p.field)} }

// covers says whether p is not below q in both components.
func (p pair) covers(q pair) bool { return p.typ >= q.typ && p.field >= q.field }

// times is a product in which nothing times infinity is nothing.
func times(n, x float64) float64 {
	if n == 0 || x == 0 {
		return 0
	}
	return n * x
}

// MarshalJSON writes the cost as an object with type, field, base and points, and with free and
// approximate where they are true. An infinite number is written as the largest finite one.
func (c Cost) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Type        float64 `json:"type"`
		Field       float64 `json:"field"`
		Base        float64 `json:"base"`
		Points      int64   `json:"points"`
		Free        bool    `json:"free,omitempty"`
		Approximate bool    `json:"approximate,omitempty"`
	}{finite(c.Type), finite(c.Field), finite(c.Base), c.Points(), c.Free, c.Approximate})
}

// finite returns the number, the largest finite one of its sign in place of an infinite one.
func finite(x float64) float64 {
	return max(-math.MaxFloat64, min(math.MaxFloat64, x))
}
