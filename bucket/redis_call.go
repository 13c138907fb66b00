package bucket

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/internal/deadline"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
	"github.com/gqlgen-ratelimit/ratelimit/lua"
)

// command is a command that go-redis never sends twice: of a call that may have been applied nothing
// is known, and its own retries would charge again.
type command struct {
	*redis.Cmd

	// hurried says that it has the deadline of its caller, which comes before the timeout of the store.
	hurried bool
}

// NoRetry implements redis.Cmder.
func (command) NoRetry() bool {
	return true
}

func newCommand(ctx context.Context, args []any) command {
	return command{Cmd: redis.NewCmd(ctx, args...)}
}

// The arguments of a command before its keys: EVALSHA, the script, the number of keys.
const callHead = 3

// call is one call of a script.
type call struct {
	store  *Redis
	script *lua.Script
	keys   keyspace
	args   []any
	// nkeys is the number of keys so far.
	nkeys int
	group int
	// numbers is the first argument: extra, which is about the call as a whole, and for each limit of the buckets as many
	// values as perLimit says, which value returns.
	numbers  []byte
	extra    int64
	perLimit int
	value    func(k int, r *rule) [2]int64
	// asked are the buckets by the policy, and owners those that may be blocked besides.
	asked  []Bucket
	owners []Owner
	// judged says that override records hold for the call, whose key is then the last one, records which
	// these are, and governed what they make of the buckets.
	judged   bool
	records  *overrideSet
	governed governing
	// live is how many of the buckets asked are not those of a candidate.
	live int
	// rulesAt is the place of the first rules among the arguments, or zero.
	rulesAt int
	// claim is that of a take, nil if there is none.
	claim *idempotency.Claim
	// takes says that extra is what kind of take it is.
	takes  bool
	tenant string
	// now is the time of the server where a reply has told it, or zero.
	now int64
	// sent is when the script was sent last.
	sent time.Time
	// again says that the script may be sent once more after an ambiguous error.
	again bool
	// hurried is that of the commands.
	hurried bool
	// lent says that a command has the arguments and the numbers, and perhaps still reads them.
	lent bool
}

func (r *Redis) newCall(tenant string, script *lua.Script, keys, args int) *call {
	c := &call{store: r, script: script, keys: newKeyspace(r.namespace, tenant), tenant: tenant}
	c.args = make([]any, callHead, callHead+keys+args+1)
	c.group = r.offsets.group(tenant)
	return c
}

func (c *call) bucketKeys(buckets []Bucket) {
	for i := range buckets {
		c.key(c.keys.bucket(buckets[i].Owner))
	}
}

func (c *call) key(key string) {
	c.args = append(c.args, key)
	c.nkeys++
}

// values adds the argument after the keys.
func (c *call) values(buckets []Bucket, extra int64, perLimit int, value func(k int, r *rule) [2]int64) {
	c.asked, c.live, c.extra, c.perLimit, c.value = buckets, len(buckets), extra, perLimit, value
	c.args = append(c.args, nil)
}

// overrides adds the key of the override records, after all others: the call is judged by them.
func (c *call) overrides() {
	c.key(c.keys.overrides())
	c.judged = true
}

// govern works the override records into the numbers and the rules.
func (c *call) govern() {
	c.own()
	c.governed = ungoverned(c.asked)
	if c.records != nil {
		c.governed = c.records.govern(c.asked, c.live, c.owners, c.estimate())
	}
	if c.takes {
		c.extra = kindOfTake(&c.governed) + state.CandidateOwner*int64(len(c.asked)-c.live)
	}
	c.numbers = packNumbers(&c.governed, c.extra, c.perLimit, c.value)
	c.args[callHead+c.nkeys] = c.numbers
	if c.claim != nil {
		c.args[callHead+c.nkeys+1] = claimOf(c.claim, c.governed.buckets[:c.live]).Pack()
	}
	if c.rulesAt > 0 {
		for i := range c.governed.buckets {
			c.args[c.rulesAt+i] = c.governed.buckets[i].Limits.packed
		}
	}
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

// do runs the script and returns its reply.
//
// A script that comes too late, in another window of the calendar than it was sent, or under other
// override records, does nothing and says so. If the caller still waits, the estimate of the server's
// clock was wrong, or the records have changed: both are learned from that reply, and the script is sent
// once more. Records may change as often as they like: who changes many at once drops no call, which ends
// with its deadline at the latest.
func (c *call) do(ctx context.Context) (reply, error) {
	if err := checkContext(ctx); err != nil {
		return reply{}, err
	}
	ctx, hurried, cancel := deadline.Bound(ctx, c.store.timeout)
	defer cancel()
	c.hurried = hurried
	if c.judged {
		c.records = c.store.overrides.get(c.tenant)
	}
	c.govern()
	c.args[2] = c.nkeys
	if c.store.testClock != nil {
		c.args = append(c.args, c.store.testClock())
	}
	answer, err := c.send(ctx)
	var first error
	if c.again && errors.Is(err, ErrAmbiguous) && ctx.Err() == nil {
		first = err
		answer, err = c.send(ctx)
	}
	for late := 0; err == nil && answer.notRun(); {
		if answer.outcome != state.OtherOverrides {
			late++
		}
		if late == maxLate {
			err = fmt.Errorf("%w: the call arrived after its deadline or in another window of the calendar, %d times, and was dropped", ErrUnavailable, late)
			break
		}
		if err = c.learn(answer); err == nil {
			answer, err = c.send(ctx)
		}
	}
	switch {
	case err == nil:
		return answer, nil
	case first != nil:
		// What a second try met, such as a server that has gone, says nothing about the first.
		return reply{}, first
	default:
		return reply{}, err
	}
}

// maxLate is how often a call may arrive too late or in another window: with a wrong estimate of the
// server's clock, at the edge of a window, and with both set right.
const maxLate = 3

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
		c.records = c.store.overrides.learn(c.tenant, set, c.sent)
	}
	c.govern()
	return nil
}

