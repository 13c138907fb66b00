package bucket_test

import (
	"cmp"
	"fmt"
	"math/big"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// account is what one limit of one owner has admitted and given back.
type account struct {
	entries []accountEntry
	// capacity is the largest in force, and refill the fastest, in tokens a millisecond.
	capacity int64
	refill   *big.Rat
	// window is when the window ends that was charged last.
	window int64
	// lengths are those of windows in force, in milliseconds.
	lengths map[string]int64
}

// accountEntry is what was admitted, or, if it is negative, given back.
type accountEntry struct {
	at, tokens int64
	// window is when the window ends that it was charged in.
	window int64
}

func newAccount() *account {
	return &account{refill: new(big.Rat), lengths: map[string]int64{}}
}

// governs notes that a limit is in force.
func (a *account) governs(limit *bucket.Limit) {
	a.capacity = max(a.capacity, limit.Capacity)
	if limit.Window.Kind == bucket.TokenBucket {
		if refill := big.NewRat(limit.Refill, limit.Period.Milliseconds()); refill.Cmp(a.refill) > 0 {
			a.refill = refill
		}
		return
	}
	length := limit.Period
	if limit.Window.Kind.Calendar() {
		// Windows of the calendar are no shorter.
		length = map[bucket.WindowKind]time.Duration{
			bucket.HourWindow: time.Hour, bucket.DayWindow: 23 * time.Hour, bucket.MonthWindow: 28 * 24 * time.Hour,
			bucket.YearWindow: 365 * 24 * time.Hour,
		}[limit.Window.Kind]
	}
	a.lengths[fmt.Sprint(limit.Window, limit.Period)] = length.Milliseconds()
}

// bound is what any interval may admit at once, and what each millisecond of it more.
//
// Token buckets: the largest capacity, and the fastest refill. Sliding windows of one length: the capacity, and as
// much in each length. Where fixed windows and those of the calendar meet an end may give everything back, and there
// is one more end than lengths.
func (a *account) bound(family string) (burst, rate *big.Rat) {
	capacity := new(big.Rat).SetInt64(a.capacity)
	burst, rate = new(big.Rat).Set(capacity), new(big.Rat).Set(a.refill)
	for _, length := range a.lengths {
		rate.Add(rate, new(big.Rat).Quo(capacity, new(big.Rat).SetInt64(length)))
		if family != "sliding" {
			burst.Add(burst, capacity)
		}
	}
	return burst, rate
}

// check returns what breaks the law.
func (a *account) check(family string) error {
	burst, rate := a.bound(family)
	running, last := new(big.Rat), int64(0)
	windows := map[int64]int64{}
	for _, e := range a.entries {
		running.Sub(running, new(big.Rat).Mul(rate, new(big.Rat).SetInt64(e.at-last)))
		if running.Sign() < 0 {
			running.SetInt64(0)
		}
		running.Add(running, new(big.Rat).SetInt64(e.tokens))
		last = e.at
		if running.Cmp(burst) > 0 {
			return fmt.Errorf("an interval that ends at %d admits %s over %s and %s a ms", e.at, running.FloatString(3), burst.FloatString(3), rate.FloatString(9))
		}
		windows[e.window] += e.tokens
		if (family == "fixed" || family == "day") && windows[e.window] > a.capacity {
			return fmt.Errorf("the window that ends at %d admits %d of %d", e.window, windows[e.window], a.capacity)
		}
	}
	return nil
}

// corrected takes a settlement or a grant into an account, which may give so much back. That is told in whole tokens.
func (a *account) corrected(now, gives int64, states []bucket.LimitState) error {
	for i := range states {
		state := &states[i]
		if state.Limit.Name != lawLimit {
			continue
		}
		a.governs(state.Limit)
		if -state.Charged > gives {
			return fmt.Errorf("at %d %d tokens are given back, where %d may be", now, -state.Charged, gives)
		}
		if state.Limit.Window.Kind != bucket.FixedWindow && !state.Limit.Window.Kind.Calendar() || state.Charged < 0 {
			// A window that is given back whole is not open any more.
			a.entries = append(a.entries, accountEntry{now, min(0, state.Charged) - 1, cmp.Or(state.WindowEnd, a.window)})
		}
	}
	return nil
}

// note takes a charge into an account.
func note(a *account, now int64, states []bucket.LimitState) (charged int64) {
	for i := range states {
		limit := states[i].Limit
		if limit.Name != lawLimit {
			continue
		}
		a.governs(limit)
		if states[i].Charged > 0 && limit.Mode == bucket.Enforce && !limit.Soft {
			a.window = states[i].WindowEnd
			a.entries = append(a.entries, accountEntry{now, states[i].Charged, a.window})
		}
		return states[i].Charged
	}
	return 0
}
