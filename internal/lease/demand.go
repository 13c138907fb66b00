package lease

import "math"

// demand is what is asked for of a limit, admitted or not, in units.
type demand struct {
	// since is what came since the last exchange, fast an average of the last moments, and rate one over beats, both in a millisecond.
	since      int64
	fast, rate float64
	// slot is what came since slotAt.
	slot, slotAt int64
	// told is the rate that the store knows, and before the one before it.
	told, before float64
}

// slotLength is over how long what comes at once is looked at.
const slotLength = 10 * Millisecond

// offer adds what is asked for.
func (d *demand) offer(now, units int64) {
	if now-d.slotAt >= slotLength {
		d.roll(now)
	}
	d.since += units
	d.slot += units
}

// withdraw takes back what was asked for and turned out to be for nothing.
func (d *demand) withdraw(now, units int64) { d.offer(now, -units) }

// roll ends a slot.
func (d *demand) roll(now int64) {
	length := now - d.slotAt
	rate := float64(d.slot) * Millisecond / float64(length)
	// Weighted by how much of 50 ms it was.
	weight := 1 - math.Exp(-float64(length)/(50*Millisecond))
	d.fast = max(0, d.fast+weight*(rate-d.fast))
	d.slot, d.slotAt = 0, now
}

// begin brings the rate to the time of an exchange, after the time since the last one. missing says that somebody waits for more.
func (d *demand) begin(now, elapsed int64, missing bool, largest, held int64) {
	switch {
	case d.changed(now, largest, held), missing && d.fast > 2*d.rate && d.fast-d.rate > 6*noise(d.fast, largest, slotLength):
		// What came in the last moments says more than the average.
		d.rate, d.since = d.fast, 0
	case elapsed >= 20*Millisecond || d.rate == 0:
		rate := float64(max(0, d.since)) * Millisecond / float64(max(elapsed, 100*Millisecond))
		if elapsed < 150*Millisecond {
			rate = max(rate, d.fast)
		}
		if d.rate == 0 || rate < 0.6*d.rate || rate > 1.4*d.rate {
			d.rate = rate
		} else {
			d.rate = 0.5*d.rate + 0.5*rate
		}
		d.since = 0
	}
	d.before, d.told = d.told, d.rate
}

// noise is how much a rate differs by chance over a time, if amounts are up to the largest: more than it does where most are smaller.
func noise(rate float64, largest, length int64) float64 {
	return math.Sqrt(rate * float64(largest) * Millisecond / float64(length))
}

// changed reports whether the rate is so different from what the store knows that others should know.
func (d *demand) changed(now, largest, held int64) bool {
	if now-d.slotAt >= slotLength {
		d.roll(now)
	}
	chance := 1.4 * noise(max(d.told, d.fast), largest, 50*Millisecond)
	return d.fast < 0.6*d.told-chance || d.fast > 1.5*d.told+chance && d.fast > 0.9*float64(held)
}

// moved reports whether the rate has changed by more than chance, over a time, since the exchange before.
func (d *demand) moved(largest, length int64) bool {
	return math.Abs(d.told-d.before) > 0.3*d.before+4*noise(d.before, largest, length)
}
