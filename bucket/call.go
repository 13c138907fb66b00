package bucket

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/internal/deadline"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
	"github.com/gqlgen-ratelimit/ratelimit/lua"
)

// call is one call of a script.
type call struct {
	core   *core
	script *lua.Script
	tenant string
	keys   []address
	// args are the arguments. The first, the numbers, is made for each try: of extra, which is about the call as a whole,
	// and for each limit of the buckets as many values as perLimit says, which value returns.
	args     []any
	extra    int64
	perLimit int
	value    func(k int, b *Bucket, r *rule) [2]int64
	// exchange is what a holder says, of as many numbers for each limit, nil if the call is no exchange.
	exchange *Exchange
	// asked are the buckets by the policy, and owners those that may be blocked besides.
	asked  []Bucket
	owners []Owner
	// judged says that override records hold for the call, whose key is then the last one, records which
	// these are, and governed what they make of the buckets.
	judged   bool
	records  *overrideSet
	governed governing
	// settled says that the script is to take no notice of other records.
	settled bool
	// live is how many of the buckets asked are not those of a candidate.
	live int
	// rulesAt is the place of the first rules among the arguments, or zero.
	rulesAt int
	// claim is that of a take, nil if there is none.
	claim *idempotency.Claim
	// usage is what is counted, nil if nothing is, under keys and by arguments from these places on.
	usage              *usage
	usageKey, usageArg int
	// takes says that extra is what kind of take it is.
	takes bool
	// now is the time of the store, by an estimate or as a reply has told it, or zero.
	now int64
	// sent is when the script was called last.
	sent time.Time
	// again says that the script may be called once more after an ambiguous error.
	again bool
	// administers says that no request waits for the call.
	administers bool
	// bounds is the context of a call to a store that bounds its calls.
	bounds *deadline.Call
}

func (s *core) newCall(tenant string, script *lua.Script, keys, args int) *call {
	return &call{core: s, script: script, tenant: tenant, keys: make([]address, 0, keys), args: make([]any, 1, args)}
}

func (c *call) bucketKeys(buckets []Bucket, candidate string) {
	for i := range buckets {
		c.key(bucketAddress(&buckets[i].Owner, candidate))
	}
}

func (c *call) key(key address) {
	c.keys = append(c.keys, key)
}

// values says what the first argument is made of.
func (c *call) values(buckets []Bucket, extra int64, perLimit int, value func(k int, b *Bucket, r *rule) [2]int64) {
	c.asked, c.live, c.extra, c.perLimit, c.value = buckets, len(buckets), extra, perLimit, value
}

// overrides adds the key of the override records, after all others: the call is judged by them.
func (c *call) overrides() {
	c.key(address{kind: overridesKey})
	c.judged = true
}

// govern works the override records into the rules and what the numbers are made of.
func (c *call) govern() {
	c.governed = ungoverned(c.asked)
	if c.records != nil {
		c.governed = c.records.govern(c.asked, c.live, c.owners, c.estimate())
	}
	if c.takes {
		c.extra = kindOfTake(&c.governed) + state.CandidateOwner*int64(len(c.asked)-c.live)
	}
	if c.claim != nil {
		claim := claimOf(c.claim, c.governed.buckets[:c.live])
		c.args[1] = claim.Pack()
	}
	if c.rulesAt > 0 {
		for i := range c.governed.buckets {
			c.args[c.rulesAt+i] = c.governed.buckets[i].Limits.packed
		}
	}
}

// kindOfTake says whether the fast path of take.lua fits the buckets.
func kindOfTake(g *governing) int64 {
	if g.blocked != nil {
		return state.BlockedTake
	}
	for i := range g.buckets {
		if g.buckets[i].Limits.compiled.Soft {
			return state.AnyTake
		}
	}
	return state.FastTake
}

func (c *call) arg(arg any) {
	c.args = append(c.args, arg)
}

func (c *call) rules() {
	c.rulesAt = len(c.args)
	for range c.asked {
		c.args = append(c.args, nil)
	}
}

// dated names what depends on the time at which the script runs. The keys and arguments are read after it.
func (c *call) dated(now int64) {
	if c.takes {
		c.countIn(now)
	}
}

// arguments are those of a try that counts for nothing after the date before, unless that is zero, and has the windows
// of the calendar that hold now. The slice is used again by the next try; what stands in it is not.
func (c *call) arguments(before, now int64) []any {
	c.args[0] = c.numbers(before, now)
	return c.args
}

