package state

import "fmt"

// What a call of a shard does, in the number that it is sent as extra.
const (
	// ShardTake takes amounts, ShardOffer begins or repeats an exchange, and ShardBeat does so if the caller did the last one, and one is due.
	ShardTake  = 1
	ShardOffer = 2
	ShardBeat  = 3
	// ShardPut puts in what home has answered, and ShardBack puts back what was taken.
	ShardPut  = 4
	ShardBack = 5
)

// What a call of a shard comes to.
const (
	ShardDone = 0
	// ShardShort says that it has too little, ShardEnded that it holds nothing, or not for this caller before an exchange.
	ShardShort = 1
	ShardEnded = 2
	// ShardOther says that home decides: the shard holds parts of other limits, or is barred.
	ShardOther = 3
	// ShardAway says that there is nothing to do for this caller.
	ShardAway = 4
)

const (
	shardVersion = 1
	// shardBeat is how often a shard exchanges when nothing changes, and shardShortest how soon after an exchange that brought something, in milliseconds.
	shardBeat     = 1000
	shardQuick    = shardBeat / 8
	shardShortest = 5
	// shardClaim is for how long one instance is to exchange alone, and how much later than the one that did so last others begin.
	shardClaim = 100
	// shardBarred is for how long home decides after it could not be shared.
	shardBarred = 10_000
	// shardLife is how long a record lives after the end of a lease that begins now.
	shardLife = 60_000
	// mostShardUnits, mostShardRate and mostShardDemand keep all products exact.
	mostShardUnits  = 1 << 50
	mostShardRate   = 1 << 46
	mostShardDemand = 1 << 41

	shardHead     = 2 + 2*holderSize + 2 + 3*2 + 9*numberSize
	shardSize     = 2 + 5 + 2 + 20*DebtSize
	shardCallSize = 3*holderSize + 4*numberSize
	// shardAnswerHead is what stands before what is given.
	shardAnswerHead = 1 + InstancesSize
	shardLimitSize  = 2 + 5 + 1 + 2*DebtSize
)

// shardOf is one call.
type shardOf struct {
	*Call
	*shard
	now                                 int64
	instance, name, known               string
	knownNumber, least, ticking, length int64
	limits                              []shardAsked
	stored                              bool
	blind                               bool
}

// shardAsked is a limit in a call.
type shardAsked struct{ id, unit, lenient, whole, amount int64 }

// Shard is shard.lua: a shard takes from its part, and exchanges it with home. Errors are as of [Settle].
func Shard(c Call) (Reply, error) {
	return c.run(4, false, func(r *Reply) error {
		x, err := c.readShardCall()
		if err != nil {
			return err
		}
		same, err := x.load(r)
		if err != nil {
			return err
		}
		switch {
		case !same && c.extra == ShardBack:
			// What was taken is not held any more. It is settled all the same, once.
			x.blind = true
			x.back(r)
		case !same:
			r.Text = append(c.reply(Applied), ShardOther)
		case c.extra == ShardTake:
			x.take(r)
		case c.extra == ShardPut:
			return x.put(r)
		case c.extra == ShardBack:
			x.back(r)
		default:
			x.offer(r)
		}
		return nil
	})
}

// readShardCall reads the arguments.
func (c *Call) readShardCall() (*shardOf, error) {
	head, limits := c.Args[1], c.Args[2]
	if len(head) != shardCallSize || len(limits)%shardLimitSize != 0 || len(limits) > 255*shardLimitSize || c.extra == ShardBack && len(c.Values) < 2 {
		return nil, fmt.Errorf("%w: a call of a shard", errMalformed)
	}
	x := &shardOf{Call: c, shard: &shard{}, instance: head[:holderSize], name: head[holderSize : 2*holderSize], known: head[2*holderSize : 3*holderSize]}
	f := fields{[]byte(head[3*holderSize:])}
	f.read(numberSize, &x.knownNumber, &x.least, &x.ticking, &x.length)
	for f = (fields{[]byte(limits)}); len(f.text) > 0; {
		x.limits = append(x.limits, shardAsked{f.next(2), f.next(5), f.next(1), f.next(DebtSize), f.next(DebtSize)})
	}
	return x, nil
}

