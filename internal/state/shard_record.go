package state

import "fmt"

// shardPart is what a shard has of a limit, in the units of its leased bucket.
type shardPart struct {
	id, unit int64
	// carry is what has come back of less than a unit, in thousandths.
	capacity, rate, level, carry int64
	// since is what it was asked for since counted, largest and missed the largest amount and that which it did not have, and wanted what only home can have.
	since, largest, missed, wanted int64
	// left is what home had left.
	left int64
	// What it keeps at its next exchange of what it has: it is known before that begins, so that a record of before gives back the same.
	keepCapacity, keepRate, keepLevel int64
	// told is the demand that home knows, and before the one before it.
	told, before int64
	// gives and so on are what the message says that is under way.
	gives              [3]int64
	has, want, biggest int64
	wants              int64
}

// shard is the record of a shard.
type shard struct {
	holder, by string
	// number is that of the exchange begun last, which is under way if pending is 1.
	number, pending int64
	// deadline is when the lease ends, updated the time of the levels, claimed until when somebody is about to exchange, began when the last message was stored.
	deadline, updated, claimed, began int64
	interval, gap                     int64
	// clock is that of the instance by which the last exchange was begun, and ticks is the time of the shard as home is told it: it never steps.
	clock, ticks, countedAt, barred int64
	holders, contended              int64
	parts                           []shardPart
}

// save writes the record.
func (x *shardOf) save(r *Reply) {
	b := append(append(append([]byte{shardVersion, byte(len(x.parts))}, x.holder...), x.by...), byte(x.pending), byte(x.contended))
	b = AppendUint(AppendUint(AppendUint(b, 2, x.holders), 2, x.interval), 2, x.gap)
	b = appendAll(b, numberSize, x.number, x.deadline, x.updated, x.claimed, x.began, x.clock, x.ticks, x.countedAt, x.barred)
	for i := range x.parts {
		p := &x.parts[i]
		b = AppendUint(AppendUint(AppendUint(b, 2, p.id), 5, p.unit), 2, p.carry)
		b = appendAll(b, DebtSize, p.capacity, p.rate, p.level, p.since, p.largest, p.missed, p.wanted, p.left, p.keepCapacity, p.keepRate, p.keepLevel, p.told, p.before,
			p.gives[0], p.gives[1], p.gives[2], p.has, p.want, p.biggest, p.wants)
	}
	w := Write{Value: b}
	if x.extra != ShardTake || !x.stored {
		w.Expiry = x.Now + x.length + shardLife
	}
	r.Writes = append(r.Writes, w)
}

// readShard reads a record.
func readShard(text []byte) (*shard, error) {
	if len(text) < shardHead || text[0] != shardVersion || len(text) != shardHead+int(text[1])*shardSize {
		return nil, fmt.Errorf("%w: a shard", errMalformed)
	}
	s := &shard{holder: string(text[2 : 2+holderSize]), by: string(text[2+holderSize : 2+2*holderSize])}
	f := fields{text[2+2*holderSize:]}
	s.pending, s.contended = f.next(1), f.next(1)
	s.holders, s.interval, s.gap = f.next(2), f.next(2), f.next(2)
	f.read(numberSize, &s.number, &s.deadline, &s.updated, &s.claimed, &s.began, &s.clock, &s.ticks, &s.countedAt, &s.barred)
	s.parts = make([]shardPart, text[1])
	for i := range s.parts {
		p := &s.parts[i]
		p.id, p.unit, p.carry = f.next(2), f.next(5), f.next(2)
		f.read(DebtSize, &p.capacity, &p.rate, &p.level, &p.since, &p.largest, &p.missed, &p.wanted, &p.left, &p.keepCapacity, &p.keepRate, &p.keepLevel, &p.told, &p.before,
			&p.gives[0], &p.gives[1], &p.gives[2], &p.has, &p.want, &p.biggest, &p.wants)
	}
	return s, nil
}
