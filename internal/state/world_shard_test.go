package state_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// shardChains is from which chain on all calls are those of a shard, and shardSteps how many of them are made before those that are compared.
const (
	shardChains = 1 << 40
	shardSteps  = 12
)

// shardWorld is what a chain of a shard has besides.
type shardWorld struct {
	record, marker []byte
	rules          []state.Rule
}

// shard draws a call of a shard.
func (w *world) shard(c *call) {
	c.script = "shard"
	s := &w.sharded
	if s.rules == nil {
		w.drawShardRules()
	}
	switch w.IntN(30) {
	case 0:
		w.now -= w.Int64N(120)
	case 1:
		w.now += w.Int64N(4000)
	default:
		w.now += w.Int64N(60)
	}
	kind := []int64{state.ShardTake, state.ShardTake, state.ShardTake, state.ShardOffer, state.ShardPut, state.ShardPut, state.ShardBack, state.ShardBeat}[w.IntN(8)]
	c.Now, c.expiry = w.now, w.now+70_000
	if c.key(&s.record); kind == state.ShardBack {
		if w.one(2) {
			s.marker = nil
		}
		c.key(&s.marker)
	}
	a := state.ShardCall{Instance: [8]byte{byte(w.IntN(2))}, Name: [8]byte{1, byte(w.IntN(4))}, Length: 2000 + w.Int64N(2)}
	if !w.one(4) {
		a.Least = w.now - 80 + w.Int64N(140)
	}
	const holder, number = 2, 2 + 16 + 2 + 6
	if len(s.record) > number+6 && !w.one(8) {
		copy(a.Holder[:], s.record[holder:])
		a.Number = state.ReadUint(s.record[number:], 6)
		if w.one(8) {
			a.Number = max(0, a.Number+w.Int64N(3)-1)
		}
	}
	switch kind {
	case state.ShardOffer, state.ShardBeat:
		a.Clock = max(0, w.now-firstNow+w.Int64N(40)-20)
	default:
		a.Clock = w.now - w.Int64N(100)
	}
	if kind == state.ShardBack && w.one(10) {
		a.Clock = w.now - state.MarkerLife + w.Int64N(3) - 1
	}
	var limits, answer []byte
	for i := range s.rules {
		limits = s.rules[i].AppendShard(limits, w.near(s.rules[i].Capacity, 0, 1, s.rules[i].Capacity/100, s.rules[i].Capacity/10))
	}
	if w.one(60) {
		limits[w.IntN(len(limits))] ^= 1
	}
	if kind == state.ShardPut {
		answer = w.shardAnswer()
	}
	c.Args = []string{w.numbers(kind, nil, 0, nil), string(a.Append(nil)), string(limits), string(answer)}
}

func (w *world) drawShardRules() {
	for len(w.sharded.rules) < 1+w.IntN(3) {
		r := state.NewRule(state.Rule{ID: uint16(len(w.sharded.rules) + 1), Tag: state.TokenBucket, P: w.size(1000), R: w.size(1 << 20), Capacity: w.size(1 << 30), Lenient: w.one(4)})
		if r.Shardable() {
			w.sharded.rules = append(w.sharded.rules, r)
		}
	}
}

// shardAnswer draws an answer of home.
func (w *world) shardAnswer() []byte {
	a := state.ExchangeAnswer{Holders: w.IntN(5)}
	if w.one(8) {
		a.Status = byte(w.IntN(5))
	}
	for i := range w.sharded.rules {
		_, capacity, rate := w.sharded.rules[i].Leasing()
		if a.Status == state.Exchanged {
			a.Given = append(a.Given, state.Given{
				Capacity: w.near(capacity, capacity/4, 1), Rate: w.near(rate, rate/4, 1), Level: w.near(capacity, capacity/4), DueCapacity: w.near(capacity, capacity/8),
				DueRate: w.near(rate, rate/8), Left: w.near(capacity, 1), Contended: w.one(3),
			})
		}
	}
	return a.AppendShardAnswer(nil)
}

// shardNext draws the next call of a chain that is all about a shard, after some that are not compared.
func (w *world) shardNext() *call {
	for w.sharded.rules == nil || w.sharded.record == nil {
		for range shardSteps {
			c := &call{}
			w.shard(c)
			reply, err := state.Shard(c.Call)
			if err != nil {
				continue
			}
			for _, write := range reply.Writes {
				*c.places[write.Key] = write.Value
			}
		}
	}
	c := &call{}
	w.shard(c)
	return c
}

func TestGoAndTheScriptOfAShardDecideAndStoreTheSameBytes(t *testing.T) {
	t.Parallel()
	c := newComparison(t, startRedis(t))
	for first := uint64(shardChains); c.calls < *comparedCalls; first += batch {
		require.NoError(t, c.run(first))
	}
	t.Logf("%d calls, %d errors; script and outcome: %v", c.calls, c.errors, c.outcomes)
}

var shardMutants = []mutant{
	{"shard", "s.updated, least) - moment > LEASE_STEP", "s.updated, least) - moment > LEASE_STEP + 1"},
	{"shard", "s.number < known_number then", "s.number + 1 < known_number then"},
	{"shard", "known_number then\ndrop()\nrecord()", "known_number then\ndrop()"},
	{"shard", "least == 0 and s.number > 0", "least == 0"},
	{"shard", "come < 2 * missing + 2 * p.rate", "come < missing"},
	{"shard", "* (LEASE_DRIFT - 1) + p.carry", "* (LEASE_DRIFT - 1)"},
	{"shard", "not blind and moment < s.deadline", "not blind"},
	{"shard", "if n > p.capacity and p.left < n then", "if n > p.capacity then"},
	{"shard", "moment >= s.began + s.gap", "true"},
	{"shard", "s.began + s.interval + SHARD_CLAIM", "s.began + s.interval"},
	{"shard", "(s.number > 1 or s.number == 1 and s.pending == 0)", "s.number > 1"},
	{"shard", "s.deadline = 0\nend\nlocal asked", "end\nlocal asked"},
	{"shard", "p.gives_level = p.capacity - capacity, p.rate - rate, p.level - level", "p.gives_level = p.capacity - capacity, p.rate - rate, 0"},
	{"shard", "s.number, s.pending = s.number + 1, 1", "s.number, s.pending = s.number + 2, 1"},
	{"shard", "if s.by == instance then", "if true then"},
	{"shard", "ticking = max(ticking, s.clock)", ""},
	{"shard", "return put_back(true)", "return status_reply(SHARD_OTHER)"},
	{"shard", "ticking + length - floor", "moment + length - floor"},
	{"shard", "p.level, p.left = min(p.level + g.level, p.capacity), g.left", "p.level, p.left = p.level + g.level, g.left"},
	{"shard", "s.pending == 0 or s.holder ~= known or s.number ~= known_number", "s.pending == 0 or s.holder ~= known"},
	{"shard", "moment - ticking >= MARKER_LIFE", "moment - ticking > MARKER_LIFE"},
	{"shard", "min(elapsed * max(1, rate), EXACT)", "0"},
	{"shard", "moment < max(s.deadline, s.began + length)", "moment < s.deadline"},
	{"shard", "s.barred = moment + SHARD_BARRED", ""},
	{"shard", "> 3 * p.before + 40 * noise", "> 3 * p.before"},
}

func TestAMistakeInTheScriptOfAShardIsFound(t *testing.T) {
	t.Parallel()
	areFound(t, shardMutants, shardChains)
}
