package store

// UsageGap is a time that nobody has collected, in minutes since 1970: from First on, and before Until.
type UsageGap struct{ First, Until int64 }

// PutUsageGap notes a gap. One that begins where another one does is the longer of both.
func (tx *UsageTx) PutUsageGap(g UsageGap) error {
	return tx.tx.exec("INSERT INTO usage_gap (first_minute, until_minute) VALUES ($1, $2) ON CONFLICT (first_minute) DO UPDATE SET until_minute = "+
		tx.dialect.greatest("usage_gap.until_minute", "excluded.until_minute"), g.First, g.Until)
}

// LastUsageGap returns the gap that ends last of those that have a minute from one on and before another, nil if there is none.
func (v *View) LastUsageGap(first, until int64) (*UsageGap, error) {
	return one(v, func(row scanner, g *UsageGap) error { return row.Scan(&g.First, &g.Until) },
		"SELECT first_minute, until_minute FROM usage_gap WHERE first_minute < $2 AND until_minute > $1 ORDER BY until_minute DESC LIMIT 1", first, until)
}
