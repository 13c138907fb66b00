package store

// Numbers returns what a query returns, of which the last column is a number: sums by what the other columns say.
func (v *View) Numbers(query string) (map[string]int64, error) {
	type row struct {
		name string
		n    int64
	}
	rows, err := many(v, func(from scanner, r *row) error { return from.Scan(&r.name, &r.n) }, query)
	sums := map[string]int64{}
	for _, r := range rows {
		sums[r.name] += r.n
	}
	return sums, err
}
