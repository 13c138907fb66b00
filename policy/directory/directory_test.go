package directory_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/policy/directory"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

func TestARecordIsInForceWithinAnIntervalAndTheSourceIsAskedOnceForEachChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		from := newSource()
		from.write(t, "acme", `{"tier":"pro"}`)
		d := open(t, from, directory.Config{})
		for range 3 {
			require.EqualValues(t, 100, of(t, d, "acme"))
			require.EqualValues(t, 10, of(t, d, "other"))
		}
		require.EqualValues(t, 2, from.asked.Load())

		from.write(t, "acme", raised)
		from.write(t, "other", `{"tier":"pro"}`)
		pass(time.Second)
		require.EqualValues(t, 700, of(t, d, "acme"))
		require.EqualValues(t, 100, of(t, d, "other"))
		from.write(t, "acme", "")
		pass(time.Second)
		require.EqualValues(t, 10, of(t, d, "acme"))
		require.EqualValues(t, 5, from.asked.Load())
	})
}

func TestWhatWasReadBeforeAChangeAndComesAfterItIsReadAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		from := newSource()
		from.write(t, "acme", `{"tier":"pro"}`)
		late := &lateSource{source: from}
		d := open(t, late, directory.Config{MissDeadline: 5 * time.Second})
		require.EqualValues(t, 100, of(t, d, "acme"), "the answer was read before the change")
		require.EqualValues(t, 700, of(t, d, "acme"))
	})
}

// lateSource reads the first answer, and gives it after it was changed and after the change was told.
type lateSource struct {
	*source
	once atomic.Bool
}

func (s *lateSource) Tenant(ctx context.Context, tenant string) (*directory.Record, error) {
	r, err := s.source.Tenant(ctx, tenant)
	if err == nil && !s.once.Swap(true) {
		if _, err := s.Put(ctx, tenant, []byte(raised), r.Revision); err != nil {
			return nil, err
		}
		pass(time.Second)
	}
	return r, err
}

func TestManyRequestsOfOneTenantAskOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		from := newSource()
		from.write(t, "acme", raised)
		d := open(t, from, directory.Config{})
		from.hold.Store(int64(20 * time.Millisecond))
		answers := make(chan int64, 100)
		for range cap(answers) {
			go func() { answers <- of(t, d, "acme") }()
		}
		for range cap(answers) {
			require.EqualValues(t, 700, <-answers)
		}
		require.EqualValues(t, 1, from.asked.Load())
	})
}

func TestASlowSourceHoldsNoRequestBeyondTheDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		from := newSource()
		from.write(t, "acme", raised)
		d := open(t, from, directory.Config{WhileUnknown: "careful", MissDeadline: 30 * time.Millisecond})
		from.hold.Store(int64(time.Minute))
		began := time.Now()
		require.EqualValues(t, 3, of(t, d, "acme"))
		require.Equal(t, 30*time.Millisecond, time.Since(began))
		began = time.Now()
		require.EqualValues(t, 3, of(t, d, "acme"), "whoever comes later does not wait again")
		require.Zero(t, time.Since(began))

		from.hold.Store(int64(100 * time.Millisecond))
		pass(3 * time.Second)
		require.EqualValues(t, 3, of(t, d, "acme"))
		pass(time.Second)
		require.EqualValues(t, 700, of(t, d, "acme"), "the answer is kept though nobody has waited for it")

		ctx, leave := context.WithCancel(t.Context())
		leave()
		began = time.Now()
		d.Prepare(ctx, tiers.Subject{Tenant: "left"})
		require.Zero(t, time.Since(began), "nor does a client that has left")
	})
}

func TestWhileTheSourceIsAwayWhatWasKnownHoldsAndTheRestIsInTheTierForThat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		from := newSource()
		from.write(t, "acme", raised)
		d := open(t, from, directory.Config{WhileUnknown: "careful"})
		require.EqualValues(t, 700, of(t, d, "acme"))
		require.EqualValues(t, 10, of(t, d, "plain"))
		from.away.Store(true)
		pass(time.Minute)
		require.True(t, d.Status().Away)
		asked := from.asked.Load()
		for i := range 100 {
			require.EqualValues(t, 700, of(t, d, "acme"))
			require.EqualValues(t, 10, of(t, d, "plain"), "that it has no record is known")
			require.EqualValues(t, 3, of(t, d, fmt.Sprint(i)))
		}
		require.Equal(t, asked, from.asked.Load(), "no request waits for it")
		require.EqualValues(t, 100, capacity(t, d, tiers.Subject{Tenant: "new", Tier: "pro"}), "a tier that is carried stays")
		require.EqualValues(t, 100, of(t, d, "house"), "as does what the policy lists")

		from.away.Store(false)
		from.write(t, "acme", `{"tier":"pro"}`)
		pass(time.Second)
		require.False(t, d.Status().Away)
		require.EqualValues(t, 100, of(t, d, "acme"))
		require.EqualValues(t, 10, of(t, d, "7"))
	})
}

