package state

import (
	"errors"
	"fmt"
)

// Call is one call of a script, as Redis gets it. The headers of the scripts say what the keys and arguments are.
type Call struct {
	// Values are what stands under each of the KEYS, nil where nothing does.
	Values [][]byte
	// Args are the ARGV.
	Args []string
	// Now is the time in Unix milliseconds.
	Now int64
	// Deadlines says that the store keeps the expiry of a key when it writes a value, and that states say when that is, as in
	// Redis. Otherwise each write of a state has its expiry, and states say nothing of it.
	Deadlines bool

	// extra is the number whose meaning the script says, and next the offset of the first number that was not read.
	extra int64
	next  int
	// counted is nil if the call counts no usage.
	counted *counts
}

// Reply is what a call comes to.
type Reply struct {
	// Text is what the script answers.
	Text []byte
	// Writes are what it writes, at most one for each key.
	Writes []Write
}

// Write is what a script writes under a key.
type Write struct {
	// Key is the place of the key among the KEYS, from 0.
	Key int
	// Value is what stands there from then on, nil if nothing does.
	Value []byte
	// Expiry is when the key is gone, in Unix milliseconds. Zero leaves it as it was.
	Expiry int64
}

// ended is the reply of a call that ends before it has done anything.
type ended []byte

// Error implements error.
func (ended) Error() string { return "the call has ended" }

// run does what clock.lua does, with overrides what known_overrides.lua does, and what the script does then.
func (c *Call) run(args int, overrides bool, script func(r *Reply) error) (Reply, error) {
	if len(c.Args) < args || len(c.Args[0]) < NumbersHead || len(c.Args[0])%DoubleSize != 0 || len(c.Values) == 0 {
		return Reply{}, fmt.Errorf("%w: a call of %d keys and %d arguments", errMalformed, len(c.Values), len(c.Args))
	}
	c.extra, c.next = readDouble(c.Args[0], NumberExtra), NumbersHead
	var r Reply
	err := c.begin(overrides)
	if err == nil {
		err = script(&r)
	}
	var end ended
	switch {
	case errors.As(err, &end):
		return Reply{Text: end}, nil
	case err != nil:
		return Reply{}, err
	}
	return r, nil
}

func (c *Call) begin(overrides bool) error {
	if before := readDouble(c.Args[0], NumberBefore); before > 0 && c.Now > before {
		return ended(c.reply(Late))
	}
	if !overrides {
		return nil
	}
	last := len(c.Values) - 1
	records := c.Values[last]
	c.Values = c.Values[:last]
	var generation [GenerationSize]byte
	copy(generation[:], records)
	expected := c.Args[0][NumberGeneration:NumberFrom]
	if expected != string(generation[:]) && expected != AnyGeneration ||
		c.Now < readDouble(c.Args[0], NumberFrom) || c.Now >= readDouble(c.Args[0], NumberUntil) {
		return ended(append(c.reply(OtherOverrides), records...))
	}
	return nil
}

// usualReply is what most replies have room in.
const usualReply = 256

// reply begins a reply.
func (c *Call) reply(outcome Outcome) []byte {
	return AppendUint(append(make([]byte, 0, usualReply), byte(outcome)), DateSize, c.Now)
}

// loaded is an owner in a call.
type loaded struct {
	Owner
	key int
	// rules are those of what is left where instances hold something of the limits, and asked those that were asked for, where somebody has to
	// know.
	rules  *Rules
	asked  *Rules
	spends []Spent
	// numbers are the first two of each limit, and first is where all of them stand.
	numbers [][2]int64
	first   int
	ahead   bool
	// changed has a bit for each limit that the call has changed.
	changed uint64
}

// toSave reports whether what is stored of the owner is not what holds.
func (o *loaded) toSave() bool { return o.changed > 0 || o.ahead }

// load reads the owners of the first keys, whose rules stand after some arguments and whose limits have so many
// numbers each. The call ends if now is not in a window of the calendar that the caller sent.
func (c *Call) load(owners, after, values int) (all []*loaded, err error) {
	if len(c.Args) < after+owners || len(c.Values) < owners {
		return nil, fmt.Errorf("%w: arguments without rules", errMalformed)
	}
	all = make([]*loaded, 0, owners)
	for i := range owners {
		o := &loaded{key: i}
		if err := c.readRules(o, c.Args[after+i], values); err != nil {
			return nil, err
		}
		if o.Owner, err = ReadOwner(c.Values[i]); err != nil {
			return nil, err
		}
		o.asked, o.rules = o.rules, o.leased(o.rules, c.Now)
		o.spends = make([]Spent, len(o.rules.All))
		o.ahead = o.Load(o.rules.All, o.spends, c.Now)
		o.refresh(c.Now)
		all = append(all, o)
	}
	return all, nil
}

