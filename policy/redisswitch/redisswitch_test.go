package redisswitch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisswitch"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

const (
	soon = 5 * time.Millisecond
	key  = "rl:main:modes"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func switches(t testing.TB, client redis.UniversalClient) *redisswitch.Switches {
	t.Helper()
	s, err := redisswitch.New(redisswitch.Config{Client: client})
	require.NoError(t, err)
	return s
}

// heard are the events of a follower.
type heard struct {
	mu  sync.Mutex
	all []event.ModeSwitched
}

func (h *heard) Observe(_ context.Context, e event.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e, ok := e.(event.ModeSwitched); ok {
		h.all = append(h.all, e)
	}
}

func (h *heard) last() (last event.ModeSwitched) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.all) > 0 {
		last = h.all[len(h.all)-1]
	}
	return last
}

// instance is one that follows. It ends with the test.
type instance struct {
	source   *tiers.ModeSwitch
	follower *redisswitch.Follower
	heard    *heard
}

func follow(t testing.TB, client redis.UniversalClient, interval time.Duration) *instance {
	t.Helper()
	policy, err := tiers.Load([]byte("{version: 1, default: free, tiers: {free: {maxCost: 500}}}"), 1)
	require.NoError(t, err)
	i := &instance{source: tiers.NewModeSwitch(policy), heard: &heard{}}
	i.follower, err = redisswitch.Follow(redisswitch.FollowerConfig{
		Config: redisswitch.Config{Client: client}, Switch: i.source, Interval: interval, Observer: i.heard, Logger: quiet,
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = i.follower.Close() })
	return i
}

func (i *instance) mode(tenant string) bucket.Mode {
	return i.source.Snapshot().Rules(tiers.Subject{Tenant: tenant}, tiers.Selection{Fields: []string{"Query.a"}}).Mode
}

// becomes waits until a tenant has a mode.
func (i *instance) becomes(t testing.TB, tenant string, mode bucket.Mode) {
	t.Helper()
	require.Eventually(t, func() bool { return i.mode(tenant) == mode }, redistest.Patience, soon)
}

func eased(tenant, mode string) event.ModeSwitch {
	return event.ModeSwitch{
		Tenant: tenant, AtMost: mode, Until: time.Now().Add(time.Hour), Reason: "incident 17", By: "jo@example.com",
	}
}

func TestASwitchIsInForceOnEveryInstanceUntilItIsEnded(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := switches(t, redistest.Connect(t, server.Addr))
	var all []*instance
	for n := range 4 {
		interval := time.Minute // hints alone
		if n == 3 {
			interval = 100 * time.Millisecond
		}
		all = append(all, follow(t, redistest.Connect(t, server.Addr), interval))
	}
	for _, i := range all {
		require.Eventually(t, func() bool { return i.heard.last().State == "current" }, redistest.Patience, soon)
		require.Empty(t, i.heard.last().InForce)
	}
	require.NoError(t, s.Set(t.Context(), eased("", "shadow")))
	for _, i := range all {
		i.becomes(t, "acme", bucket.Shadow)
	}
	require.NoError(t, s.Set(t.Context(), eased("acme", "off")))
	require.NoError(t, s.Set(t.Context(), eased("", "warn")))
	for _, i := range all {
		i.becomes(t, "acme", bucket.Off)
		i.becomes(t, "globex", bucket.Warn)
		require.Eventually(t, func() bool { return len(i.heard.last().InForce) == 2 }, redistest.Patience, soon)
		last := i.heard.last().InForce
		require.Equal(t, []string{"", "acme"}, []string{last[0].Tenant, last[1].Tenant})
		require.Equal(t, "incident 17", last[0].Reason)
		require.WithinDuration(t, time.Now(), last[0].Since, time.Minute)
	}
	listed, err := s.List(t.Context())
	require.NoError(t, err)
	var listedModes []event.ModeSwitch
	for _, one := range listed {
		listedModes = append(listedModes, one.ModeSwitch)
	}
	require.Equal(t, all[0].heard.last().InForce, listedModes)

	was, err := s.End(t.Context(), "acme", "")
	require.NoError(t, err)
	require.Equal(t, "off", was.AtMost)
	was, err = s.End(t.Context(), "acme", "")
	require.NoError(t, err)
	require.Nil(t, was)
	_, err = s.End(t.Context(), "", "")
	require.NoError(t, err)
	for _, i := range all {
		i.becomes(t, "acme", bucket.Enforce)
		i.becomes(t, "globex", bucket.Enforce)
	}
	late := follow(t, redistest.Connect(t, server.Addr), 0)
	require.Eventually(t, func() bool { return late.heard.last().State == "current" }, redistest.Patience, soon)
	require.Equal(t, bucket.Enforce, late.mode("acme"))
}

