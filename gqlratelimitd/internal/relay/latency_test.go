package relay_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisfeed"
)

// followVariable makes a process of this test follow the policy of a Redis at its address.
const followVariable = "GQLRATELIMITD_RELAY_FOLLOW"

// printer prints the number of each revision that is applied.
type printer struct{}

// Observe implements event.Observer.
func (printer) Observe(_ context.Context, e event.Event) {
	if applied, ok := e.(event.PolicyApplied); ok && applied.Revision > 0 {
		_, _ = fmt.Fprintln(os.Stdout, applied.Revision)
	}
}

// followForEver prints the number of each revision that it applies.
func followForEver(address string) error {
	client, err := redisclient.New(address)
	if err != nil {
		return err
	}
	feed, err := redisfeed.New(redisfeed.Config{Client: client})
	if err != nil {
		return err
	}
	cfg := policy.Config{}
	cfg.Observe.Logger = quiet
	cfg.Observe.Observer = printer{}
	if _, err := policy.Follow(context.Background(), feed, cfg); err != nil {
		return err
	}
	select {}
}

func TestEachOf200RevisionsReachesAFollowerInAnotherProcess(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.publish(1)
	r, _ := s.start(s.config())
	s.carried(r)
	program, err := os.Executable()
	require.NoError(t, err)
	follower := exec.Command(program)
	follower.Env = append(os.Environ(), followVariable+"="+s.server.Addr)
	follower.Stderr = os.Stderr
	out, err := follower.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, follower.Start())
	t.Cleanup(func() {
		_ = follower.Process.Kill()
		_ = follower.Wait()
	})
	lines := bufio.NewScanner(out)
	applied := func(want uint64) {
		require.True(t, lines.Scan(), "the follower has ended")
		got, err := strconv.ParseUint(lines.Text(), 10, 64)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	applied(1)
	var took []time.Duration
	for n := uint64(2); n <= 201; n++ {
		s.publish(n)
		committed := time.Now()
		r.Wake()
		applied(n)
		took = append(took, time.Since(committed))
	}
	slices.Sort(took)
	t.Logf("from the commit to the follower: p50 %v, p99 %v, longest %v", took[len(took)/2], took[len(took)*99/100], took[len(took)-1])
}