// numbers packs the first argument.
func (c *call) numbers(before, now int64) []byte {
	size, g := state.NumbersHead, &c.governed
	for i := range g.buckets {
		l := g.buckets[i].Limits.compiled
		size += (l.Columns*c.perLimit + state.CalendarNumbers*len(l.Calendars)) * state.DoubleSize
	}
	extra := c.extra
	if c.usage != nil {
		extra += int64(len(c.usage.all)) * state.Counted
		size += state.FirstCountSize(c.usage.stored(0))
	}
	b := state.AppendDouble(state.AppendDouble(make([]byte, 0, size), before), extra)
	if c.settled {
		b = append(b, state.AnyGeneration...)
	} else {
		b = append(b, g.generation[:]...)
	}
	b = state.AppendDouble(state.AppendDouble(b, g.from), g.until)
	k := 0
	for i := range g.buckets {
		l := g.buckets[i].Limits
		for j := range l.compiled.Columns {
			var numbers [state.ExchangeNumbers]int64
			if j < len(l.rules) {
				if c.exchange != nil {
					numbers = c.exchange.message.Limits[k].Numbers()
				} else {
					pair := c.value(k, &g.buckets[i], &l.rules[j])
					copy(numbers[:], pair[:])
				}
				k++
			}
			for _, n := range numbers[:c.perLimit] {
				b = state.AppendDouble(b, state.Exact(n))
			}
		}
		for _, calendar := range l.compiled.Calendars {
			window := calendar.Around(now)
			b = state.AppendDouble(state.AppendDouble(b, window.From), window.To)
		}
	}
	if c.usage != nil {
		b = c.usage.first(b, c.takes)
	}
	return b
}

// do runs the script and returns its reply.
//
// A script that comes too late, in another window of the calendar than it was sent, or under other
// override records, does nothing and says so. If the caller still waits, the estimate of the server's
// clock was wrong, or the records have changed: both are learned from that reply, and the script is sent
// once more. Records may change as often as they like: a call that has met others so many times is done under those that
// it was told last. They held after it began, so that it counts as one that came before the next change.
func (c *call) do(ctx context.Context) (reply, error) { //nolint:contextcheck // the call of a deadline is the context of its command
	if err := c.core.check(ctx); err != nil {
		return reply{}, err
	}
	if bounds := c.core.usual; bounds.Silence > 0 {
		if c.administers {
			bounds = c.core.administration
		}
		c.bounds = deadline.Begin(ctx, bounds)
		defer c.bounds.End()
		ctx = c.bounds
	}
	if c.judged {
		c.records = c.core.known.get(c.tenant)
	}
	c.govern()
	if err := c.unfit(); err != nil {
		return reply{}, err
	}
	answer, err := c.run(ctx)
	var first error
	if c.again && errors.Is(err, ErrAmbiguous) && !deadline.IsTimeout(err) && ctx.Err() == nil {
		first = err
		answer, err = c.run(ctx)
	}
	late, others := 0, 0
	for err == nil && answer.notRun() {
		if answer.outcome != state.OtherOverrides {
			late++
		} else {
			others++
			c.settled = others >= maxOthers
		}
		if late == maxLate {
			err = fmt.Errorf("%w: the call arrived after its deadline or in another window of the calendar, %d times, and was dropped", ErrUnavailable, late)
			break
		}
		if err = c.learn(answer); err == nil {
			answer, err = c.run(ctx)
		}
	}
	switch {
	case err == nil:
		return answer, nil
	case first != nil:
		// What a second try met, such as a server that has gone, says nothing about the first.
		return reply{}, first
	case others > 0:
		return reply{}, fmt.Errorf("%w (the override records of the tenant had changed, %d times)", err, others)
	default:
		return reply{}, err
	}
}

// maxLate is how often a call may arrive too late or in another window: with a wrong estimate of the
// server's clock, at the edge of a window, and with both set right.
const maxLate = 3

// maxOthers is after how many changes of the override records a call is done under those that it was told last: one that
// knew none or old ones is told the first, and most changes come alone.
const maxOthers = 2

// learn takes in what the reply of a script tells that did nothing.
func (c *call) learn(answer reply) error {
	c.now = answer.now
	if answer.outcome == state.OtherOverrides {
		set, err := readOverrides(answer.rest)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		// Whatever other calls learn meanwhile, this one is sent under what it was told itself: that is
		// wrong only if the records have changed again.
		c.records = c.core.known.learn(c.tenant, set, c.sent)
	}
	c.govern()
	return c.unfit()
}

// unfit returns why an exchange cannot be sent under the override records that are known: what it says of limits is about others.
func (c *call) unfit() error {
	if c.exchange == nil || c.governed.blocked == nil && leasedAlike(c.exchange.under, c.governed.buckets) {
		return nil
	}
	return errOtherLimits
}

// run has the engine run the script.
func (c *call) run(ctx context.Context) (reply, error) {
	c.sent = time.Now()
	return c.core.engine.run(ctx, c)
}

// estimate is the time of the store as far as it is known.
func (c *call) estimate() int64 {
	if c.now == 0 {
		c.now = c.core.engine.estimate(c)
	}
	return c.now
}
