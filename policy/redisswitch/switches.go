package redisswitch

import (
	"cmp"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Bounds of switches.
const (
	// Longest is for how long a switch holds at most. What is to hold for longer belongs into the policy.
	Longest = 7 * 24 * time.Hour
	// MaxText is how many bytes a reason, or a name of who has set a switch, has at most.
	MaxText = 512
	// maxSwitch is how many bytes a switch and its scope have in the Redis.
	maxSwitch = 8 << 10
	// maxFields is how many fields are read: what is more is no work of this package.
	maxFields = 4 * tiers.MaxEasings
	// defaultNamespace is that of budgets.
	defaultNamespace = "main"
)

// Errors of [Switches.Set].
var (
	// ErrUntil says that a switch has ended already, or holds for longer than [Longest], by the clock of the Redis.
	ErrUntil = errors.New("redisswitch: a switch has to end in the future, and within a week")
	// ErrTooMany says that tiers.MaxEasings switches are in force.
	ErrTooMany = fmt.Errorf("redisswitch: %d switches are in force: end some", tiers.MaxEasings)
	// ErrUnreadable says that what stands there is no switch. It is left out, or what is known holds on.
	ErrUnreadable = errors.New("redisswitch: what stands there is no mode switch")
)

//go:embed set.lua
var setSource string

//go:embed end.lua
var endSource string

//go:embed read.lua
var readSource string

var (
	setScript  = redis.NewScript(setSource)
	endScript  = redis.NewScript(endSource)
	readScript = redis.NewScript(readSource)
)

// Config says where switches are.
type Config struct {
	// Client is that of the Redis. It is required, and the caller's to close. redisclient.Open makes one whose calls end when
	// their deadline does.
	Client redis.UniversalClient
	// Namespace is that of bucket.RedisConfig. Empty means main.
	Namespace string
}

func (c Config) withDefaults() Config {
	c.Namespace = cmp.Or(c.Namespace, defaultNamespace)
	return c
}

func (c *Config) validate() error {
	var errs []error
	if c.Client == nil {
		errs = append(errs, errors.New("redisswitch: Config.Client is nil: set the result of redisclient.Open"))
	}
	// A name is judged as a namespace of budgets is.
	if _, err := bucket.ACLRules(c.Namespace, false); err != nil {
		errs = append(errs, fmt.Errorf("redisswitch: Config.Namespace: %w", err))
	}
	return errors.Join(errs...)
}

func (c *Config) key() string     { return "rl:" + c.Namespace + ":modes" }
func (c *Config) channel() string { return c.key() + ":hint" }

// bounded gives a call a deadline, without which clients for budgets give it a tenth of a second. One that the caller has
// set holds if it is sooner.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, bucket.DefaultAdminTimeout)
}

// Switches are those of a Redis. They are made by [New] and safe for concurrent use.
type Switches struct{ cfg Config }

// New returns the switches of a Redis. It does not connect. The error has everything that is wrong with the configuration.
func New(cfg Config) (*Switches, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Switches{cfg}, nil
}

// Set puts a switch in force on every instance that follows, in the place of one of the same scope. Since is set by it. The error says what
// is wrong with the switch, or is [ErrUntil] or [ErrTooMany].
func (s *Switches) Set(ctx context.Context, m event.ModeSwitch) error {
	m.Since = time.Now().UTC().Truncate(time.Millisecond)
	m.Until = m.Until.UTC().Truncate(time.Millisecond)
	if _, err := easingOf(&m, m.Until); err != nil {
		return err
	}
	// It has no value that JSON has not.
	text, _ := json.Marshal(m)
	ctx, cancel := bounded(ctx)
	defer cancel()
	reply, err := setScript.Run(ctx, s.cfg.Client, []string{s.cfg.key()},
		fieldOf(&m), text, m.Until.UnixMilli(), stamp(), s.cfg.channel(), tiers.MaxEasings, Longest.Milliseconds()).Int64Slice()
	if err != nil {
		return fmt.Errorf("redisswitch: %w", err)
	}
	const parts, tooMany = 2, -1
	switch {
	case len(reply) != parts:
		return fmt.Errorf("redisswitch: a reply of %d parts", len(reply))
	case reply[0] == tooMany:
		return ErrTooMany
	case reply[0] == 0:
		return fmt.Errorf("%w: in the Redis it is %v, and it was to end at %v", ErrUntil,
			time.UnixMilli(reply[1]).UTC().Format(time.DateTime), m.Until.Format(time.DateTime))
	default:
		return nil
	}
}

// End ends the switch of a scope, and returns whether there was one.
func (s *Switches) End(ctx context.Context, tenant, operation string) (was bool, err error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	n, err := endScript.Run(ctx, s.cfg.Client, []string{s.cfg.key()},
		fieldOf(&event.ModeSwitch{Tenant: tenant, Operation: operation}), stamp(), s.cfg.channel(), 2*Longest.Milliseconds()).Int()
	if err != nil {
		return false, fmt.Errorf("redisswitch: %w", err)
	}
	return n > 0, nil
}