// readRules reads the rules and the numbers of an owner.
func (c *Call) readRules(o *loaded, packed string, values int) error {
	if packed == "" {
		return fmt.Errorf("%w: rules", errMalformed)
	}
	n, size := int(packed[len(packed)-1]), fastRulesSize
	fast, width := n >= fastOwner, FastLimits
	if n %= fastOwner; !fast {
		width, size = n, n*ruleSize+1
	}
	at := c.next
	o.first = at
	c.next += width * values * DoubleSize
	if n > width || len(packed) != size || len(c.Args[0]) < c.next {
		return fmt.Errorf("%w: rules", errMalformed)
	}
	o.rules = &Rules{Columns: width, Packed: packed, Fast: fast}
	o.rules.All, o.numbers = make([]Rule, 0, n), make([][2]int64, 0, n)
	for i := range n {
		r, ok := readRule(packed, fast, i)
		calendar := r.Tag.Calendar()
		if !ok || calendar && len(c.Args[0]) < c.next+CalendarNumbers*DoubleSize {
			return fmt.Errorf("%w: rules", errMalformed)
		}
		if calendar {
			window := Span{readDouble(c.Args[0], c.next), readDouble(c.Args[0], c.next+DoubleSize)}
			if c.next += CalendarNumbers * DoubleSize; c.Now < window.From || c.Now >= window.To {
				return ended(c.reply(OtherWindow))
			}
			r.Windows = window
		}
		o.rules.All = append(o.rules.All, NewRule(r))
		var numbers [2]int64
		for j := range min(values, len(numbers)) {
			numbers[j] = readDouble(c.Args[0], at+(i*values+j)*DoubleSize)
		}
		o.numbers = append(o.numbers, numbers)
	}
	return nil
}

// save writes the owner and notes it in the reply.
func (r *Reply) save(o *loaded, c *Call) {
	w := Write{Key: o.key}
	if gone := o.Store(o.rules, o.spends, o.changed, c.Now); gone > c.Now {
		if w.Expiry = gone; c.Deadlines {
			w.Expiry = o.expire(o.rules, gone, c.Now)
		}
		w.Value = o.Pack(o.rules, c.Now)
	}
	r.Writes = append(r.Writes, w)
}

// set replaces what a limit has spent.
func (o *loaded) set(i int, s Spent) {
	if s != o.spends[i] {
		o.spends[i] = s
		o.changed |= 1 << i
	}
}

// correct is the end of a call that changes what limits have spent: it replies their states before and after.
func (c *Call) correct(all []*loaded, r *Reply, to func(rule *Rule, s Spent, numbers [2]int64) Spent) {
	r.Text = c.reply(Applied)
	after := make([]byte, 0, usualReply)
	for _, o := range all {
		r.Text = o.Append(r.Text, o.rules, c.Now)
		for i := range o.rules.All {
			o.set(i, to(&o.rules.All[i], o.spends[i], o.numbers[i]))
		}
		if o.changed > 0 {
			r.save(o, c)
		}
		after = o.Append(after, o.rules, c.Now)
	}
	r.Text = append(r.Text, after...)
}

// Settle is settle.lua: it corrects a charge and ends a claim, once, or extends the lease of it. The error says that
// something is stored, or was sent, that it cannot read; then nothing is written.
func Settle(c Call) (Reply, error) {
	return c.run(3, false, func(r *Reply) error {
		if err := c.takeCounts(); err != nil {
			return err
		}
		last, takenAt := len(c.Values)-1, c.extra
		if last < 0 {
			return fmt.Errorf("%w: a settlement without its record", errMalformed)
		}
		all, err := c.load(last, 3, 2)
		if err != nil {
			return err
		}
		end := Write{Key: last, Value: []byte{}, Expiry: c.Now + MarkerLife}
		switch {
		case c.Args[1] == "" && (c.Now-takenAt >= MarkerLife || c.Values[last] != nil):
			return ended(c.reply(NotApplied))
		case c.Args[1] != "" && len(c.Args[1]) != keySize+1:
			return fmt.Errorf("%w: the end of a claim", errMalformed)
		case c.Args[1] != "":
			record, err := c.held(last)
			if err != nil {
				return err
			}
			if c.Args[1][keySize] == Running {
				record.Leased = c.Now + c.extra
				*r = Reply{Text: c.reply(Applied), Writes: []Write{{Key: last, Value: record.pack()}}}
				return nil
			}
			end.Value, end.Expiry = nil, record.Ends
			if record.End(c.Args[1][keySize], c.Args[2], c.Now) {
				end.Value = record.pack()
			}
		}
		r.Writes = append(r.Writes, end)
		if c.counted != nil {
			at := 3 + len(c.Values) - 1
			date, err := c.countedFrom(at)
			if err != nil {
				return err
			}
			c.counted.hour = date - date%CountHour
			c.count(r, date)
		}
		c.correct(all, r, func(rule *Rule, s Spent, n [2]int64) Spent {
			return rule.Settle(s, n[0], n[0]+n[1], takenAt, c.Now)
		})
		return nil
	})
}

// held returns the record under a key. The call ends if the attempt of the second argument does not hold it.
func (c *Call) held(key int) (r Record, err error) {
	if len(c.Args[1]) < keySize {
		return Record{}, fmt.Errorf("%w: an attempt", errMalformed)
	}
	if r, err = readRecord(c.Values[key]); err == nil && !r.Holds([keySize]byte([]byte(c.Args[1])), c.Now) {
		err = ended(c.reply(NotApplied))
	}
	return r, err
}

// Adjust is adjust.lua: it gives budget back, and reads the states where it gives nothing. Errors are as of [Settle].
func Adjust(c Call) (Reply, error) {
	return c.run(1, true, func(r *Reply) error {
		all, err := c.load(len(c.Values), 1, 1)
		if err == nil {
			c.correct(all, r, func(rule *Rule, s Spent, n [2]int64) Spent { return rule.Grant(s, n[0], c.Now) })
		}
		return err
	})
}
