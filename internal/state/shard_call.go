package state

// ShardCall is what the instances of a shard tell it.
type ShardCall struct {
	// Instance is who calls, and Name how the shard is called from now on if it begins anew.
	Instance, Name [8]byte
	// Holder and Number are the last exchange that the caller knows of, or that of an answer or a receipt.
	Holder [8]byte
	Number int64
	// Least is what the clock of the shard says at least by what the caller knows, in Unix milliseconds, zero if it knows nothing.
	Least int64
	// Clock is that of the caller when it offers, when the message was stored that home has answered, and when something was taken that is put back, in milliseconds.
	Clock int64
	// Length is that of a lease in milliseconds.
	Length int64
}

// Append appends it as a call has it.
func (c *ShardCall) Append(b []byte) []byte {
	b = append(append(append(b, c.Instance[:]...), c.Name[:]...), c.Holder[:]...)
	return appendAll(b, numberSize, c.Number, c.Least, c.Clock, c.Length)
}

// Shardable reports whether a shard can hold parts of the limit: it is a token bucket that refuses, or only tells, what it does not have, and its numbers are not too large.
func (r *Rule) Shardable() bool {
	unit, capacity, rate := r.Leasing()
	return r.Tag == TokenBucket && !r.Soft && unit < 1<<(8*lengthSize) && capacity <= mostShardUnits && rate <= mostShardRate
}

// AppendShard appends the limit as a call of a shard has it, with an amount in tokens of no more than its capacity.
func (r *Rule) AppendShard(b []byte, amount int64) []byte {
	unit, _, rate := r.Leasing()
	lenient := byte(0)
	if r.Lenient {
		lenient = 1
	}
	b = append(AppendUint(AppendUint(b, idSize, int(r.ID)), lengthSize, unit), lenient)
	return appendAll(b, DebtSize, rate, min(amount, r.Capacity)*unit)
}

// ShardAnswer is what a shard answers.
type ShardAnswer struct {
	Status byte
	// Due says that the caller is to exchange.
	Due bool
	// Asked says of an offer that something was asked for since the one before.
	Asked  bool
	Holder [8]byte
	Number int64
	// Beat is how long it means to wait until the next exchange, and Ticks the time of the shard as home is told it, both in milliseconds.
	Beat, Ticks int64
	// Levels has one for each limit after a take, and Offers after an offer.
	Levels []ShardLevel
	Offers []Offer
}

// ShardLevel is what a shard has of a limit after a take, and what home had left, in units.
type ShardLevel struct {
	Short                       bool
	Level, Capacity, Rate, Left int64
}

const (
	shardTaken   = 2 + holderSize + numberSize
	shardLevel   = 1 + 4*DebtSize
	shardOffered = 2 + holderSize + 3*numberSize
	shardOffer   = exchangeNumbers * DebtSize
)

// ReadShard reads what a shard answers to a call of a kind about so many limits, which may lend the room for levels. It returns false if it is something else.
func ReadShard(text string, kind int64, limits int, room []ShardLevel) (a ShardAnswer, ok bool) {
	if text == "" {
		return a, kind == ShardBack
	}
	f := fields{[]byte(text)}
	a.Status = byte(f.next(1))
	switch {
	case kind == ShardTake && len(text) == shardTaken+limits*shardLevel:
		a.Due = f.next(1) == 1
		f.text = f.text[copy(a.Holder[:], f.text):]
		f.read(numberSize, &a.Number)
		a.Levels = room[:0]
		for range limits {
			l := ShardLevel{Short: f.next(1) == 1}
			f.read(DebtSize, &l.Level, &l.Capacity, &l.Rate, &l.Left)
			a.Levels = append(a.Levels, l)
		}
		return a, true
	case (kind == ShardOffer || kind == ShardBeat) && len(text) == shardOffered+limits*shardOffer:
		a.Asked = f.next(1) == 1
		f.text = f.text[copy(a.Holder[:], f.text):]
		f.read(numberSize, &a.Number, &a.Beat, &a.Ticks)
		for range limits {
			var o Offer
			f.read(DebtSize, &o.GivesCapacity, &o.GivesRate, &o.GivesLevel, &o.Demand, &o.Level, &o.Want, &o.Largest, &o.Wanted)
			a.Offers = append(a.Offers, o)
		}
		return a, true
	case kind == ShardPut && len(text) == 1+numberSize:
		f.read(numberSize, &a.Beat)
		return a, true
	default:
		return a, len(text) == 1
	}
}

// AppendShardAnswer appends what home has answered about one owner, as a shard is told it.
func (a *ExchangeAnswer) AppendShardAnswer(b []byte) []byte {
	b = AppendUint(append(b, a.Status), InstancesSize, a.Holders)
	for i := range a.Given {
		b = a.Given[i].append(b)
	}
	return b
}
