package state

// Direct is a take from states that are at hand, decided as [Take] decides one that came as a call of a script: without arguments
// that are packed and a reply that is read. It is used for one take after the other, and keeps the room that they need.
//
// A take begins with Begin, says its claim, its owners and what each of their limits is asked for, and is decided by Decide.
type Direct struct {
	now     int64
	outcome Outcome
	keyed   bool
	claim   Claim
	hold    Record
	tail    string
	// owners are those of the take, of which the first ones are live, and room has as many as there have been at once.
	owners []*loaded
	room   []*loaded
	live   int
	sides  [2]side
}

// Begin forgets the take before.
func (d *Direct) Begin(now int64) {
	for _, o := range d.owners {
		// Entries in other terms are no longer needed.
		clear(o.spends)
	}
	*d = Direct{now: now, outcome: Admitted, owners: d.owners[:0], room: d.room}
}

// Claim says the claim of the take, and the record that stands under its key. It reports whether the owners are judged:
// otherwise the record decides, and no owner is to be written.
func (d *Direct) Claim(claim Claim, record []byte) (judged bool, err error) {
	r, err := readRecord(record)
	if err != nil {
		return false, err
	}
	d.keyed, d.claim = true, claim
	d.outcome, d.hold, d.tail = r.Judge(&d.claim, d.now)
	return d.outcome == Admitted, nil
}

// Owner adds an owner with the state that is stored of it, nil for none. Those of the candidate come after [Direct.Candidate].
func (d *Direct) Owner(l *Rules, stored []byte) error {
	n := len(d.owners)
	if n == len(d.room) {
		d.room = append(d.room, &loaded{})
	}
	o := d.room[n]
	if err := o.read(stored); err != nil {
		return err
	}
	o.key, o.asked, o.changed = n, l, 0
	o.rules = o.leased(l, d.now)
	o.spends, o.numbers = resized(o.spends, len(l.All)), resized(o.numbers, len(l.All))
	o.ahead = o.Load(o.rules.All, o.spends, d.now)
	o.refresh(d.now)
	d.owners = append(d.owners, o)
	return nil
}

// resized returns a slice of so many, in the room of another one.
func resized[E any](room []E, n int) []E {
	if cap(room) < n {
		return make([]E, n)
	}
	return room[:n]
}

// Ask says what is asked of a limit of the owner that was added last. Each has to be asked.
func (d *Direct) Ask(limit int, amount int64) {
	d.owners[len(d.owners)-1].numbers[limit][0] = Exact(amount)
}

// Candidate says that the owners so far are the live ones.
func (d *Direct) Candidate() { d.live = len(d.owners) }

// Decide decides the take, and returns what it came to and what the record tells of that.
func (d *Direct) Decide() (outcome Outcome, tail string) {
	d.sides[0].owners, d.sides[1].owners = d.owners[:d.live], d.owners[d.live:]
	if d.outcome == Admitted {
		for i := range d.sides {
			d.sides[i].judge(d.now)
		}
		d.outcome = d.sides[0].Outcome
	}
	return d.outcome, d.tail
}

// Side returns what the live side came to, or that of the candidate: zero and nothing if it was not judged.
func (d *Direct) Side(candidate bool) (Outcome, Shortfall) {
	s := &d.sides[0]
	if candidate {
		s = &d.sides[1]
	}
	return s.Outcome, s.Short
}

// Write appends what is to be stored of an owner, and returns it with its expiry: nil if nothing is. It returns false if
// what is stored stays. Each owner is written once, before [Direct.Spent].
func (d *Direct) Write(owner int, b []byte) (value []byte, expiry int64, ok bool) {
	o := d.owners[owner]
	if !o.toSave() {
		return nil, 0, false
	}
	if gone := o.Store(o.rules, o.spends, o.changed, d.now); gone > d.now {
		return o.appendStored(b, o.rules, d.now), gone, true
	}
	return nil, 0, true
}

// Record appends the record that the take leaves, and returns it with its expiry, or false if it leaves none.
func (d *Direct) Record(b []byte) (value []byte, expiry int64, ok bool) {
	if !d.keyed || !d.hold.held(d.outcome) {
		return nil, 0, false
	}
	d.hold.Hold(d.outcome, d.claim.Sum, string(d.sides[0].short()), d.now)
	return d.hold.append(b), d.hold.Ends, true
}

// Spent sets what each limit of an owner has spent after the take, and returns how many these are.
func (d *Direct) Spent(owner int, spends []Spent) int {
	o := d.owners[owner]
	o.Spent(o.asked, spends, d.now)
	return len(o.rules.All)
}
