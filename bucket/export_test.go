package bucket

import (
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/lua"
)

// SetTestClock makes the store run scripts that take the time, in Unix milliseconds, from now.
func (r *Redis) SetTestClock(now func() int64) error {
	for _, script := range []*lua.Script{
		&r.scripts.take, &r.scripts.settle, &r.scripts.grant, &r.scripts.peek, &r.scripts.renew,
	} {
		replaced, err := lua.WithTestClock(*script)
		if err != nil {
			return err
		}
		*script = replaced
	}
	r.testClock = now
	return nil
}

// BucketKey returns the key of a bucket.
func (r *Redis) BucketKey(tenant string, owner Owner) string {
	return newKeyspace(r.namespace, tenant).bucket(owner)
}

// LearnOffset makes the store believe that the clock of the server is off by some milliseconds from
// what it last learned.
func (r *Redis) LearnOffset(milliseconds int64) {
	for i := range r.offsets.groups {
		r.offsets.groups[i].low.Add(milliseconds)
	}
}

// Offset is an estimate of the clock of one node.
type Offset struct{ offsets }

// NewOffset returns an estimate that knows nothing, and when it starts.
func NewOffset() (*Offset, time.Time) {
	o := &Offset{newOffsets(false)}
	return o, o.start
}

// Learn is offsets.learn.
func (o *Offset) Learn(sent, received time.Time, now int64) { o.learn(0, sent, received, now, false) }

// ApplyBefore is offsets.applyBefore.
func (o *Offset) ApplyBefore(deadline time.Time) string { return o.applyBefore(0, deadline) }

// Entries returns how many entries the store holds.
func (m *Memory) Entries() int {
	n := 0
	for i := range m.shards {
		m.shards[i].mu.Lock()
		for kind := range m.shards[i].pools {
			n += len(m.shards[i].pools[kind].list)
		}
		m.shards[i].mu.Unlock()
	}
	return n
}

var (
	// Segment encodes a name for a key.
	Segment = segment
	// CRC16 is the checksum of Redis Cluster.
	CRC16 = crc16
	// Classify says what an error means for the charge.
	Classify = classify
)

// Rule exposes the arithmetic of one compiled limit.
type Rule struct{ rule }

// RuleOf returns the arithmetic of the first limit.
func RuleOf(l *Limits) Rule { return Rule{l.rules[0]} }

// R returns the units that decay each millisecond, and P those of one token.
func (r *Rule) R() int64 { return r.r }

// P returns the units of one token.
func (r *Rule) P() int64 { return r.p }

// Decay is rule.decay.
func (r *Rule) Decay(debt, elapsed int64) int64 { return r.decay(debt, elapsed) }

// Over is rule.over.
func (r *Rule) Over(debt, amount int64) int64 { return r.over(debt, amount) }

// Remaining is rule.remaining.
func (r *Rule) Remaining(debt int64) int64 { return r.remaining(debt) }

// Wait is rule.wait.
func (r *Rule) Wait(units int64) int64 { return r.wait(units) }

// Convert is rule.convert.
func (r *Rule) Convert(debt, p int64) int64 { return r.convert(debt, p) }

// Settle is rule.settle.
func (r *Rule) Settle(debt, charged, actual, elapsed int64) int64 {
	return r.settle(debt, charged, actual, elapsed)
}
