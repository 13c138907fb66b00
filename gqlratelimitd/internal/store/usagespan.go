package store

// UsageSpan says of which time there are counts.
type UsageSpan struct {
	UsageState
	// Began is the first minute, since 1970, that anybody has collected, and Collected the first one that nobody has yet. Both are 0 where nothing was
	// ever collected.
	Began, Collected int64
}

// UsageSpan returns of which time there are counts, by a pass that notes the last minute that it has read.
func (v *View) UsageSpan(pass string) (UsageSpan, error) {
	state, err := v.UsageState()
	if err != nil {
		return UsageSpan{}, err
	}
	span, err := one(v, func(row scanner, s *UsageSpan) error { return row.Scan(&s.Began, &s.Collected) }, "SELECT began, minute + 1 FROM usage_pass WHERE pass = $1", pass)
	if err != nil || span == nil {
		return UsageSpan{UsageState: state}, err
	}
	span.UsageState = state
	return *span, nil
}
