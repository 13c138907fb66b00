package redisfeed_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisfeed"
)

// calls is how often a command was called.
func calls(t *testing.T, client *redis.Client, command string) (n int) {
	t.Helper()
	_, rest, _ := strings.Cut(client.Info(t.Context(), "commandstats").Val(), "cmdstat_"+command+":calls=")
	_, _ = fmt.Sscan(rest, &n) // None is 0.
	return n
}

// newest asks so often and returns how many of the answers are revisions.
func newest(t *testing.T, feed *redisfeed.Feed, have policy.Head, times int) (revisions int) {
	t.Helper()
	for range times {
		r, err := feed.Newest(t.Context(), have)
		require.NoError(t, err)
		if r != nil {
			revisions++
		}
	}
	return revisions
}

func TestWhoHasTheNewestRevisionAsksNoScriptButForEveryTenthQuestion(t *testing.T) {
	t.Parallel()
	client := redistest.Plain(t, redistest.Start(t).Addr)
	feed := open(t, client)
	require.NoError(t, feed.Publish(t.Context(), revision(1), 0))
	scripts := calls(t, client, "evalsha")
	require.Zero(t, newest(t, feed, revision(1).Head(), 100))
	require.Equal(t, 90, calls(t, client, "hexists"))
	require.LessOrEqual(t, calls(t, client, "evalsha")-scripts, 11, "the first one is not known to the Redis")

	// Whoever has none, an older one or another one is answered by the script each time.
	require.NoError(t, feed.Publish(t.Context(), revision(2), 1))
	for _, have := range []policy.Head{{}, revision(1).Head(), {Number: 2, Hash: revision(1).Hash}, {Number: 1, Hash: revision(2).Hash}} {
		require.Equal(t, 20, newest(t, feed, have, 20), have)
	}
	require.Zero(t, newest(t, feed, revision(2).Head(), 20))
}

func TestARevisionHasNoMarkerOfAnotherOneBesideIt(t *testing.T) {
	t.Parallel()
	client := redistest.Plain(t, redistest.Start(t).Addr)
	feed := open(t, client)
	require.NoError(t, feed.Publish(t.Context(), revision(1), 0))
	require.NoError(t, feed.Publish(t.Context(), revision(2), 1))
	require.NoError(t, feed.Restore(t.Context(), revision(5)))
	fields, err := client.HKeys(t.Context(), key).Result()
	require.NoError(t, err)
	require.ElementsMatch(t, []string{
		"is:5:" + revision(5).Hash.String(), "number", "hash", "document", "author", "reason", "published", "signature",
	}, fields)
}

func TestWhatSomebodyWritesByHandBesideTheMarkerIsSeenWithinTenQuestionsAndAtAHint(t *testing.T) {
	t.Parallel()
	client := redistest.Plain(t, redistest.Start(t).Addr)
	feed := open(t, client)
	require.NoError(t, feed.Publish(t.Context(), revision(1), 0))
	require.Zero(t, newest(t, feed, revision(1).Head(), 5))
	require.NoError(t, put(client, revision(2)))
	require.Equal(t, 1, newest(t, feed, revision(1).Head(), 10))

	other := open(t, client)
	f := follow(t, other, policy.Config{Interval: policy.None})
	require.Eventually(t, func() bool {
		return maxCost(f) == 2 && client.PubSubNumSub(t.Context(), key+":hint").Val()[key+":hint"] == 1
	}, redistest.Patience, time.Millisecond)
	require.NoError(t, other.Publish(t.Context(), revision(3), 2))
	require.Eventually(t, func() bool { return maxCost(f) == 3 }, redistest.Patience, time.Millisecond)
	require.NoError(t, put(client, revision(4)))
	require.NoError(t, client.Publish(t.Context(), key+":hint", "by hand").Err())
	require.Eventually(t, func() bool { return maxCost(f) == 4 }, redistest.Patience, time.Millisecond)
}

// unanswered is a hook after which so many of the next scripts fail.
type unanswered struct{ scripts atomic.Int64 }

func (*unanswered) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*unanswered) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (u *unanswered) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" && u.scripts.Add(-1) >= 0 {
			return errors.New("no answer")
		}
		return next(ctx, cmd)
	}
}

func TestAHintWhoseQuestionFailedHasTheScriptAskedAgain(t *testing.T) {
	t.Parallel()
	client := redistest.Plain(t, redistest.Start(t).Addr)
	hook := &unanswered{}
	client.AddHook(hook)
	feed := open(t, client)
	require.NoError(t, feed.Publish(t.Context(), revision(1), 0))
	require.NoError(t, put(client, revision(2)))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	require.Error(t, feed.Hints(ctx, cancel), "it stands, which is a hint")
	hook.scripts.Store(2)
	for range 2 {
		_, err := feed.Newest(t.Context(), revision(1).Head())
		require.ErrorContains(t, err, "no answer")
	}
	require.Equal(t, 1, newest(t, feed, revision(1).Head(), 1), "no marker says what was written by hand")
}

func TestWhoMayNotCompareAsksTheScript(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	admin := redistest.Plain(t, server.Addr)
	require.NoError(t, admin.Do(t.Context(), "ACL", "SETUSER", "older", "on", ">secret", "~*", "&*", "+@all", "-hexists").Err())
	client := redis.NewClient(&redis.Options{Addr: server.Addr, Username: "older", Password: "secret"})
	t.Cleanup(func() { _ = client.Close() })
	feed := open(t, client)
	require.NoError(t, feed.Publish(t.Context(), revision(1), 0))
	require.Zero(t, newest(t, feed, revision(1).Head(), 5))
	require.Equal(t, 5, newest(t, feed, policy.Head{}, 5))
}

func TestAClientThatReadsFromReplicasAsksTheMasterByTheScript(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	admin := redistest.Plain(t, server.Addr)
	require.NoError(t, open(t, admin).Publish(t.Context(), revision(1), 0))
	replicas := redis.NewClusterClient(&redis.ClusterOptions{
		ReadOnly: true,
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: server.Addr}}}}, nil
		},
	})
	t.Cleanup(func() { _ = replicas.Close() })
	require.Zero(t, newest(t, open(t, replicas), revision(1).Head(), 20))
	require.Zero(t, calls(t, admin, "hexists"))
}