func TestASwitchEndsByItselfWhileTheRedisIsAwayAndHoldsUntilThen(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := switches(t, redistest.Connect(t, server.Addr))
	i := follow(t, redistest.Connect(t, server.Addr), 100*time.Millisecond)
	short, long := eased("short", "shadow"), eased("long", "shadow")
	// It has to be in force before it ends, on a busy machine too.
	short.Until = time.Now().Add(6 * time.Second)
	require.NoError(t, s.Set(t.Context(), short))
	require.NoError(t, s.Set(t.Context(), long))
	i.becomes(t, "short", bucket.Shadow)
	i.becomes(t, "long", bucket.Shadow)
	server.Kill()
	i.becomes(t, "short", bucket.Enforce)
	require.False(t, time.Now().Before(short.Until.Add(-100*time.Millisecond)), "not before its end")
	require.Equal(t, bucket.Shadow, i.mode("long"))
	require.Eventually(t, func() bool {
		last := i.heard.last()
		return last.State == "stale" && len(last.InForce) == 1 && last.Error != ""
	}, redistest.Patience, soon)
	status, asked := i.follower.Status()
	require.Equal(t, "long", status.InForce[0].Tenant)
	require.False(t, asked.IsZero())

	// The Redis comes back with nothing: it keeps nothing on disk.
	require.NoError(t, server.Restart())
	require.Eventually(t, func() bool {
		status, _ := i.follower.Status()
		return strings.Contains(status.Error, "lost")
	}, redistest.Patience, soon)
	require.Equal(t, bucket.Shadow, i.mode("long"))
	// Whoever says anything there again is believed.
	_, err := s.End(t.Context(), "nobody", "")
	require.NoError(t, err)
	i.becomes(t, "long", bucket.Enforce)
	require.Eventually(t, func() bool { return i.heard.last().State == "current" }, redistest.Patience, soon)
}

func TestWhatStandsThereIsRefusedAsAWhole(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client, test := redistest.Connect(t, server.Addr), redistest.Plain(t, server.Addr)
	s := switches(t, client)
	i := follow(t, client, 100*time.Millisecond)
	require.NoError(t, s.Set(t.Context(), eased("acme", "shadow")))
	i.becomes(t, "acme", bucket.Shadow)
	until := time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond).Format(time.RFC3339Nano)
	one := func(fields string) string {
		return fmt.Sprintf(`{"tenant":"acme","until":%q,"reason":"r","by":"b","revision":1%s}`, until, fields)
	}
	all := func(switches ...string) string {
		return `{"revision":1,"switches":[` + strings.Join(switches, ",") + `]}`
	}
	off := `,"atMost":"off"`
	ctx := t.Context()
	for what, hostile := range map[string]string{
		"nothing":                   "",
		"no JSON":                   "x",
		"half of it":                all(one(off))[:40],
		"too large":                 strings.Repeat("9", 1<<20),
		"another kind of value":     `{"switches":{"a":1}}`,
		"no mode":                   all(one("")),
		"a mode that is no easing":  all(one(`,"atMost":"enforce"`)),
		"no reason":                 all(strings.ReplaceAll(one(off), `"r"`, `""`)),
		"no name":                   all(strings.ReplaceAll(one(off), `"b"`, `" "`)),
		"no operation":              all(one(off + `,"operation":"x"`)),
		"a tenant that is too long": all(one(off + `,"tenant":"` + strings.Repeat("t", 300) + `"`)),
		"no end":                    all(one(off + `,"until":"0001-01-01T00:00:00Z"`)),
		"an end in a month":         all(one(off + `,"until":"2400-01-01T00:00:00Z"`)),
		"a later revision":          all(one(off + `,"revision":2`)),
		"a revision that wraps":     `{"revision":18446744073709551615,"switches":[]}`,
		"two of one scope":          all(one(off), one(off)),
		"one that is good":          all(one(off), one("")),
		"too many":                  all(slices.Repeat([]string{one(off)}, tiers.MaxEasings+1)...),
	} {
		require.NoError(t, test.Set(ctx, key, hostile, 0).Err())
		require.Eventually(t, func() bool {
			status, _ := i.follower.Status()
			return status.Refused == 1
		}, redistest.Patience, soon, what)
		require.Equal(t, bucket.Shadow, i.mode("acme"), what)
		listed, err := s.List(ctx)
		require.ErrorIs(t, err, redisswitch.ErrUnreadable, what)
		require.Empty(t, listed, what)
		require.NoError(t, s.Set(ctx, eased("acme", "shadow")), "it is in nobody's way")
		require.Eventually(t, func() bool {
			status, _ := i.follower.Status()
			return status.Refused == 0 && status.Error == ""
		}, redistest.Patience, soon, what)
	}
	require.NoError(t, test.Del(ctx, key).Err())
	require.NoError(t, test.HSet(ctx, key, "a", "hash").Err())
	require.Eventually(t, func() bool {
		status, _ := i.follower.Status()
		return strings.Contains(status.Error, "WRONGTYPE")
	}, redistest.Patience, soon)
	require.Equal(t, bucket.Shadow, i.mode("acme"))
}

