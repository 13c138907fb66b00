package state

import (
	"fmt"
	"math"
)

// offer begins an exchange: what the shard gives back it has no longer, and what it says is stored. One that is under way it repeats.
func (x *shardOf) offer(r *Reply) {
	status := byte(ShardDone)
	switch {
	case x.now < x.barred:
		status = ShardOther
	case x.extra == ShardBeat && (x.by != x.instance || x.now < x.claimed || x.pending == 0 && x.now < x.began+x.interval):
		status = ShardAway
	}
	if status != ShardDone {
		r.Text = append(x.reply(Applied), status)
		return
	}
	if x.now >= x.deadline && (x.number > 1 || x.number == 1 && x.pending == 0) {
		x.drop()
	}
	x.refill()
	if x.blind {
		// Nobody knows how long it was. What it has counts again when home has answered.
		x.deadline = 0
	}
	asked := byte(0)
	if x.pending == 0 {
		elapsed, first := x.now-x.countedAt, x.number == 0
		for i := range x.parts {
			if x.parts[i].since > 0 {
				asked = 1
			}
			x.parts[i].offer(x.interval, elapsed, first)
		}
		if first || elapsed >= shardClaim {
			x.countedAt = x.now
		}
		x.number++
		x.pending = 1
	}
	ticking := x.ticking
	if x.by == x.instance {
		// A message that comes late tells nothing: what passed since has been added.
		ticking = max(ticking, x.clock)
		x.ticks += ticking - x.clock
	}
	x.by, x.clock, x.began, x.claimed = x.instance, ticking, x.now, x.now+shardClaim
	r.Text = append(append(x.reply(Applied), status, asked), x.holder...)
	r.Text = appendAll(r.Text, numberSize, x.number, x.interval, x.ticks)
	for i := range x.parts {
		p := &x.parts[i]
		r.Text = appendAll(r.Text, DebtSize, p.gives[0], p.gives[1], p.gives[2], p.told, p.has, p.want, p.biggest, p.wants)
	}
	x.save(r)
}

// offer is what an exchange says of a limit.
func (p *shardPart) offer(interval, elapsed int64, first bool) {
	if first || elapsed >= shardClaim {
		rate := min(p.since/max(elapsed, shardClaim), mostShardDemand)
		p.before = p.told
		if p.told == 0 || 10*rate < 6*p.told || 10*rate > 14*p.told {
			p.told = rate
		} else {
			p.told = (p.told + rate) / 2
		}
		p.since = 0
	}
	capacity, rate := min(p.capacity, p.keepCapacity), min(p.rate, p.keepRate)
	level := min(p.level, capacity, p.keepLevel)
	p.gives = [3]int64{p.capacity - capacity, p.rate - rate, p.level - level}
	p.capacity, p.rate, p.level = capacity, rate, level
	p.has, p.biggest, p.wants = level, p.largest, p.wanted
	p.want = max(0, max(p.told*11/10-rate, -mostShardDemand)*interval+2*p.largest-level)
	if p.missed > 0 {
		p.want = max(p.want, p.missed-level+p.largest)
	}
	p.missed, p.wanted = 0, 0
	p.largest -= p.largest / 4
}

// put puts in what home has answered to the message that is under way.
func (x *shardOf) put(r *Reply) error {
	const head = shardAnswerHead
	answer := x.Args[3]
	if len(answer) < head || answer[0] == Exchanged && len(answer) != head+len(x.parts)*givenSize {
		return fmt.Errorf("%w: an answer of home", errMalformed)
	}
	if x.pending == 0 || x.holder != x.known || x.number != x.knownNumber {
		r.Text = append(x.reply(Applied), ShardAway)
		return nil
	}
	x.refill()
	f := fields{[]byte(answer)}
	status := f.next(1)
	holders := f.next(InstancesSize)
	switch status {
	case Exchanged:
		x.gain(&f, holders)
	case OldExchange, NotKnown:
		x.drop()
	default:
		x.drop()
		x.barred = x.now + shardBarred
	}
	r.Text = appendAll(append(x.reply(Applied), ShardDone), numberSize, x.interval)
	x.save(r)
	return nil
}

// gain puts in what home has given. ticking is when the message was stored that it has answered.
func (x *shardOf) gain(f *fields, holders int64) {
	x.pending, x.holders, x.claimed = 0, holders, 0
	x.deadline = max(x.deadline, x.ticking+x.length-CeilDiv(x.length, leaseDrift)-1)
	x.contended = 0
	all := make([]Given, len(x.parts))
	for i := range all {
		if all[i] = readGiven(f); all[i].Contended {
			x.contended = 1
		}
	}
	changed, gained := x.contended == 1, false
	for i := range x.parts {
		p, g := &x.parts[i], &all[i]
		p.capacity = min(p.capacity+g.Capacity, mostShardUnits)
		p.rate = min(p.rate+g.Rate, mostShardRate)
		p.level = min(p.level+g.Level, p.capacity)
		p.left = g.Left
		keep := min(g.DueRate, p.told*1274/1000+x.limits[i].whole*49/(1000*max(1, holders)))
		p.keepCapacity, p.keepRate, p.keepLevel = p.capacity, p.rate, mostShardUnits
		if p.rate > keep+keep/32 {
			p.keepRate = keep
		}
		if p.capacity-g.DueCapacity > g.DueCapacity/32 {
			p.keepCapacity = g.DueCapacity
		}
		if x.contended == 1 {
			p.keepLevel = min(2*p.told*x.interval+2*p.largest, mostShardUnits)
		}
		noise := int64(math.Floor(math.Sqrt(float64(float64(p.before)*float64(max(p.largest, p.unit))) / float64(x.interval))))
		changed = changed || 10*max(p.told-p.before, p.before-p.told) > 3*p.before+40*noise
		gained = gained || p.want > 0 && 10*g.Level >= p.want
	}
	if x.interval = min(2*x.interval, shardBeat); changed {
		x.interval = shardQuick
	}
	if x.gap = min(2*x.gap, shardBeat); gained {
		x.gap = shardShortest
	}
}

// back puts back what was taken at a time, once, less what has come back since, if the shard still holds what it was taken from.
func (x *shardOf) back(r *Reply) {
	if x.Values[1] != nil || x.now-x.ticking >= MarkerLife {
		r.Text = x.reply(NotApplied)
		return
	}
	r.Writes = append(r.Writes, Write{Key: 1, Value: []byte{}, Expiry: x.Now + MarkerLife})
	r.Text = x.reply(Applied)
	if x.holder != x.known || x.now >= x.deadline || x.blind {
		return
	}
	x.refill()
	elapsed := max(0, x.now-x.ticking)
	for i := range x.parts {
		p, rate := &x.parts[i], x.limits[i].whole
		if x.number == x.knownNumber {
			// It has not been more since: a rate becomes less with another number only.
			rate = p.rate
		}
		p.level = min(p.capacity, p.level+max(0, x.limits[i].amount-Product(elapsed, max(1, rate))))
	}
	x.save(r)
}
