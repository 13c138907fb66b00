package bucket

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/lua"
)

// command is a command that go-redis never sends twice: of a call that may have been applied nothing
// is known, and its own retries would charge again.
type command struct {
	*redis.Cmd
}

// NoRetry implements redis.Cmder.
func (command) NoRetry() bool {
	return true
}

func newCommand(ctx context.Context, args []any) command {
	return command{redis.NewCmd(ctx, args...)}
}

// The arguments of a command before its keys: EVALSHA, the script, the number of keys.
const callHead = 3

// applyBefore stands where the date goes after which the caller no longer waits.
const applyBefore = "0"

// call is one call of a script.
type call struct {
	store  *Redis
	script lua.Script
	keys   keyspace
	args   []any
	// nkeys is the number of keys so far, deadline the place of the apply-before date.
	nkeys    int
	deadline int
	group    int
	// again says that the script may be sent once more after an ambiguous error.
	again bool
}

func (r *Redis) newCall(tenant string, script lua.Script, keys, args int) *call {
	c := &call{store: r, script: script, keys: newKeyspace(r.namespace, tenant)}
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
	c.deadline = len(c.args)
}

func (c *call) arg(arg any) {
	c.args = append(c.args, arg)
}

func (c *call) rules(buckets []Bucket) {
	for i := range buckets {
		c.args = append(c.args, buckets[i].Limits.packed)
	}
}

// do runs the script and returns its reply.
//
// A script that comes too late does nothing and says so. If the caller still waits, the estimate of
// the server's clock was wrong: it is learned from that reply, and the script is sent once more.
func (c *call) do(ctx context.Context) (reply, error) {
	if err := checkContext(ctx); err != nil {
		return reply{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.store.timeout)
	defer cancel()
	c.args[2] = c.nkeys
	if c.store.testClock != nil {
		c.args = append(c.args, c.store.testClock())
	}
	answer, err := c.send(ctx)
	if c.again && errors.Is(err, ErrAmbiguous) && ctx.Err() == nil {
		answer, err = c.send(ctx)
	}
	if err == nil && answer.outcome == outcomeLate {
		answer, err = c.send(ctx)
		if err == nil && answer.outcome == outcomeLate {
			err = fmt.Errorf("%w: the call arrived after its deadline and was dropped", ErrUnavailable)
		}
	}
	return answer, err
}

// send runs the script by its hash, and by its text on a server that does not know it: one that was
// just promoted or flushed. NOSCRIPT means that nothing was run, so that this is no retry.
func (c *call) send(ctx context.Context) (reply, error) {
	deadline, _ := ctx.Deadline()
	if c.store.testClock == nil {
		c.args[c.deadline] = c.store.offsets.applyBefore(c.group, deadline)
	}
	c.args[0], c.args[1] = "evalsha", c.script.SHA
	sent := time.Now()
	text, err := c.process(ctx)
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		c.args[0], c.args[1] = "eval", c.script.Source
		sent = time.Now()
		text, err = c.process(ctx)
	}
	if err != nil {
		return reply{}, classify(err)
	}
	answer, err := newReply(text)
	if err == nil && c.store.testClock == nil {
		c.store.offsets.learn(c.group, sent, time.Now(), answer.now, answer.outcome == outcomeLate)
	}
	return answer, err
}

func (c *call) process(ctx context.Context) (string, error) {
	// A context that has ended before anything was sent is the one case that is surely not ambiguous.
	if err := ctx.Err(); err != nil {
		return "", err
	}
	cmd := newCommand(ctx, c.args)
	if err := c.store.client.Process(ctx, cmd); err != nil {
		return "", err
	}
	return cmd.Text()
}

// classify wraps the error of a command in what it means for the charge.
func classify(err error) error {
	var server redis.Error
	var network *net.OpError
	switch {
	case errors.As(err, &server):
		// A script reads everything that can be malformed before its first write, and Redis refuses that
		// first write or none: an error reply means that nothing was done.
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

func formatMilliseconds(n int64) string {
	return strconv.FormatInt(n, 10)
}
