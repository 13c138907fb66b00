package e2e_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// sentCommands is a hook that notes what a client sends: the names of the commands that go out together, which
// one round trip answers.
type sentCommands struct {
	mu   sync.Mutex
	sent [][]string
}

func (*sentCommands) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (s *sentCommands) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !setsUp(cmd) {
			s.note(cmd)
		}
		return next(ctx, cmd)
	}
}

func (s *sentCommands) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if !setsUp(cmds[0]) {
			s.note(cmds...)
		}
		return next(ctx, cmds)
	}
}

// setsUp reports whether a command sets a connection up, which is not part of a call: a busy machine may open one more.
func setsUp(cmd redis.Cmder) bool { return cmd.Name() == "hello" || cmd.Name() == "client" }

func (s *sentCommands) note(cmds ...redis.Cmder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make([]string, len(cmds))
	for i, cmd := range cmds {
		names[i] = cmd.Name()
	}
	s.sent = append(s.sent, names)
}

// during returns what was sent meanwhile.
func (s *sentCommands) during(do func()) [][]string {
	s.mu.Lock()
	s.sent = nil
	s.mu.Unlock()
	do()
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sent)
}

func TestADecisionIsOneCommandToRedisWhateverItLooksAt(t *testing.T) {
	t.Parallel()
	options := &redis.Options{Addr: redistest.Start(t).Addr}
	redisclient.Bound(options)
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout, options.PoolTimeout = patience, patience, patience, patience
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	store, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Timeout: patience})
	require.NoError(t, err)
	policy := policyOf(t, `{version: 1, default: pro, tiers: {pro: {
		limits: {second: {capacity: 90, per: day}, minute: {capacity: 10000, per: minute}, hour: {capacity: 10000, per: hour},
			day: {capacity: 100000, per: day}},
		teams: {limits: {hour: {capacity: 10000, per: hour}}}, users: {limits: {hour: {capacity: 10000, per: hour}}},
		operations: {Query.users: {limits: {hour: {capacity: 10000, per: hour}}}}}}}`)
	rollout := tiers.NewRollout(policy)
	var last ratelimit.Decision
	server := newInProcess(t, store, func(cfg *ratelimit.Config) {
		cfg.Policy = rollout
	})
	see(server.server, func(d ratelimit.Decision) { last = d })
	commands := &sentCommands{}
	client.AddHook(commands)
	byAlice := request{Query: half, Tenant: "acme", Team: "search", User: "alice"}
	// The first call of each script loads it.
	server.post(byAlice)
	server.post(request{Query: createUser, Tenant: "first", Key: "loads-scripts"})
	one := [][]string{{"evalsha"}}

	require.Equal(t, one, commands.during(func() { require.Equal(t, http.StatusOK, server.post(byAlice).Status) }))
	require.Len(t, last.Limits, 7, "of four levels")

	_, err = store.SetOverride(t.Context(), "acme", bucket.Override{Limit: "minute", Capacity: 9000, Reason: "test", Actor: "test"})
	require.NoError(t, err)
	require.Len(t, commands.during(func() { server.post(byAlice) }), 2, "records that the process does not know yet")
	require.NoError(t, rollout.Propose("next", policy))
	require.Equal(t, one, commands.during(func() { require.Equal(t, http.StatusOK, server.post(byAlice).Status) }))
	require.True(t, last.Overridden)
	require.NotNil(t, last.Candidate)

	keyed := byAlice
	for i, status := range []int{http.StatusTooManyRequests, http.StatusTooManyRequests} {
		keyed.Key = fmt.Sprintf("refused-%d", i)
		require.Equal(t, one, commands.during(func() { require.Equal(t, status, server.post(keyed).Status) }), "a refusal with a claim")
	}
	_, err = store.DeleteOverride(t.Context(), "acme", bucket.Owner{}, "minute")
	require.NoError(t, err)
	keyed.Query, keyed.Tenant, keyed.Key = createUser, "other", "admitted-1"
	require.Equal(t, [][]string{{"evalsha"}, {"evalsha"}}, commands.during(func() {
		require.Equal(t, http.StatusOK, server.post(keyed).Status)
	}), "the decision with a claim, and its end with the answer")
	require.NotNil(t, last.Candidate)
	require.Equal(t, one, commands.during(func() {
		require.Equal(t, true, server.post(keyed).rateLimit(t)["replayed"])
	}), "a replay")
}
