package leasetest_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// stepKey has the seconds by which the clock of the scripts is ahead of that of Redis.
const stepKey = "clock-step"

// stepping builds instances whose scripts have a clock that a test can step: the one of Redis is that of the machine.
func stepping(t testing.TB) (program string) {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	folder, clock := t.TempDir(), filepath.Join(root, "lua", "clock.lua")
	text, err := os.ReadFile(clock)
	require.NoError(t, err)
	const reads = "local clock = redis.call('TIME')\n"
	require.Equal(t, 1, strings.Count(string(text), reads))
	steps := reads + "clock[1] = clock[1] + (redis.call('GET', '" + stepKey + "') or 0)\n"
	replaced := filepath.Join(folder, "clock.lua")
	require.NoError(t, os.WriteFile(replaced, []byte(strings.Replace(string(text), reads, steps, 1)), 0o600))
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {clock: replaced}})
	require.NoError(t, err)
	path := filepath.Join(folder, "overlay.json")
	require.NoError(t, os.WriteFile(path, overlay, 0o600))
	program = filepath.Join(folder, "instance")
	out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", path, "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// steppingFleet is instances under load whose scripts have such a clock, and what steps it.
func steppingFleet(t testing.TB) (fl *fleet, step func(seconds int)) {
	t.Helper()
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = client.Close() })
	fl = newFleetOf(t, stepping(t), server, ordinary(t), false)
	fl.load(1.5*float64(fl.Refill), onOne(0))
	pass(2 * time.Second)
	return fl, func(seconds int) { require.NoError(t, client.Set(t.Context(), stepKey, seconds, 0).Err()) }
}

// backAndOn is a run in which the clock of the scripts steps back by one to five seconds, and on again, for so long.
func backAndOn(t testing.TB, length time.Duration) (v verdictsOf, times int) {
	t.Helper()
	fl, step := steppingFleet(t)
	r := rand.New(rand.NewPCG(fl.Seed, 18))
	from, before := fl.clock.after(), calls(t, fl.server.Addr)
	for begin := time.Now(); time.Since(begin) < length; times++ {
		step(-1 - r.IntN(5))
		pass(upTo(r, mostStopped))
		step(0)
		pass(upTo(r, mostStopped))
	}
	return fl.judge(from, before), times
}

// onlyOn is a run in which the clock of the scripts steps on by half a minute, once.
func onlyOn(t testing.TB) verdictsOf {
	t.Helper()
	fl, step := steppingFleet(t)
	from := fl.clock.after()
	step(30)
	pass(3 * time.Second)
	return fl.judge(from, 0)
}
