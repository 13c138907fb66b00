package bucket

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/internal/deadline"
	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// command is a command that go-redis never sends twice: of a call that may have been applied nothing
// is known, and its own retries would charge again.
type command struct{ *redis.Cmd }

// NoRetry implements redis.Cmder.
func (command) NoRetry() bool {
	return true
}

func newCommand(ctx context.Context, args []any) command {
	return command{Cmd: redis.NewCmd(ctx, args...)}
}

// The arguments of a command before its keys: EVALSHA, the script, the number of keys.
const callHead = 3

// run implements [engine]. It runs the script by its hash, and by its text on a server that does not know it: one that
// was just promoted or flushed. NOSCRIPT means that nothing was run, so that this is no retry.
func (r *Redis) run(_ context.Context, c *call) (reply, error) {
	group := r.group(c)
	text, err := r.send(c, group, "evalsha", c.script.SHA) //nolint:contextcheck // the call of a deadline is the context of its command
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		c.sent = time.Now()
		text, err = r.send(c, group, "eval", c.script.Source) //nolint:contextcheck // the call of a deadline is the context of its command
	}
	if err != nil {
		return reply{}, classify(err)
	}
	answer, err := newReply(text)
	if err == nil && r.testClock == nil {
		r.offsets.learn(group, c.sent, time.Now(), answer.now, answer.outcome == state.Late)
	}
	return answer, err
}

// group is that of the node of the call.
func (r *Redis) group(c *call) int {
	if c.script == &r.scripts.Heartbeat && len(r.offsets.groups) > 1 {
		return int(crc16(newKeyspace(r.namespace, c.tenant).key(c.keys[0]))) % clusterSlots / slotsPerGroup
	}
	return r.offsets.group(c.tenant)
}

// estimate implements [engine].
func (r *Redis) estimate(c *call) int64 {
	if r.testClock != nil {
		return r.testClock() + r.testSkew
	}
	return r.offsets.now(r.group(c))
}

// send sends the script, by its hash or its text, in a command of its own: one that was sent before may not have left
// yet.
func (r *Redis) send(c *call, group int, verb, script string) (string, error) {
	// A context that has ended before anything was sent is the one case that is surely not ambiguous.
	switch err := c.bounds.Err(); {
	case errors.Is(err, context.DeadlineExceeded):
		return "", fmt.Errorf("%w: %w", ErrBusy, err)
	case err != nil:
		return "", err
	}
	before := int64(0)
	if r.testClock == nil {
		// The caller may wait for as long: how long it does is known when the node was silent for too long.
		before = r.offsets.applyBefore(group, c.bounds.Until())
	}
	now := c.estimate()
	c.dated(now)
	args := make([]any, 0, callHead+len(c.keys)+len(c.args)+1)
	args = append(args, verb, script, len(c.keys))
	keys := newKeyspace(r.namespace, c.tenant)
	for _, key := range c.keys {
		args = append(args, keys.key(key))
	}
	args = append(args, c.arguments(before, now)...)
	if r.testClock != nil {
		args = append(args, r.testClock())
	}
	first, _ := args[callHead].(string)
	w := newWaiter(c.bounds, args, callHead+len(c.keys))
	var err error
	if c.administers {
		err = r.pipeline.alone(w)
	} else {
		err = r.pipeline.process(w, first)
	}
	if err != nil {
		return "", err
	}
	return w.cmd.Text()
}

// read implements [engine].
func (r *Redis) read(ctx context.Context, tenant string, key address) ([]byte, error) {
	call := deadline.Begin(ctx, r.administration)
	defer call.End()
	w := newWaiter(call, []any{"get", newKeyspace(r.namespace, tenant).key(key)}, 1) //nolint:contextcheck // the call of a deadline is the context of its command
	if err := r.pipeline.alone(w); err != nil {                                      //nolint:contextcheck // the same
		if errors.Is(err, redis.Nil) {
			return nil, nil
		}
		return nil, classify(err)
	}
	text, err := w.cmd.Text()
	return []byte(text), err
}

// remove implements [engine].
func (r *Redis) remove(ctx context.Context, tenant string, keys []address) error {
	args, space := make([]any, 0, len(keys)+1), newKeyspace(r.namespace, tenant)
	args = append(args, "unlink")
	for _, key := range keys {
		args = append(args, space.key(key))
	}
	call := deadline.Begin(ctx, r.administration)
	defer call.End()
	return classify(r.pipeline.alone(newWaiter(call, args, len(args)-1))) //nolint:contextcheck // the call of a deadline is the context of its command
}

// classify wraps an error reply in what it means for the charge, and a context that ended before anything was sent; all
// else has its meaning already, see waiter.meaning.
func classify(err error) error {
	switch {
	case err == nil, errors.Is(err, ErrUnavailable), errors.Is(err, ErrAmbiguous), errors.Is(err, ErrBusy):
		return err
	default:
		// A script reads everything that can be malformed before its first write, and Redis refuses that
		// first write or none: an error reply of Redis means that nothing was done. One that a proxy makes up
		// looks the same, and what was done behind it nobody can tell.
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
}
