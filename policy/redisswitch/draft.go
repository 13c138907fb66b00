package redisswitch

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redisplace"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

//go:embed read.lua
var readSource string

//go:embed write.lua
var writeSource string

var (
	readScript  = redis.NewScript(readSource)
	writeScript = redis.NewScript(writeSource)
)

// tooLarge is the digest of what is larger than switches are.
const tooLarge = "-"

// ErrMoved says that the switches are other ones than a [Draft] was read from: read them again, and decide again.
var ErrMoved = errors.New("redisswitch: somebody else has changed the mode switches")

// Draft is what the switches were when they were read, and what they are to be. It is for one caller.
type Draft struct {
	cfg    *Config
	digest string
	now    time.Time
	// unreadable is why what stands there are no switches. The draft has none then.
	unreadable error
	value      value
	// known are those that were read.
	known   []known
	written bool
}

// Read returns the switches as they are, to change them. What stands there and cannot be read are none: what is written takes its place.
func (s *Switches) Read(ctx context.Context) (*Draft, error) {
	r, err := s.cfg.read(ctx, "")
	if err != nil {
		return nil, err
	}
	return &Draft{cfg: &s.cfg, digest: r.digest, now: r.now, unreadable: r.unreadable, value: r.value, known: r.switches}, nil
}

// All returns the switches that are in force, by their scopes. The error is [ErrUnreadable] if what stands there are none.
func (d *Draft) All() ([]Switch, error) {
	return slices.SortedFunc(slices.Values(d.value.Switches), func(a, b Switch) int { return byScope(&a.ModeSwitch, &b.ModeSwitch) }), d.unreadable
}

// Easings returns what the switches that are in force say, each until its end by the clock of this process.
func (d *Draft) Easings() []tiers.Easing { return easings(d.known) }

// Find returns the switch of a scope, nil if none is in force.
func (d *Draft) Find(tenant, operation string) *Switch {
	if at := d.index(tenant, operation); at >= 0 {
		found := d.value.Switches[at]
		return &found
	}
	return nil
}

func (d *Draft) index(tenant, operation string) int {
	return slices.IndexFunc(d.value.Switches, func(s Switch) bool { return s.Tenant == tenant && s.Operation == operation })
}

// Put adds a switch, in the place of one of the same scope, and returns it as it is written. Since is set by it. The error says what is
// wrong with the switch, or is [ErrUntil] or [ErrTooMany].
func (d *Draft) Put(m event.ModeSwitch) (Switch, error) {
	m.Since = d.now
	m.Until = m.Until.UTC().Truncate(time.Millisecond)
	if _, err := easingOf(&m, m.Until); err != nil {
		return Switch{}, err
	}
	if left := m.Until.Sub(d.now); left <= 0 || left > Longest {
		return Switch{}, fmt.Errorf("%w: in the Redis it is %v, and it was to end at %v", ErrUntil,
			d.now.Format(time.DateTime), m.Until.Format(time.DateTime))
	}
	d.Remove(m.Tenant, m.Operation)
	if len(d.value.Switches) >= tiers.MaxEasings {
		return Switch{}, ErrTooMany
	}
	put := Switch{m, d.next()}
	d.value.Switches = append(d.value.Switches, put)
	return put, nil
}

// Remove removes the switch of a scope, and returns it: nil if there was none.
func (d *Draft) Remove(tenant, operation string) *Switch {
	was := d.Find(tenant, operation)
	if was != nil {
		at := d.index(tenant, operation)
		d.value.Switches = slices.Delete(d.value.Switches, at, at+1)
	}
	return was
}

// next is the revision that is written: larger than the one before, and than those that a Redis has lost.
func (d *Draft) next() uint64 { return max(d.value.Revision+1, uint64(max(d.now.UnixMilli(), 1))) }

// Write writes the draft, also one that nothing was changed in: instances then know that the Redis has what holds. The error is [ErrMoved] if the
// switches are no longer those that were read, and [ErrTooMany] if they have no room. Of a draft that was written it writes nothing.
func (d *Draft) Write(ctx context.Context) error {
	if d.written {
		return nil
	}
	next := value{d.next(), d.value.Switches}
	// It has no value that JSON has not.
	text, _ := json.Marshal(next)
	if len(text) > maxValue {
		return ErrTooMany
	}
	ctx, cancel := redisplace.Bounded(ctx)
	defer cancel()
	n, err := writeScript.Run(ctx, d.cfg.Client, []string{d.cfg.key()},
		d.digest, maxValue, text, (2 * Longest).Milliseconds(), d.cfg.channel()).Int()
	switch {
	case err != nil:
		return fmt.Errorf("redisswitch: %w", err)
	case n == 0:
		return ErrMoved
	}
	d.written = true
	return nil
}

func byScope(a, b *event.ModeSwitch) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Operation, b.Operation))
}

// read is what stands there.
type read struct {
	digest string
	now    time.Time
	// same says that nothing has changed since the digest that was given, and lost that nothing stands there.
	same, lost bool
	value      value
	switches   []known
	// unreadable is why what stands there are no switches.
	unreadable error
}

// read reads what has changed since a digest.
func (c *Config) read(ctx context.Context, since string) (*read, error) {
	ctx, cancel := redisplace.Bounded(ctx)
	defer cancel()
	asked := time.Now()
	reply, err := readScript.Run(ctx, c.Client, []string{c.key()}, since, maxValue).StringSlice()
	if err != nil {
		return nil, fmt.Errorf("redisswitch: %w", err)
	}
	const parts = 3
	if len(reply) != parts {
		return nil, fmt.Errorf("redisswitch: a reply of %d parts", len(reply))
	}
	now, err := strconv.ParseInt(reply[0], 10, 64)
	if err != nil {
		return nil, errors.New("redisswitch: a reply without a time")
	}
	r := &read{digest: reply[1], now: time.UnixMilli(now).UTC()}
	switch r.digest {
	case "":
		r.lost = true
	case tooLarge:
		r.unreadable = fmt.Errorf("%w: they have more than %d bytes", ErrUnreadable, maxValue)
	case since:
		r.same = true
	default:
		r.value, r.switches, r.unreadable = decode(reply[2], r.now, asked)
	}
	return r, nil
}