// own gives the next try arguments and numbers of its own: a command that was sent before may not have
// left yet.
func (c *call) own() {
	if !c.lent {
		return
	}
	c.args, c.numbers, c.lent = slices.Clone(c.args), slices.Clone(c.numbers), false
	c.args[callHead+c.nkeys] = c.numbers
}

// send runs the script by its hash, and by its text on a server that does not know it: one that was
// just promoted or flushed. NOSCRIPT means that nothing was run, so that this is no retry.
func (c *call) send(ctx context.Context) (reply, error) {
	c.own()
	c.date(ctx)
	c.args[0], c.args[1] = "evalsha", c.script.SHA
	c.sent = time.Now()
	text, err := c.process(ctx)
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		c.own()
		c.args[0], c.args[1] = "eval", c.script.Source
		c.sent = time.Now()
		text, err = c.process(ctx)
	}
	if err != nil {
		return reply{}, classify(err)
	}
	answer, err := newReply(text)
	if err == nil && c.store.testClock == nil {
		c.store.offsets.learn(c.group, c.sent, time.Now(), answer.now, answer.outcome == state.Late)
	}
	return answer, err
}

// date fills in what depends on the time of the server: until when the caller waits, and the windows
// of the calendar.
func (c *call) date(ctx context.Context) {
	if c.store.testClock == nil {
		deadline, _ := ctx.Deadline()
		state.PutDouble(c.numbers[state.NumberBefore:], c.store.offsets.applyBefore(c.group, deadline))
	}
	putWindows(c.numbers, c.governed.buckets, c.perLimit, c.estimate())
}

// estimate is the time of the server as far as it is known.
func (c *call) estimate() int64 {
	if c.now != 0 {
		return c.now
	}
	return c.store.now(c.group)
}

// now estimates the time of the server.
func (r *Redis) now(group int) int64 {
	if r.testClock != nil {
		return r.testClock() + r.testSkew
	}
	return r.offsets.now(group)
}

func (c *call) process(ctx context.Context) (string, error) {
	// A context that has ended before anything was sent is the one case that is surely not ambiguous.
	if err := ctx.Err(); err != nil {
		return "", err
	}
	cmd := newCommand(ctx, c.args)
	cmd.hurried = c.hurried
	c.lent = true
	key, _ := c.args[callHead].(string)
	if err := c.store.pipeline.process(ctx, cmd, key, callHead+c.nkeys); err != nil {
		return "", err
	}
	return cmd.Text()
}

// classify wraps the error of a command in what it means for the charge.
func classify(err error) error {
	var server redis.Error
	var network *net.OpError
	switch {
	case errors.Is(err, ErrUnavailable), errors.Is(err, ErrAmbiguous):
		// What stands before the node knows that nothing was sent, and a batch what was.
		return err
	case errors.As(err, &server):
		// A script reads everything that can be malformed before its first write, and Redis refuses that
		// first write or none: an error reply of Redis means that nothing was done. One that a proxy makes up
		// looks the same, and what was done behind it nobody can tell.
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	case errors.As(err, &network):
		if network.Op == "dial" {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		return fmt.Errorf("%w: %w", ErrAmbiguous, err)
	case errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted), errors.Is(err, redis.ErrClosed),
		// A deadline that ends while the command is on its way shows as an error of the connection;
		// the context's own error comes from waiting for one.
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	default:
		return fmt.Errorf("%w: %w", ErrAmbiguous, err)
	}
}
