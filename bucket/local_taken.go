package bucket

import (
	"slices"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// spendSlots is in how many parts the time is divided in which a limit comes back, to know what of it was
// taken when.
const spendSlots = 8

// localSpend is what was taken here of one limit, and is to be settled until a time: that is when the refill has repaid it, or its
// window has ended, so that the store shall not count it as spent any more.
type localSpend struct {
	// under are the limits that it was taken under last.
	under         *Limits
	id            uint16
	until, amount int64
}

// spend notes what was charged to the share of the limit at a place.
func (o *localOwner) spend(whole *Limits, place int, charged *LimitState, now int64) {
	rule := &whole.rules[place]
	spent := localSpend{under: whole, id: rule.ID, until: charged.WindowEnd, amount: charged.Charged}
	if length := rule.comesBack(); length > 0 {
		slot := state.CeilDiv(length, spendSlots)
		spent.until = now - now%slot + slot + length
	}
	o.owe(spent, now)
}

// comesBack is the time in milliseconds in which all of a token bucket or sliding window comes back, zero for other windows.
func (r *rule) comesBack() int64 {
	switch r.Tag {
	case state.TokenBucket:
		return max(1, r.Wait(r.Full))
	case state.SlidingWindow:
		return r.R
	default:
		return 0
	}
}

// owe adds what is to be settled.
func (o *localOwner) owe(spent localSpend, now int64) {
	// The latest are the last.
	for i := len(o.taken) - 1; i >= 0; i-- {
		if t := &o.taken[i]; t.id == spent.id && t.until == spent.until {
			t.amount, t.under = t.amount+spent.amount, spent.under
			return
		}
	}
	o.taken = append(o.unpaid(now), spent)
}

// unpaid is what is still to be settled.
func (o *localOwner) unpaid(now int64) []localSpend {
	return slices.DeleteFunc(o.taken, func(t localSpend) bool { return t.until <= now })
}

// due returns what the owner settles next, and under which limits: those of the latest charge of it. It is nothing
// without limits. What other limits were charged is left.
func (o *localOwner) due(now int64) (limits *Limits, taken, left []localSpend) {
	all := o.unpaid(now)
	o.taken = all
	if len(all) == 0 {
		return nil, nil, nil
	}
	limits = all[len(all)-1].under
	for _, t := range all {
		if limits.place(t.id) >= 0 {
			taken = append(taken, t)
		} else {
			left = append(left, t)
		}
	}
	return limits, taken, left
}

// place returns the place of the rule of an id, or -1.
func (l *Limits) place(id uint16) int {
	return slices.IndexFunc(l.rules, func(r rule) bool { return r.ID == id })
}