// load reads the record, and forgets what the shard holds if its clock has stepped back, or its state is older than what the caller knows. It returns false if it has parts of
// other limits.
func (x *shardOf) load(r *Reply) (same bool, err error) {
	text := x.Values[0]
	if x.stored = text != nil; x.stored {
		if x.shard, err = readShard(text); err != nil {
			return false, err
		}
	}
	same = x.stored && len(x.parts) == len(x.limits)
	for i := 0; same && i < len(x.limits); i++ {
		same = x.parts[i].id == x.limits[i].id && x.parts[i].unit == x.limits[i].unit
	}
	if x.holder != x.known {
		// What the caller knows of another one says nothing of this one.
		x.least = 0
	}
	x.now = x.Now
	switch {
	case !same && x.stored && x.now < max(x.deadline, x.began+x.length):
		return false, nil
	case !same:
		*x.shard = shard{parts: make([]shardPart, len(x.limits)), by: noHolder}
		for i := range x.limits {
			x.parts[i].id, x.parts[i].unit = x.limits[i].id, x.limits[i].unit
		}
		x.drop()
	case max(x.updated, x.least)-x.now > leaseStep, x.holder == x.known && x.number < x.knownNumber:
		x.drop()
		// That stays so whatever the call comes to: the next caller may know less.
		x.save(r)
	}
	x.now = max(x.now, x.updated)
	x.blind = x.least == 0 && x.number > 0 && x.now-x.updated > leaseStep
	return true, nil
}

// drop forgets what the shard holds: it begins anew, under another name.
func (x *shardOf) drop() {
	x.holder, x.number, x.pending, x.deadline, x.claimed, x.contended = x.name, 0, 0, 0, 0, 0
	x.updated, x.began, x.interval, x.gap = x.now, x.now, shardQuick, shardShortest
	if x.countedAt == 0 || x.countedAt > x.now {
		x.countedAt = x.now
	}
	for i := range x.parts {
		p := &x.parts[i]
		p.capacity, p.rate, p.level, p.carry, p.left = 0, 0, 0, 0, 0
		p.keepCapacity, p.keepRate, p.keepLevel, p.gives = 0, 0, 0, [3]int64{}
	}
}

// refill brings the levels to the time.
func (x *shardOf) refill() {
	elapsed := x.now - x.updated
	if elapsed == 0 {
		return
	}
	x.updated = x.now
	for i := range x.parts {
		p := &x.parts[i]
		missing, come := p.capacity-p.level, Product(p.rate, elapsed)
		switch {
		case missing <= 0:
		case come >= 2*missing+2*p.rate:
			p.level, p.carry = p.capacity, 0
		default:
			// Of each millisecond a thousandth does not count.
			rest := come%leaseDrift*(leaseDrift-1) + p.carry
			p.level, p.carry = p.level+come/leaseDrift*(leaseDrift-1)+rest/leaseDrift, rest%leaseDrift
			if p.level >= p.capacity {
				p.level, p.carry = p.capacity, 0
			}
		}
	}
}

// take takes the amounts, all or none. Limits that are lenient and have too little are left as they are.
func (x *shardOf) take(r *Reply) {
	status, short := byte(ShardDone), make([]bool, len(x.parts))
	if !x.blind {
		x.refill()
	}
	for i := range x.parts {
		p, n := &x.parts[i], x.limits[i].amount
		p.since, p.largest = min(p.since+n, MaxExact), max(p.largest, n)
		if p.level >= n {
			continue
		}
		p.missed, short[i] = max(p.missed, n), true
		if x.limits[i].lenient == 0 {
			status = ShardShort
			if n > p.capacity && p.left < n {
				p.wanted = max(p.wanted, n)
			}
		}
	}
	alive := !x.blind && x.now < x.deadline
	switch {
	case x.now < x.barred:
		status = ShardOther
	case !alive:
		status = ShardEnded
	case status == ShardDone:
		for i := range x.parts {
			if !short[i] {
				x.parts[i].level -= x.limits[i].amount
			}
		}
	}
	due := byte(0)
	if x.now >= x.claimed && x.now >= x.barred && x.isDue(alive, status) {
		due, x.claimed = 1, x.now+shardClaim
	}
	r.Text = append(x.reply(Applied), status, due)
	r.Text = appendAll(append(r.Text, x.holder...), numberSize, x.number)
	for i := range x.parts {
		p, was := &x.parts[i], byte(0)
		if short[i] {
			was = 1
		}
		r.Text = appendAll(append(r.Text, was), DebtSize, p.level, p.capacity, p.rate, p.left)
	}
	x.save(r)
}

// isDue reports whether an exchange is.
func (x *shardOf) isDue(alive bool, status byte) bool {
	switch {
	case x.pending == 1, !alive:
		return true
	case status == ShardShort:
		return x.now >= x.began+x.gap
	case x.by != x.instance:
		return x.now >= x.began+x.interval+shardClaim
	default:
		return x.now >= x.began+x.interval
	}
}
