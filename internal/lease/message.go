package lease

import "github.com/gqlgen-ratelimit/ratelimit/internal/state"

// Message is an exchange as it is sent.
type Message struct {
	Holder [8]byte
	// Number is that of the exchange, from 1 on.
	Number int64
	// Leaving says that it gives everything back.
	Leaving bool
	// Heard is when the one before was answered, by the clock of the holder, in milliseconds, rounded up. It is zero in the first one.
	Heard int64
	// Beat is how long it means to wait until the next one, in milliseconds.
	Beat   int64
	Limits []state.Offer
}

// Begin begins an exchange, unless one is under way. What it gives back it has no longer.
func (h *Holder) Begin(now int64, leaving bool) (Message, bool) {
	if h.pending {
		return Message{}, false
	}
	if now >= h.deadline {
		h.drop(now)
		if leaving {
			return Message{}, false
		}
	}
	h.refill(now)
	elapsed := now - h.began
	h.began = now
	h.number++
	m := Message{Holder: h.id, Number: h.number, Leaving: leaving, Heard: h.heard, Beat: max(1, h.interval/Millisecond), Limits: make([]state.Offer, len(h.limits))}
	for i := range h.limits {
		m.Limits[i] = h.offer(i, now, elapsed, leaving)
	}
	h.pending, h.message = true, m
	return m, true
}

// offer is what an exchange says of a limit.
func (h *Holder) offer(i int, now, elapsed int64, leaving bool) state.Offer {
	l, p := &h.limits[i], &h.parts[i]
	p.demand.begin(now, elapsed, p.missed > 0, max(p.largest, l.Unit), p.rate)
	rate, beats := p.demand.rate, float64(h.interval)/Millisecond
	o := state.Offer{Demand: int64(rate), Largest: p.largest, Wanted: p.wanted}
	missed := p.missed
	p.missed, p.wanted = 0, 0
	o.GivesLevel, p.surplus = p.surplus, 0
	p.largest -= p.largest / 4
	if leaving {
		o.GivesCapacity, o.GivesRate, o.GivesLevel, o.Demand = p.capacity, p.rate, o.GivesLevel+p.level, 0
		p.capacity, p.rate, p.level, p.carry = 0, 0, 0, 0
		return o
	}
	if !l.Window {
		if keep := min(p.dueRate, int64(0.98*(1.3*rate+0.05*float64(l.Rate)/float64(max(1, h.holders))))); p.rate > keep+keep/32 {
			o.GivesRate, p.rate = p.rate-keep, keep
		}
		if due := max(p.dueCapacity, p.held); p.capacity-due > due/32 {
			o.GivesCapacity, p.capacity = p.capacity-due, due
			if full := due - p.held; p.level > full {
				o.GivesLevel, p.level, p.carry = o.GivesLevel+p.level-full, full, 0
			}
		}
	}
	need := int64(2*rate*beats) + 2*p.largest
	if (h.contended || l.Window) && p.level > need {
		o.GivesLevel += p.level - need
		p.level = need
	}
	// What may be declined takes room as if it had been: the store must not fill it.
	o.Level = p.level + p.held
	o.Want = int64((1.1*rate-float64(p.rate))*beats) + 2*p.largest - p.level
	if missed > 0 {
		o.Want = max(o.Want, missed-p.level+p.largest)
	}
	o.Want = max(0, o.Want)
	return o
}

// Pending returns the message that is under way, to be sent again, and false if none is.
func (h *Holder) Pending() (Message, bool) { return h.message, h.pending }

// Receive takes in what the store has answered to a message that was sent, as it was sent then, at a time. answered is the time of the store. It returns
// false if nobody waits for that, or if it holds nothing after it.
func (h *Holder) Receive(now, sent int64, m *Message, a *state.ExchangeAnswer, answered int64) bool {
	if !h.pending || m.Holder != h.id || m.Number != h.number {
		return false
	}
	if a.Status != state.Exchanged {
		if a.Status != state.OldExchange {
			h.drop(now)
		}
		return false
	}
	h.pending, h.heard = false, (now+Millisecond-1)/Millisecond
	h.holders = a.Holders
	if m.Leaving {
		h.drop(now)
		return false
	}
	h.refill(now)
	h.deadline = sent + Length/drift*(drift-1)
	changed, gained := false, false
	h.contended = false
	for i := range h.parts {
		p, g := &h.parts[i], &a.Given[i]
		if h.limits[i].Window {
			h.giveWindow(p, g, sent, answered)
		} else {
			p.capacity += g.Capacity
			p.rate += g.Rate
			// What has come back or was put back meanwhile has taken its room.
			over := max(0, min(g.Level, p.level+g.Level-(p.capacity-p.held)))
			p.level, p.surplus = min(p.capacity-p.held, p.level+g.Level), min(p.surplus+over, h.limits[i].Capacity)
			p.dueCapacity, p.dueRate = g.DueCapacity, g.DueRate
		}
		p.left = g.Left / h.limits[i].Unit
		h.contended = h.contended || g.Contended
		changed = changed || p.demand.moved(max(p.largest, h.limits[i].Unit), h.interval)
		gained = gained || m.Limits[i].Want > 0 && g.Level*10 >= m.Limits[i].Want
	}
	if h.contended || changed {
		h.interval = Beat / 8
	} else {
		h.interval = min(2*h.interval, Beat)
	}
	if gained {
		h.gap = shortest
	} else {
		h.gap = min(2*h.gap, Beat)
	}
	return true
}

// giveWindow takes in tokens of a window, which is another one from a turn on if it ends at another time. Its end, by the clock of the holder, is counted from when the message was sent: it was answered later.
func (h *Holder) giveWindow(p *part, g *state.Given, sent, answered int64) {
	if g.Closes != p.window {
		p.level = 0
		h.turn++
		p.turn = h.turn
	}
	p.window = g.Closes
	p.closes = sent + max(0, g.Closes-answered)*(Millisecond*(drift-1)/drift)
	p.level += g.Level
}

// Due returns when the next exchange is to begin: now or before, if demand has changed, or if others are short of what the holder has.
func (h *Holder) Due(now int64) int64 {
	if h.pending {
		return now + Beat
	}
	if now-h.began >= 60*Millisecond {
		for i := range h.parts {
			p := &h.parts[i]
			if p.demand.changed(now, max(p.largest, h.limits[i].Unit), p.rate) {
				return now
			}
		}
	}
	if h.contended {
		for i := range h.parts {
			if p := &h.parts[i]; p.rate-p.dueRate > p.dueRate/20 {
				return now
			}
		}
	}
	return h.began + h.interval
}

// MayAsk reports whether an exchange for what is missing may begin: none is under way, and the last one brought something, or was long enough ago.
func (h *Holder) MayAsk(now int64) bool {
	return !h.pending && (h.number == 0 || now-h.began >= h.gap)
}
