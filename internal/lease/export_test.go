package lease

// Holding is what a holder has of a limit.
type Holding struct{ Capacity, Rate, Level int64 }

// Holds returns that.
func (h *Holder) Holds(limit int, now int64) Holding {
	h.refill(now)
	p := &h.parts[limit]
	return Holding{p.capacity, p.rate, p.level}
}

// Keep is a mistake: what was held when a lease was lost is held on.
func (h *Holder) Keep(has Holding) {
	p := &h.parts[0]
	p.capacity, p.level = max(p.capacity, has.Capacity), max(p.level, has.Level)
}

// HoldForever is a mistake: the lease does not end.
func (h *Holder) HoldForever() { h.deadline = 1 << 62 }
