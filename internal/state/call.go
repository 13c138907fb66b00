package state

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Call is one call of a script, as Redis gets it. The headers of the scripts say what the keys and arguments are.
type Call struct {
	// Values are what stands under each of the KEYS, nil where nothing does.
	Values [][]byte
	// Args are the ARGV.
	Args []string
	// Now is the time in Unix milliseconds.
	Now int64

	// extra is the number whose meaning the script says, and next the place of the first number that was not read.
	extra int64
	next  int
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

// reply begins a reply.
func (c *Call) reply(outcome Outcome) []byte {
	return AppendUint([]byte{byte(outcome)}, DateSize, c.Now)
}

// number returns a number of the first argument by its offset.
func (c *Call) number(at int) int64 {
	return int64(math.Float64frombits(binary.LittleEndian.Uint64([]byte(c.Args[0][at : at+DoubleSize]))))
}

// begin is what clock.lua does, and with overrides known_overrides.lua. It returns the reply of a call that has ended by
// that.
func (c *Call) begin(args int, overrides bool) (ended []byte, err error) {
	if len(c.Args) < args || len(c.Args[0]) < NumbersHead || len(c.Args[0])%DoubleSize != 0 || len(c.Values) == 0 {
		return nil, fmt.Errorf("%w: a call of %d keys and %d arguments", errMalformed, len(c.Values), len(c.Args))
	}
	if before := c.number(NumberBefore); before > 0 && c.Now > before {
		return c.reply(Late), nil
	}
	c.extra, c.next = c.number(NumberExtra), NumbersHead
	if !overrides {
		return nil, nil
	}
	known, last := c.Args[0][NumberGeneration:NumberGeneration+GenerationSize], len(c.Values)-1
	records := c.Values[last]
	generation := string(records[:min(len(records), GenerationSize)])
	if generation == "" {
		generation = string(make([]byte, GenerationSize))
	}
	if generation != known || c.Now < c.number(NumberFrom) || c.Now >= c.number(NumberUntil) {
		return append(c.reply(OtherOverrides), records...), nil
	}
	c.Values = c.Values[:last]
	return nil, nil
}

// loaded is an owner in a call.
type loaded struct {
	Owner
	key    int
	rules  *Rules
	spends []Spent
	// numbers are those of each limit.
	numbers [][2]int64
	ahead   bool
	// changed has a bit for each limit that the call has changed.
	changed uint64
}

// load reads the owner of a key, whose limits have so many numbers each. It returns nil if now is not in a window of
// the calendar that the caller sent.
func (c *Call) load(key int, packed string, values int) (*loaded, error) {
	o := &loaded{key: key}
	var err error
	if o.rules, err = c.readRules(o, packed, values); o.rules == nil || err != nil {
		return nil, err
	}
	if o.Owner, err = ReadOwner(c.Values[key]); err != nil {
		return nil, err
	}
	o.spends = make([]Spent, len(o.rules.All))
	o.ahead = o.Load(o.rules.All, o.spends, c.Now)
	o.refresh(c.Now)
	return o, nil
}

// loadAll loads the owners of the first keys, whose rules stand after some arguments.
func (c *Call) loadAll(owners, after, values int) (all []*loaded, err error) {
	if len(c.Args) < after+owners || len(c.Values) < owners {
		return nil, fmt.Errorf("%w: arguments without rules", errMalformed)
	}
	for i := range owners {
		o, err := c.load(i, c.Args[after+i], values)
		if o == nil || err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, nil
}

// readRules reads the rules and numbers of an owner. It returns nil if now is not in a window that the caller sent.
func (c *Call) readRules(o *loaded, packed string, values int) (*Rules, error) {
	width := (len(packed) - 1) / ruleSize
	if len(packed) != 1+width*ruleSize {
		return nil, fmt.Errorf("%w: rules", errMalformed)
	}
	l := &Rules{Columns: width, Packed: packed}
	n := int(packed[len(packed)-1])
	if l.Fast = n >= fastOwner; l.Fast {
		n -= fastOwner
	}
	at := c.next
	c.next += width * values * DoubleSize
	for i := range n {
		r, calendar := readRule(packed, width, i)
		if calendar {
			if len(c.Args[0]) < c.next+CalendarNumbers*DoubleSize {
				return nil, fmt.Errorf("%w: numbers", errMalformed)
			}
			window := Span{c.number(c.next), c.number(c.next + DoubleSize)}
			c.next += CalendarNumbers * DoubleSize
			if c.Now < window.From || c.Now >= window.To {
				return nil, nil
			}
			r.Windows = window
		}
		l.All = append(l.All, NewRule(r))
		var numbers [2]int64
		for j := range values {
			numbers[j] = c.number(at + (i*values+j)*DoubleSize)
		}
		o.numbers = append(o.numbers, numbers)
	}
	return l, nil
}

// readRule reads one rule, and whether it has a window of the calendar.
func readRule(packed string, width, i int) (r Rule, calendar bool) {
	double := func(column int) int64 {
		at := fastIDSize*width + rulesNumbers*i + DoubleSize*column
		return int64(math.Float64frombits(binary.LittleEndian.Uint64([]byte(packed[at : at+DoubleSize]))))
	}
	flags := packed[(ruleSize-1)*width+i]
	r = Rule{
		ID: uint16(ReadUint(packed[fastIDSize*i:], idSize)), Tag: Tag(flags / flagTag),
		Lenient: flags&flagLenient != 0, Soft: flags&flagSoft != 0, P: double(0), R: double(1),
	}
	r.Capacity = double(2) / r.P
	return r, r.Tag.Calendar()
}

// save writes the owner and notes it in the reply.
func (r *Reply) save(o *loaded, now int64) {
	w := Write{Key: o.key}
	if until := o.Store(o.rules, o.spends, o.changed, now); until > now {
		w.Value, w.Expiry = o.Pack(o.rules, now), until
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
	var after []byte
	for _, o := range all {
		r.Text = o.Append(r.Text, o.rules, c.Now)
		for i := range o.rules.All {
			o.set(i, to(&o.rules.All[i], o.spends[i], o.numbers[i]))
		}
		if o.changed > 0 {
			r.save(o, c.Now)
		}
		after = o.Append(after, o.rules, c.Now)
	}
	r.Text = append(r.Text, after...)
}

// Settle is settle.lua: it corrects a charge and ends a claim, once. The error says that something is stored, or was
// sent, that it cannot read; then nothing is written.
func Settle(c Call) (r Reply, err error) {
	if r.Text, err = c.begin(3, false); r.Text != nil || err != nil {
		return r, err
	}
	last, takenAt := len(c.Values)-1, c.extra
	all, err := c.loadAll(last, 3, 2)
	if err != nil {
		return Reply{}, err
	}
	if len(all) < last {
		return Reply{Text: c.reply(OtherWindow)}, nil
	}
	end := Write{Key: last}
	switch {
	case c.Args[1] == "":
		if c.Now-takenAt >= MarkerLife || c.Values[last] != nil {
			return Reply{Text: c.reply(NotApplied)}, nil
		}
		end.Value, end.Expiry = []byte{}, c.Now+MarkerLife
	case len(c.Args[1]) != keySize+1:
		return Reply{}, fmt.Errorf("%w: the end of a claim", errMalformed)
	default:
		record, err := readRecord(c.Values[last])
		if err != nil {
			return Reply{}, err
		}
		if !record.Holds([keySize]byte([]byte(c.Args[1])), c.Now) {
			return Reply{Text: c.reply(NotApplied)}, nil
		}
		if record.End(c.Args[1][keySize], c.Args[2], c.Now) {
			end.Value, end.Expiry = record.pack(), record.Ends
		}
	}
	r.Writes = append(r.Writes, end)
	c.correct(all, &r, func(rule *Rule, s Spent, n [2]int64) Spent {
		return rule.Settle(s, n[0], n[0]+n[1], takenAt, c.Now)
	})
	return r, nil
}

// Grant is grant.lua: it gives budget back. Errors are as of [Settle].
func Grant(c Call) (r Reply, err error) {
	if r.Text, err = c.begin(1, true); r.Text != nil || err != nil {
		return r, err
	}
	all, err := c.loadAll(len(c.Values), 1, 1)
	if err != nil {
		return Reply{}, err
	}
	if len(all) < len(c.Values) {
		return Reply{Text: c.reply(OtherWindow)}, nil
	}
	c.correct(all, &r, func(rule *Rule, s Spent, n [2]int64) Spent { return rule.Grant(s, n[0], c.Now) })
	return r, nil
}

// Peek is peek.lua: it reads the states. Errors are as of [Settle].
func Peek(c Call) (r Reply, err error) {
	if r.Text, err = c.begin(1, true); r.Text != nil || err != nil {
		return r, err
	}
	all, err := c.loadAll(len(c.Values), 1, 0)
	if err != nil {
		return Reply{}, err
	}
	if len(all) < len(c.Values) {
		return Reply{Text: c.reply(OtherWindow)}, nil
	}
	r.Text = c.reply(Applied)
	for _, o := range all {
		r.Text = o.Append(r.Text, o.rules, c.Now)
	}
	return r, nil
}

// Renew is renew.lua: it extends the lease of a claim. Errors are as of [Settle].
func Renew(c Call) (r Reply, err error) {
	if r.Text, err = c.begin(2, false); r.Text != nil || err != nil {
		return r, err
	}
	record, err := readRecord(c.Values[0])
	if err != nil || len(c.Args[1]) != keySize || !record.Holds([keySize]byte([]byte(c.Args[1])), c.Now) {
		return Reply{Text: c.reply(NotApplied)}, nil
	}
	record.Leased = c.Now + c.extra
	return Reply{Text: c.reply(Applied), Writes: []Write{{Value: record.pack()}}}, nil
}
