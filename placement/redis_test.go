package placement_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/placement"
)

// The mover is this test binary, started again with these variables set.
const (
	moverVariable = "PLACEMENT_TEST_STORES"
	firstVariable = "PLACEMENT_TEST_FIRST"
)

func TestMain(m *testing.M) {
	// go-redis writes a line for each connection that it cannot open.
	redis.SetLogger(silence{})
	addresses := os.Getenv(moverVariable)
	if addresses == "" {
		os.Exit(m.Run())
	}
	if err := move(strings.Split(addresses, ",")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// patient is how a Redis is opened on a busy machine.
func patient() placement.RedisConfig {
	return placement.RedisConfig{
		Client: redisclient.Config{DialTimeout: redistest.Patience, SocketTimeout: redistest.Patience},
		Store:  bucket.RedisConfig{Timeout: redistest.Patience, Patience: redistest.Patience, AdminTimeout: redistest.Patience},
	}
}

// pair is a map of two Redis.
func pair(addresses []string, generation uint64) *placement.Map {
	m := &placement.Map{Generation: generation, Candidates: 1, Stores: []placement.Member{{Name: "a", Address: addresses[0]}, {Name: "b", Address: addresses[1]}}}
	m.Pins = map[string]string{"acme": []string{"a", "b"}[generation%2]}
	m.Before = []placement.Earlier{{Candidates: 1, Stores: []string{"a", "b"}, Pins: map[string]string{"acme": []string{"b", "a"}[generation%2]}}}
	return m
}

const movedCapacity = 10_000

// movedTake is what the mover takes each time that it has moved a tenant.
func movedTake() (bucket.Take, error) {
	limits, err := bucket.Compile(bucket.Limit{Name: "year", Capacity: movedCapacity, Refill: 1000, Period: 365 * 24 * time.Hour})
	return bucket.Take{Tenant: "acme", Buckets: []bucket.Bucket{{Limits: limits}}, Amounts: points(1)}, err
}

// move moves a tenant to and fro until it is killed, and writes a line with the generation for each point that it has taken.
func move(addresses []string) error {
	generation, err := strconv.ParseUint(os.Getenv(firstVariable), 10, 64)
	if err != nil {
		return err
	}
	take, err := movedTake()
	if err != nil {
		return err
	}
	s, err := placement.New(context.Background(), placement.Config{Open: placement.OpenRedis(patient())}, pair(addresses, generation))
	for err == nil {
		var result bucket.Result
		if result, err = s.Take(context.Background(), take); err == nil && result.Verdict == bucket.Admitted {
			_, err = fmt.Fprintln(os.Stdout, generation)
		}
		generation++
		err = errors.Join(err, s.Apply(context.Background(), pair(addresses, generation)))
	}
	return err
}

func TestAMoverThatIsKilledLosesAndRefillsNothing(t *testing.T) {
	t.Parallel()
	addresses := []string{redistest.Start(t).Addr, redistest.Start(t).Addr}
	random := rand.New(rand.NewPCG(1, 2))
	generation, taken := uint64(1), int64(0)
	const kills = 12
	for range kills {
		process := exec.Command(os.Args[0])
		process.Env = append(os.Environ(), moverVariable+"="+strings.Join(addresses, ","), firstVariable+"="+strconv.FormatUint(generation, 10))
		process.Stderr = os.Stderr
		out, err := process.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, process.Start())
		lines := bufio.NewScanner(out)
		stop, n := 5+random.IntN(60), 0
		for ; lines.Scan(); n++ {
			taken++
			generation, err = strconv.ParseUint(lines.Text(), 10, 64)
			require.NoError(t, err)
			if n == stop {
				require.NoError(t, process.Process.Kill())
			}
		}
		require.Error(t, process.Wait())
		require.Greater(t, n, stop, "it was killed, and had not ended by itself")
		generation += 100
	}
	s, err := placement.New(t.Context(), placement.Config{Open: placement.OpenRedis(patient())}, pair(addresses, generation))
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	take, err := movedTake()
	require.NoError(t, err)
	states, err := s.Peek(t.Context(), "acme", take.Buckets)
	require.NoError(t, err)
	spent := movedCapacity - states[0].Remaining
	t.Logf("%d taken, %d spent, in %d processes that were killed while they moved", taken, spent, kills)
	require.GreaterOrEqual(t, spent, taken, "a move has refilled something")
	require.LessOrEqual(t, spent, taken+kills, "of each process one take may have left no line")
}

func TestARedisThatTheDoctorFindsBadIsRefusedWhileTheOthersServe(t *testing.T) {
	t.Parallel()
	good, evicts := redistest.Start(t), redistest.Start(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
	cfg := patient()
	cfg.Getenv = func(name string) string { return map[string]string{"REDIS_B": good.Addr}[name] }
	m := &placement.Map{Generation: 1, Candidates: 1, Stores: []placement.Member{{Name: "a", Address: good.Addr}}}
	s, err := placement.New(t.Context(), placement.Config{Open: placement.OpenRedis(cfg)}, m)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	for address, want := range map[string]string{evicts.Addr: "evicting-policy", "127.0.0.1:1": "unreachable", "$REDIS_C": "the environment has no REDIS_C", "": "no address"} {
		err := s.Apply(t.Context(), m.Next([]placement.Member{{Name: "a", Address: good.Addr}, {Name: "b", Address: address}}))
		require.ErrorContains(t, err, want)
		require.ErrorAs(t, err, new(*placement.RefusedError))
		require.EqualValues(t, 1, s.Map().Generation)
	}
	take, err := movedTake()
	require.NoError(t, err)
	result, err := s.Take(t.Context(), take)
	require.NoError(t, err)
	require.Equal(t, bucket.Admitted, result.Verdict)
	require.NoError(t, s.Apply(t.Context(), m.Next([]placement.Member{{Name: "a", Address: good.Addr}, {Name: "b", Address: "$REDIS_B"}})), "a good one is opened while it serves")
}
