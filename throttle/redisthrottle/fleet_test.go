package redisthrottle_test

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/throttle"
	"github.com/gqlgen-ratelimit/ratelimit/throttle/redisthrottle"
)

// fleet is instances that share a centre, each with load and one signal.
type fleet struct {
	instances []*throttle.Throttle
	over      atomic.Bool
	stop      context.CancelFunc
	work      sync.WaitGroup
}

func startFleet(t *testing.T, addr, namespace string, n int) *fleet {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	f := &fleet{stop: stop}
	f.over.Store(true)
	for i := range n {
		centre, err := redisthrottle.New(redisthrottle.Config{Client: redistest.Connect(t, addr), Namespace: namespace})
		require.NoError(t, err)
		one, err := throttle.New(throttle.Config{
			Centre: centre, Instance: "i" + strconv.Itoa(i), Processor: throttle.None, Memory: throttle.None,
			Logger: slog.New(slog.DiscardHandler),
			Sources: []throttle.Source{{Name: "queue", Target: 1, Read: func() (float64, bool) {
				if f.over.Load() {
					return 1.5, true
				}
				return 0, true
			}}},
		})
		require.NoError(t, err)
		f.instances = append(f.instances, one)
		f.work.Go(func() { _ = one.Run(ctx) })
		f.work.Go(func() {
			for ctx.Err() == nil {
				for range 10 {
					one.Offer("tenant", 1+i%2, 0.2, 1)
				}
				time.Sleep(20 * time.Millisecond) //nolint:forbidigo // the load of a real fleet
			}
		})
	}
	t.Cleanup(func() {
		f.stop()
		f.work.Wait()
	})
	return f
}

// eventually waits until all instances are as they should be.
func (f *fleet) eventually(t *testing.T, what string, is func(throttle.Status) bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, one := range f.instances {
			if !is(one.Status()) {
				return false
			}
		}
		return true
	}, redistest.Patience, 20*time.Millisecond, what)
}

func TestAFleetShedsOneShareAndForgetsItWithItsRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := startFleet(t, server.Addr, "fleet", 6)
	f.eventually(t, "everybody knows the fleet and sheds", func(s throttle.Status) bool {
		return s.Fleet.Instances == 6 && s.Fleet.Fresh == 6 && s.Shed > 0.3
	})
	// The share moved by whole steps alone, as of one integrator: 1 - sqrt(1/1.5) in each, however many instances there are.
	client := redistest.Plain(t, server.Addr)
	require.Equal(t, int64(7), client.HLen(t.Context(), "rl:fleet:throttle").Val())
	require.Positive(t, client.PTTL(t.Context(), "rl:fleet:throttle").Val())
	server.Kill()
	f.eventually(t, "without the Redis it falls to nothing", func(s throttle.Status) bool { return s.Shed == 0 && s.Age > 8*time.Second })
}

func TestAnInstanceThatLeavesIsForgottenAtOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := startFleet(t, server.Addr, "", 2)
	f.eventually(t, "both are there", func(s throttle.Status) bool { return s.Fleet.Instances == 2 })
	f.stop()
	f.work.Wait()
	for _, one := range f.instances {
		require.NoError(t, one.Shutdown(t.Context()))
	}
	require.Equal(t, []string{"s"}, redistest.Plain(t, server.Addr).HKeys(t.Context(), "rl:main:throttle").Val())
}

func TestWhatSomebodyElseWroteThereShedsNoMoreThanEverythingAndStopsNobody(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redistest.Plain(t, server.Addr)
	centre, err := redisthrottle.New(redisthrottle.Config{Client: client})
	require.NoError(t, err)
	report := throttle.Report{Instance: "a", Fresh: true, Pressure: 1}
	for _, state := range []string{
		"", "x", strings.Repeat("nan ", 16),
		"1e300 9e15 9e15 9e15 5 5 5 5 9 9 9 9 9 9 9 9", "-1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0", "1 2 3",
	} {
		require.NoError(t, client.HSet(t.Context(), "rl:main:throttle", "s", state, "ib", "1 2 3", "ic", "x").Err())
		share, err := centre.Exchange(t.Context(), report)
		if err != nil {
			require.ErrorIs(t, err, redisthrottle.ErrAnswer, state)
			require.NotContains(t, state, "nan", "a date that is NaN would never come")
			require.NoError(t, client.Del(t.Context(), "rl:main:throttle").Err())
			continue
		}
		require.LessOrEqual(t, share.Shed, 1.0, state)
		require.GreaterOrEqual(t, share.Shed, 0.0, state)
	}
	_, err = centre.Exchange(t.Context(), report)
	require.NoError(t, err)
}

func TestTheRightsAreEnoughAndNoMore(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	rules, err := redisthrottle.ACLRules("shop")
	require.NoError(t, err)
	args := []any{"acl", "setuser", "app", "on", ">secret"}
	for _, rule := range rules {
		args = append(args, rule)
	}
	admin := redistest.Plain(t, server.Addr)
	require.NoError(t, admin.Do(t.Context(), args...).Err())
	client := redis.NewClient(&redis.Options{Addr: server.Addr, Username: "app", Password: "secret"})
	t.Cleanup(func() { _ = client.Close() })
	centre, err := redisthrottle.New(redisthrottle.Config{Client: client, Namespace: "shop"})
	require.NoError(t, err)
	for range 2 {
		_, err = centre.Exchange(t.Context(), throttle.Report{Instance: "a", Fresh: true, Pressure: 1})
		require.NoError(t, err)
	}
	require.NoError(t, centre.Leave(t.Context(), "a"))
	other, err := redisthrottle.New(redisthrottle.Config{Client: client, Namespace: "other"})
	require.NoError(t, err)
	_, err = other.Exchange(t.Context(), throttle.Report{Instance: "a"})
	require.ErrorContains(t, err, "NOPERM")
	_, err = redisthrottle.ACLRules("*")
	require.Error(t, err)
}

func TestACentreNamesAllMistakesInItsConfiguration(t *testing.T) {
	t.Parallel()
	_, err := redisthrottle.New(redisthrottle.Config{Namespace: "*"})
	require.ErrorContains(t, err, "Client is nil")
	require.ErrorContains(t, err, "Namespace")
}