// List returns the switches that are in force, by their scopes. Those that cannot be read are left out, and the error is
// [ErrUnreadable] with how many; what is returned beside it is good.
func (s *Switches) List(ctx context.Context) ([]event.ModeSwitch, error) {
	r, err := s.cfg.read(ctx, "")
	if err != nil {
		return nil, err
	}
	var all []event.ModeSwitch
	for _, one := range r.switches {
		all = append(all, one.ModeSwitch)
	}
	slices.SortFunc(all, byScope)
	if r.refused > 0 {
		return all, fmt.Errorf("%w: %d are left out", ErrUnreadable, r.refused)
	}
	return all, nil
}

func byScope(a, b event.ModeSwitch) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Operation, b.Operation))
}

// stamp differs from all others.
func stamp() string {
	var random [8]byte
	// It never fails.
	_, _ = rand.Read(random[:])
	return hex.EncodeToString(random[:])
}

// fieldOf is the field of a scope. No name holds a zero.
func fieldOf(m *event.ModeSwitch) string { return "s:" + m.Tenant + "\x00" + m.Operation }

// easingOf returns what a switch says until a time, and what is wrong with it.
func easingOf(m *event.ModeSwitch, until time.Time) (tiers.Easing, error) {
	e := tiers.Easing{Tenant: m.Tenant, Operation: m.Operation, Until: until}
	for _, mode := range [...]bucket.Mode{bucket.Warn, bucket.Shadow, bucket.Off} {
		if m.AtMost == mode.String() {
			e.AtMost = mode
		}
	}
	errs := []error{e.Check()}
	for _, text := range [...]struct{ what, text string }{{"reason", m.Reason}, {"name of who has set it", m.By}} {
		if strings.TrimSpace(text.text) == "" || len(text.text) > MaxText || !utf8.ValidString(text.text) {
			errs = append(errs, fmt.Errorf("redisswitch: a switch needs a %s of 1 to %d bytes of UTF-8", text.what, MaxText))
		}
	}
	if year := m.Until.Year(); !m.Until.IsZero() && (year < 1970 || year > 9999) {
		errs = append(errs, ErrUntil)
	}
	return e, errors.Join(errs...)
}

// read is what stands there.
type read struct {
	stamp string
	// same says that nothing has changed since the stamp that was given, and lost that there is nothing.
	same, lost bool
	switches   map[string]known
	// unreadable are the fields of those that cannot be read, and refused is how many these are.
	unreadable map[string]bool
	refused    int
}

// known is a switch with its end by the clock of this process, which another clock that is wrong does not change.
type known struct {
	event.ModeSwitch
	easing tiers.Easing
}

// read reads what has changed since a stamp.
func (c *Config) read(ctx context.Context, since string) (*read, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	asked := time.Now()
	reply, err := readScript.Run(ctx, c.Client, []string{c.key()}, since, maxFields, maxSwitch).StringSlice()
	if err != nil {
		return nil, fmt.Errorf("redisswitch: %w", err)
	}
	const head = 2
	if len(reply) < head || len(reply)%2 != 0 {
		return nil, fmt.Errorf("redisswitch: a reply of %d parts", len(reply))
	}
	now, err := strconv.ParseInt(reply[0], 10, 64)
	if err != nil {
		return nil, errors.New("redisswitch: a reply without a time")
	}
	r := &read{stamp: reply[1], switches: make(map[string]known), unreadable: make(map[string]bool)}
	switch r.stamp {
	case "-":
		return nil, fmt.Errorf("%w: the key has too many fields, or too long a stamp", ErrUnreadable)
	case "":
		r.lost = true
		return r, nil
	case since:
		r.same = true
		return r, nil
	}
	for i := head; i < len(reply); i += 2 {
		one, err := decode(reply[i], reply[i+1], now, asked)
		switch {
		case err != nil:
			r.unreadable[reply[i]] = true
			r.refused++
		case asked.Before(one.easing.Until):
			r.switches[reply[i]] = one
		}
	}
	return r, nil
}

// decode reads a switch, which anybody may have written.
func decode(field, text string, now int64, asked time.Time) (one known, err error) {
	ends, text, found := strings.Cut(text, " ")
	until, err := strconv.ParseInt(ends, 10, 64)
	if err != nil || !found || json.Unmarshal([]byte(text), &one.ModeSwitch) != nil {
		return one, ErrUnreadable
	}
	// One that holds for longer than it may has not been set by Set.
	left := until - now
	if one.Until.UnixMilli() != until || fieldOf(&one.ModeSwitch) != field || left > Longest.Milliseconds() {
		return one, ErrUnreadable
	}
	one.easing, err = easingOf(&one.ModeSwitch, asked.Add(time.Duration(max(left, 0))*time.Millisecond))
	return one, err
}

// ACLRules returns the least rights in Redis with which everything in this package works, as rules for ACL SETUSER that are
// added to those of bucket.ACLRules. An empty namespace means main. The error is that of one that [New] refuses.
func ACLRules(namespace string) ([]string, error) {
	cfg := Config{Namespace: namespace}.withDefaults()
	if _, err := bucket.ACLRules(cfg.Namespace, false); err != nil {
		return nil, fmt.Errorf("redisswitch: %w", err)
	}
	rules := []string{"~" + cfg.key(), "&" + cfg.channel()}
	for _, command := range [...]string{
		"evalsha", "eval", "time", "ping", "subscribe", "unsubscribe", "publish", "hget", "hset", "hdel", "hkeys", "hlen", "hstrlen", "pexpire",
	} {
		rules = append(rules, "+"+command)
	}
	return rules, nil
}
