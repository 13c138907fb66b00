package state_test

import "github.com/gqlgen-ratelimit/ratelimit/internal/state"

// swap draws one of what some owners and their tenant have, by a caller who knows it, or not.
func (w *world) swap(c *call) {
	c.script = "swap"
	for i := range w.IntN(mostOwners) {
		c.key(&w.values[0][i])
	}
	c.key(&w.marker)
	c.key(&w.overrides)
	extra := int64(1)
	if w.one(4) {
		extra = 0
	}
	args := []string{w.numbers(extra, nil, 0, nil)}
	for _, value := range c.Values {
		var next []byte
		if !w.one(4) {
			next = append([]byte{}, value...)
		}
		expiry := w.now + w.size(1<<30)
		if w.one(4) {
			expiry = 0
		}
		args = state.AppendSwap(args, value, next, expiry)
		last := len(args) - 1
		switch w.IntN(12) {
		case 0:
			args[last-1] = "+another"
		case 1, 2:
			args[last-1] = ""
		case 3, 4:
			args[last] = ""
		case 5:
			args[last-1] = "-"
		}
	}
	c.Args = args
}
