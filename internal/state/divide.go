package state

// divisor divides by the same number again and again without a division, which takes several times as
// long as a multiplication. It is made by newDivisor.
type divisor struct {
	by      int64
	inverse float64
}

// newDivisor expects a number of at least 1.
func newDivisor(by int64) divisor {
	return divisor{by: by, inverse: 1 / float64(by)}
}

// quotient returns a / by, rounded towards zero, and the rest. It expects 0 ≤ a ≤ 2^53: then a is exact
// as a float, and the estimate off by less than one.
func (d *divisor) quotient(a int64) (quotient, rest int64) {
	quotient = int64(float64(a) * d.inverse)
	rest = a - quotient*d.by
	if rest < 0 {
		return quotient - 1, rest + d.by
	}
	if rest >= d.by {
		return quotient + 1, rest - d.by
	}
	return quotient, rest
}

func (d *divisor) floor(a int64) int64 {
	quotient, _ := d.quotient(a)
	return quotient
}

func (d *divisor) ceil(a int64) int64 {
	quotient, rest := d.quotient(a)
	if rest > 0 {
		quotient++
	}
	return quotient
}
