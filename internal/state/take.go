package state

import "fmt"

// take is a take under way.
type take struct {
	*Call
	outcome Outcome
	// claim is nil if there is no key. hold is the record that an admission writes, if it has a state, and tail what
	// the record of another outcome tells.
	claim *Claim
	hold  Record
	tail  string
	// sides are the live policy and the candidate.
	sides [2]side
}

// side is one of the two policies of a take.
type side struct {
	Judging
	owners []*loaded
}

// Take is take.lua: it charges all owners or none, and claims an idempotency key, in one step. Errors are as of
// [Settle].
func Take(c Call) (Reply, error) {
	return c.run(2, true, func(r *Reply) error {
		if err := c.takeCounts(); err != nil {
			return err
		}
		if c.extra%CandidateOwner == BlockedTake {
			return ended(c.reply(Blocked))
		}
		t := take{Call: &c, outcome: Admitted}
		owners, candidates := len(c.Values), int(c.extra/CandidateOwner)
		if c.Args[1] != "" && owners > 0 {
			owners--
			if err := t.meet(owners); err != nil {
				return err
			}
		}
		at := 2 + owners
		if c.counted != nil {
			hour, err := c.countedFrom(at)
			if err != nil {
				return err
			} else if c.Now < hour || c.Now >= hour+CountHour {
				return ended(c.reply(OtherWindow))
			}
			c.counted.hour = hour
		}
		live, judged := owners-candidates, t.outcome == Admitted
		if live < 0 || live > owners {
			return fmt.Errorf("%w: a candidate of %d owners", errMalformed, candidates)
		}
		if !judged {
			owners = live
		}
		all, err := c.load(owners, 2, 1)
		if err != nil {
			return err
		}
		t.sides = [2]side{{owners: all[:live]}, {owners: all[live:]}}
		if judged {
			for i := range t.sides {
				t.sides[i].judge(c.Now)
				for _, o := range t.sides[i].owners {
					if o.toSave() {
						r.save(o, &c)
					}
				}
			}
			t.outcome = t.sides[0].Outcome
		}
		if c.counted != nil && t.outcome == Admitted {
			c.count(r, c.Now)
		}
		t.answer(r, candidates > 0)
		return nil
	})
}

// meet reads the claim and its record, which stands under a key.
func (t *take) meet(key int) error {
	claim, err := readClaim(t.Args[1])
	if err != nil {
		return err
	}
	record, err := readRecord(t.Values[key])
	if err != nil {
		return err
	}
	t.claim = &claim
	t.outcome, t.hold, t.tail = record.Judge(&claim, t.Now)
	return nil
}

func readClaim(text string) (c Claim, err error) {
	if len(text) != claimSize {
		return Claim{}, fmt.Errorf("%w: a claim", errMalformed)
	}
	copy(c.Attempt[:], text)
	copy(c.Fingerprint[:], text[keySize:])
	text = text[2*keySize:]
	c.Lease, c.Life = ReadUint(text, DateSize), ReadUint(text[DateSize:], DateSize)
	text = text[2*DateSize:]
	c.RefuseAbandoned, c.RunAgain = text[0]&refuseAbandoned != 0, text[0]&runAgain != 0
	c.Sum = uint32(ReadUint(text[1:], SumSize))
	return c, nil
}

// judge charges all owners of the side or none. Those that have changed are to be saved.
func (s *side) judge(now int64) {
	s.Outcome = Admitted
	k := 0
	for _, o := range s.owners {
		for i := range o.rules.All {
			s.Limit(k, &o.rules.All[i], o.spends[i], o.numbers[i][0], now)
			k++
		}
	}
	if s.Outcome != Admitted {
		s.Short = Shortfall{}
		return
	}
	k = 0
	for _, o := range s.owners {
		for i := range o.rules.All {
			if o.rules.All[i].Take(&o.spends[i], &s.Short, k, o.numbers[i][0], now) {
				o.changed |= 1 << i
			}
			k++
		}
	}
}

// short is what was charged less than asked, packed.
func (s *side) short() []byte {
	if s.Short.limits == 0 {
		return nil
	}
	owners := make([]*Rules, len(s.owners))
	for i, o := range s.owners {
		owners[i] = o.rules
	}
	return s.Short.Append(nil, owners)
}

// answer ends the take: it writes the claim, and the reply.
func (t *take) answer(r *Reply, candidate bool) {
	short := t.sides[0].short()
	if t.hold.held(t.outcome) {
		t.hold.Hold(t.outcome, t.claim.Sum, string(short), t.Now)
		r.Writes = append(r.Writes, Write{Key: len(t.Values) - 1, Value: t.hold.pack(), Expiry: t.hold.Ends})
	}
	r.Text = append(append(t.reply(t.outcome), byte(len(short)/ShortSize)), short...)
	if candidate {
		trial := t.sides[1].short()
		r.Text = append(append(r.Text, byte(t.sides[1].Outcome), byte(len(trial)/ShortSize)), trial...)
	}
	for i := range t.sides {
		for _, o := range t.sides[i].owners {
			r.Text = o.Append(r.Text, o.rules, t.Now)
		}
	}
	r.Text = append(r.Text, t.tail...)
}