func TestASourceThatHasLostEverythingLeavesWhatIsKnown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		from := newSource()
		from.write(t, "acme", `{"blocked":true}`)
		d := open(t, from, directory.Config{WhileUnknown: "careful"})
		blocked := func() bool {
			acme := tiers.Subject{Tenant: "acme"}
			return d.Snapshot().Rules(acme, tiers.Selection{Record: d.Prepare(t.Context(), acme)}).Blocked
		}
		require.True(t, blocked())
		from.memory.Store(directory.NewMemory())
		pass(time.Second)
		require.True(t, blocked())
		require.EqualValues(t, 3, of(t, d, "new"))
		from.write(t, "other", raised)
		from.write(t, "acme", raised)
		pass(time.Second)
		require.False(t, blocked(), "another history begins")
	})
}

func TestARecordThatDoesNotFitThePolicyIsLoggedAndTheTenantHasItsTier(t *testing.T) {
	t.Parallel()
	from := newSource()
	from.write(t, "acme", `{"tier":"gold"}`)
	var log strings.Builder
	d := open(t, from, directory.Config{Observe: directory.ObserveConfig{Logger: slog.New(slog.NewTextHandler(&log, nil))}})
	require.EqualValues(t, 10, of(t, d, "acme"))
	require.NoError(t, d.Close())
	require.Contains(t, log.String(), "result=misfit")
	require.Contains(t, log.String(), "there is no tier")
}

func TestMistakesInTheConfigurationAreAllReported(t *testing.T) {
	t.Parallel()
	_, err := directory.Open(t.Context(), tiers.NewModeSwitch(compiled(t)), nil, directory.Config{
		Interval: 1, Patience: -1, MissDeadline: time.Hour, MissesPerSecond: -1, MaxBytes: 1, LastGood: "/nowhere/at/all",
		Observe: directory.ObserveConfig{Name: strings.Repeat("x", 65)},
	})
	for _, field := range [...]string{
		"the source is nil", "put it around the directory", "Interval", "Patience", "MissDeadline", "MissesPerSecond", "MaxBytes", "LastGood", "Name",
	} {
		require.ErrorContains(t, err, field)
	}
	_, err = directory.Open(t.Context(), compiled(t), newSource(), directory.Config{WhileUnknown: "gold"})
	require.ErrorContains(t, err, "the policy has no such tier")
}

func TestATenantInTheCacheIsLookedUpWithoutAllocating(t *testing.T) {
	from := newSource()
	from.write(t, "acme", raised)
	d := open(t, from, directory.Config{})
	acme := tiers.Subject{Tenant: "acme"}
	require.EqualValues(t, 700, of(t, d, "acme"))
	var room tiers.Rules
	require.Zero(t, testing.AllocsPerRun(100, func() {
		room = d.Snapshot().Rules(acme, tiers.Selection{Record: d.Prepare(context.Background(), acme)})
	}))
	require.Len(t, room.Buckets, 1)
}

// newest is a source whose policy changes.
type newest struct{ atomic.Pointer[tiers.Snapshot] }

func (n *newest) Snapshot() *tiers.Snapshot { return n.Load() }

func TestARecordThatFollowsItsTierDoesSoWhenThePolicyChanges(t *testing.T) {
	t.Parallel()
	from, policy := newSource(), &newest{}
	policy.Store(compiled(t))
	from.write(t, "acme", `{"tier":"pro","times":10}`)
	d, err := directory.Open(t.Context(), policy, from, directory.Config{MissDeadline: 5 * time.Second, Observe: directory.ObserveConfig{Logger: quiet}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = d.Close() })
	require.EqualValues(t, 1000, of(t, d, "acme"))

	raised, err := tiers.Load([]byte(strings.ReplaceAll(document, "capacity: 100", "capacity: 250")), 2)
	require.NoError(t, err)
	policy.Store(raised)
	require.EqualValues(t, 2500, of(t, d, "acme"))
	require.EqualValues(t, 1, from.asked.Load(), "nobody was asked again")
}