func TestADraftIsWrittenIfNobodyWasFaster(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := switches(t, redistest.Connect(t, server.Addr))
	ctx := t.Context()
	first, err := s.Read(ctx)
	require.NoError(t, err)
	second, err := s.Read(ctx)
	require.NoError(t, err)
	put, err := first.Put(eased("acme", "off"))
	require.NoError(t, err)
	_, err = second.Put(eased("globex", "off"))
	require.NoError(t, err)
	require.NoError(t, first.Write(ctx))
	require.NoError(t, first.Write(ctx), "once is enough")
	require.ErrorIs(t, second.Write(ctx), redisswitch.ErrMoved)
	third, err := s.Read(ctx)
	require.NoError(t, err)
	require.Equal(t, &put, third.Find("acme", ""))
	require.Nil(t, third.Find("globex", ""))
	again, err := third.Put(eased("acme", "off"))
	require.NoError(t, err)
	require.Greater(t, again.Revision, put.Revision)
}

func TestNoSwitchOfSeveralWritersIsLost(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := switches(t, redistest.Connect(t, server.Addr))
	const writers = 4
	var errs [writers]error
	var all sync.WaitGroup
	for n := range writers {
		all.Go(func() { errs[n] = s.Set(t.Context(), eased(fmt.Sprint("tenant-", n), "off")) })
	}
	all.Wait()
	require.NoError(t, errors.Join(errs[:]...))
	listed, err := s.List(t.Context())
	require.NoError(t, err)
	require.Len(t, listed, writers)
}

