package lease_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/lease"
	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// nextNumber is what makes an exchange look new.
func (f *fleet) nextNumber(m *lease.Message) int64 {
	// A record begins with the holder and the number of its last exchange.
	for at := range max(0, len(f.values[1])-14) {
		if string(f.values[1][at:at+8]) == string(m.Holder[:]) {
			return int64(binary.BigEndian.Uint64(append([]byte{0, 0}, f.values[1][at+8:at+14]...))) + 1
		}
	}
	return m.Number
}

// mistaken does something with the holder, and makes the mistakes of a holder that loses its lease and not what it had, or for whom it never ends.
func (i *instance) mistaken(do func()) {
	now := i.clock()
	mark, has := i.holder.Mark(), i.holder.Holds(0, now)
	do()
	switch {
	case i.f.mistake == "a level is kept when its lease is lost" && !i.holder.Mark().Same(mark):
		i.holder.Keep(has)
	case i.f.mistake == "an ended lease is used" && i.holder.Alive(now):
		i.holder.HoldForever()
	}
}

// held is how many hold something, and how much capacity that is.
func (f *fleet) held() (held [2]int64) {
	if len(f.values[1]) > 4 {
		held[0] = int64(binary.BigEndian.Uint16(f.values[1][2:]))
	}
	o := f.entries()
	if e := o.Find(f.rules.All[0].ID, 0); e != nil && e.Held != nil {
		held[1] = e.Held.Capacity
	}
	return held
}

// returnLevel is the mistake of a store that takes back a lease with all of its level.
func (f *fleet) returnLevel(before [2]int64, m *lease.Message) {
	after := f.held()
	// The head of a state, and what stands before the debt in the entry of a leased bucket.
	const head, debt = 1 + 6, 1 + 2 + 6 + 5 + 7
	if text := f.values[0]; after[0] < before[0] && !m.Leaving && len(text) > head+debt+7 && text[head] == 8 {
		owed := state.ReadUint(text[head+debt:], 7)
		text = append([]byte(nil), text...)
		copy(text[head+debt:], state.AppendUint(nil, 7, max(0, owed-max(0, before[1]-after[1]))))
		f.values[0] = text
	}
}

func TestAMistakeInTheProtocolIsFound(t *testing.T) {
	t.Parallel()
	for _, mistake := range []string{
		"an ended lease returns its level", "repeats are applied again", "a level is kept when its lease is lost", "rate is given that is not free",
		"an ended lease is used", "the clock is not read after the debit",
	} {
		t.Run(mistake, func(t *testing.T) {
			t.Parallel()
			x := everything
			if mistake == "an ended lease returns its level" {
				// What is lost otherwise hides it, and steps hide what was spent.
				x = faults{crash: 4000}
			}
			x.mistake = mistake
			var found error
			seed := uint64(0)
			for ; found == nil && seed < 400; seed++ {
				found = situation(seed, x).run(20_000)
			}
			require.Error(t, found)
			t.Logf("seed %d: %v", seed-1, found)
		})
	}
}
