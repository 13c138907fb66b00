package state

// Quotient divides as the arithmetic does.
func Quotient(a, by int64) (quotient, rest int64) {
	d := newDivisor(by)
	return d.quotient(a)
}