func TestASwitchNeedsAnEndAReasonAndAName(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := switches(t, redistest.Connect(t, server.Addr))
	err := s.Set(t.Context(), event.ModeSwitch{AtMost: "enforce", Operation: "x"})
	for _, mistake := range []string{"strictest mode", "when it ends", "reason", "who has set it", "operation"} {
		require.ErrorContains(t, err, mistake)
	}
	past, late, strange := eased("", "off"), eased("", "off"), eased("", "off")
	past.Until = time.Now().Add(-time.Second)
	late.Until = time.Now().Add(redisswitch.Longest + time.Minute)
	strange.Until = time.Date(99999, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, m := range []event.ModeSwitch{past, late, strange} {
		require.ErrorIs(t, s.Set(t.Context(), m), redisswitch.ErrUntil)
	}
	long := eased("", "off")
	long.Reason = strings.Repeat("r", redisswitch.MaxText+1)
	require.ErrorContains(t, s.Set(t.Context(), long), "reason")
	listed, err := s.List(t.Context())
	require.NoError(t, err)
	require.Empty(t, listed)
}

func TestThereAreNoMoreSwitchesThanInstancesApply(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := switches(t, redistest.Connect(t, server.Addr))
	for n := range tiers.MaxEasings {
		require.NoError(t, s.Set(t.Context(), eased(fmt.Sprint("tenant-", n), "off")))
	}
	require.ErrorIs(t, s.Set(t.Context(), eased("one more", "off")), redisswitch.ErrTooMany)
	require.NoError(t, s.Set(t.Context(), eased("tenant-3", "warn")), "in the place of another")
	i := follow(t, redistest.Connect(t, server.Addr), 0)
	require.Eventually(t, func() bool { return len(i.source.Easings()) == tiers.MaxEasings }, redistest.Patience, soon)
	i.becomes(t, "tenant-3", bucket.Warn)
}

func TestSwitchesNeedNoMoreRightsThanAreSaid(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	rules, err := bucket.ACLRules("main", false)
	require.NoError(t, err)
	more, err := redisswitch.ACLRules("")
	require.NoError(t, err)
	args := []any{"ACL", "SETUSER", "limiter", "on", ">secret"}
	for _, rule := range append(rules, more...) {
		args = append(args, rule)
	}
	require.NoError(t, redistest.Plain(t, server.Addr).Do(t.Context(), args...).Err())
	client := redistest.Connect(t, "redis://limiter:secret@"+server.Addr)
	s, i := switches(t, client), follow(t, client, time.Minute)
	require.Eventually(t, func() bool { return i.heard.last().State == "current" }, redistest.Patience, soon)
	require.NoError(t, s.Set(t.Context(), eased("acme", "shadow")))
	i.becomes(t, "acme", bucket.Shadow)
	_, err = s.End(t.Context(), "acme", "")
	require.NoError(t, err)
	i.becomes(t, "acme", bucket.Enforce)
	_, err = redisswitch.ACLRules("a:b")
	require.Error(t, err)
}

func TestEveryMistakeInAConfigurationIsReported(t *testing.T) {
	t.Parallel()
	_, err := redisswitch.Follow(redisswitch.FollowerConfig{Config: redisswitch.Config{Namespace: "a:b"}, Interval: time.Hour})
	for _, field := range []string{"Client", "Namespace", "Switch", "Interval"} {
		require.ErrorContains(t, err, field)
	}
	_, err = redisswitch.New(redisswitch.Config{})
	require.ErrorContains(t, err, "Client")
}

func TestAFollowerStartsWithoutARedis(t *testing.T) {
	t.Parallel()
	i := follow(t, redistest.Connect(t, "127.0.0.1:1"), 100*time.Millisecond)
	require.Equal(t, bucket.Enforce, i.mode("acme"))
	require.Eventually(t, func() bool {
		status, asked := i.follower.Status()
		return status.State == "never" && status.Error != "" && asked.IsZero()
	}, redistest.Patience, soon)
	require.NoError(t, i.follower.Close())
	require.NoError(t, i.follower.Close(), "again")
}

func TestTheClockOfAnInstanceMayBeWrongByADay(t *testing.T) {
	t.Parallel()
	there := time.Date(2026, time.November, 22, 3, 0, 0, 0, time.UTC)
	text := fmt.Sprintf(`{"revision":1,"switches":[{"tenant":"acme","atMost":"off","until":%q,"reason":"r","by":"b","revision":1}]}`,
		there.Add(2*time.Hour).Format(time.RFC3339Nano))
	for _, wrong := range []time.Duration{-24 * time.Hour, 0, 24 * time.Hour} {
		here := there.Add(wrong)
		ends, err := redisswitch.Ends(text, there, here)
		require.NoError(t, err)
		require.Equal(t, here.Add(2*time.Hour), ends)
	}
}

// BenchmarkReach says how long it takes from the call that sets a switch to the first decision of an instance that is eased.
func BenchmarkReach(b *testing.B) {
	server := redistest.Start(b)
	s, i := switches(b, redistest.Connect(b, server.Addr)), follow(b, redistest.Connect(b, server.Addr), time.Minute)
	require.Eventually(b, func() bool { return i.heard.last().State == "current" }, redistest.Patience, soon)
	modes := [...]bucket.Mode{bucket.Shadow, bucket.Off}
	for n := 0; b.Loop(); n++ {
		mode := modes[n%len(modes)]
		require.NoError(b, s.Set(b.Context(), eased("acme", mode.String())))
		for i.mode("acme") != mode {
			<-time.After(100 * time.Microsecond)
		}
	}
}
