package redisstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/event/redisstream"
	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
	"github.com/gqlgen-ratelimit/ratelimit/event/streamtest"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

var refusals = flag.Int("refusals", 5000, "how many refusals a flood has")

const key = "rl:main:stream:ratelimit.denials"

func open(t testing.TB, cfg redisstream.Config) *redisstream.Sink {
	t.Helper()
	sink, err := redisstream.New(cfg)
	require.NoError(t, err)
	return sink
}

// read returns all events of all topics.
func read(ctx context.Context, client redis.UniversalClient) (all []stream.Envelope, err error) {
	keys, err := client.Keys(ctx, "rl:main:stream:*").Result()
	for _, key := range keys {
		entries, err := client.XRange(ctx, key, "-", "+").Result()
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			e, err := redisstream.Decode(strings.TrimPrefix(key, "rl:main:stream:"), entry)
			if err != nil {
				return nil, err
			}
			all = append(all, e)
		}
	}
	return all, err
}

// harness is a Redis that keeps what it has acknowledged, and its sink.
func harness(t *testing.T) streamtest.Harness {
	t.Helper()
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	client := redistest.Plain(t, server.Addr)
	return streamtest.Harness{
		Sink:   open(t, redisstream.Config{Client: redistest.Connect(t, server.Addr), MaxEntries: 1_000_000, MaxEvent: 64 << 10}),
		Read:   func() ([]stream.Envelope, error) { return read(context.Background(), client) },
		Freeze: func() { server.Freeze(t) },
		Thaw:   func() { server.Thaw(t) },
		Restart: func() error {
			server.Kill()
			return server.Restart()
		},
		TooLarge: 64 << 10,
	}
}

func TestARedisIsABroker(t *testing.T) {
	t.Parallel()
	streamtest.Run(t, func(t *testing.T) streamtest.Harness {
		t.Helper()
		return harness(t)
	})
}

func TestAFloodOfRefusalsThroughARedisThatIsKilledAndFrozenIsThereOrCounted(t *testing.T) {
	t.Parallel()
	h := harness(t)
	kill := func() {
		if err := h.Restart(); err != nil {
			t.Error(err)
		}
	}
	freeze := func() {
		h.Freeze()
		<-time.After(1500 * time.Millisecond) // longer than a batch may take
		h.Thaw()
	}
	t.Log(streamtest.Flood(t, h, *refusals, kill, freeze, kill))
}

func TestAStreamIsBoundedInNumberAndInTime(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redistest.Plain(t, server.Addr)
	ctx := t.Context()
	sink := open(t, redisstream.Config{Client: client, MaxEntries: 1000, MaxAge: time.Hour})
	// What was written long ago goes, as far as whole nodes of the stream do.
	long := time.Now().Add(-2 * time.Hour).UnixMilli()
	for i := range 500 {
		require.NoError(t, client.XAdd(ctx, &redis.XAddArgs{Stream: key, ID: fmt.Sprintf("%d-%d", long, i), Values: []string{"a", "b"}}).Err())
	}
	require.Nil(t, sink.Send(ctx, []stream.Envelope{streamtest.Envelope("acme", 0)}))
	require.Less(t, client.XLen(ctx, key).Val(), int64(101))
	require.InDelta(t, time.Hour, client.PTTL(ctx, key).Val(), float64(time.Minute))
	for n := range 100 {
		var batch []stream.Envelope
		for i := range 50 {
			batch = append(batch, streamtest.Envelope("acme", 50*n+i))
		}
		require.Nil(t, sink.Send(ctx, batch))
	}
	require.InDelta(t, 1000, client.XLen(ctx, key).Val(), 100)
	newest := client.XRevRangeN(ctx, key, "+", "-", 1).Val()
	require.Equal(t, "id-4999", newest[0].Values["id"])
}

func TestARedisThatIsFullTakesAWholeScriptOrNothing(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redistest.Plain(t, server.Addr)
	ctx := t.Context()
	sink := open(t, redisstream.Config{Client: redistest.Connect(t, server.Addr)})
	batch := make([]stream.Envelope, 40)
	for i := range batch {
		batch[i] = streamtest.Envelope("acme", i)
		batch[i].Data = json.RawMessage(`"` + strings.Repeat("x", 4000) + `"`)
	}
	used := client.InfoMap(ctx, "memory").Item("Memory", "used_memory")
	require.NoError(t, client.ConfigSet(ctx, "maxmemory", used).Err())
	errs := sink.Send(ctx, batch)
	require.Len(t, errs, 40)
	require.ErrorContains(t, errors.Join(errs...), "OOM")
	require.Zero(t, client.XLen(ctx, key).Val())
	require.NoError(t, client.ConfigSet(ctx, "maxmemory", "0").Err())
	require.Nil(t, sink.Send(ctx, batch))
	require.EqualValues(t, 40, client.XLen(ctx, key).Val())
}

func TestWhatOneTopicIsRefusedCostsNoOther(t *testing.T) {
	t.Parallel()
	client := redistest.Plain(t, redistest.Start(t).Addr)
	ctx := t.Context()
	require.NoError(t, client.Set(ctx, key, "no stream", 0).Err())
	batch := []stream.Envelope{streamtest.Envelope("acme", 0), streamtest.Envelope("acme", 1)}
	batch[1].Topic = "ratelimit.thresholds"
	errs := open(t, redisstream.Config{Client: client}).Send(ctx, batch)
	require.ErrorContains(t, errs[0], "WRONGTYPE")
	require.NoError(t, errs[1])
}

// TestRedisCLIAndAnyClientOfTheProtocolReadAStream reads with a client that nobody of this project has written, and with bytes
// on a socket.
func TestRedisCLIAndAnyClientOfTheProtocolReadAStream(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	sink := open(t, redisstream.Config{Client: redistest.Connect(t, server.Addr)})
	require.Nil(t, sink.Send(t.Context(), []stream.Envelope{streamtest.Envelope("Zoë", 0), streamtest.Envelope("acme", 1)}))
	host, port, err := net.SplitHostPort(server.Addr)
	require.NoError(t, err)
	cli := func(arguments ...string) []string {
		out, err := exec.CommandContext(t.Context(), "redis-cli", append([]string{"-h", host, "-p", port, "--raw"}, arguments...)...).CombinedOutput()
		require.NoError(t, err, string(out))
		return strings.Split(strings.TrimSpace(string(out)), "\n")
	}
	lines := cli("XRANGE", key, "-", "+")
	require.Len(t, lines, 2*17)
	require.Equal(t, []string{
		"specversion", "1.0", "id", "id-0", "source", "ratelimit:main/web-1", "type", "ratelimit.decision.refused.v1", "subject", "Zoë",
		"time", "2026-09-21T14:13:20Z", "sequence", "00000000000000000001", "data", `{"n":0}`,
	}, lines[1:17])
	require.Equal(t, "acme", lines[17+10])

	// A group of consumers, as the guide has it.
	require.Equal(t, []string{"OK"}, cli("XGROUP", "CREATE", key, "siem", "0"))
	first := cli("XREADGROUP", "GROUP", "siem", "a", "COUNT", "1", "STREAMS", key, ">")
	require.Equal(t, lines[:17], first[1:])
	require.Equal(t, []string{"1"}, cli("XACK", key, "siem", first[1]))
	require.Equal(t, lines[17:], cli("XREADGROUP", "GROUP", "siem", "b", "COUNT", "10", "STREAMS", key, ">")[1:])
}

func TestARedisWithTheRightsOfTheRulesWorks(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	admin := redistest.Plain(t, server.Addr)
	ctx := t.Context()
	base, err := bucket.ACLRules("", false)
	require.NoError(t, err)
	more, err := redisstream.ACLRules("")
	require.NoError(t, err)
	consumer, err := redisstream.ConsumerACLRules("")
	require.NoError(t, err)
	as := func(name string, rules []string) *redis.Client {
		args := []any{"ACL", "SETUSER", name, "on", ">secret"}
		for _, rule := range rules {
			args = append(args, rule)
		}
		require.NoError(t, admin.Do(ctx, args...).Err())
		client := redis.NewClient(&redis.Options{Addr: server.Addr, Username: name, Password: "secret"})
		t.Cleanup(func() { _ = client.Close() })
		return client
	}
	writer := as("writer", append(base, more...))
	require.Nil(t, open(t, redisstream.Config{Client: writer}).Send(ctx, []stream.Envelope{streamtest.Envelope("acme", 0)}))
	reader := as("reader", consumer)
	require.NoError(t, reader.XGroupCreate(ctx, key, "siem", "0").Err())
	got, err := reader.XReadGroup(ctx, &redis.XReadGroupArgs{Group: "siem", Consumer: "a", Streams: []string{key, ">"}, Count: 10, Block: -1}).Result()
	require.NoError(t, err)
	require.Len(t, got[0].Messages, 1)
	require.NoError(t, reader.XAck(ctx, key, "siem", got[0].Messages[0].ID).Err())
	require.NoError(t, reader.XRange(ctx, key, "-", "+").Err())
	require.NoError(t, reader.XInfoGroups(ctx, key).Err())
	require.ErrorContains(t, reader.XAdd(ctx, &redis.XAddArgs{Stream: key, Values: []string{"a", "b"}}).Err(), "NOPERM")
	require.ErrorContains(t, reader.Get(ctx, "rl:main:{acme}:t").Err(), "NOPERM")
	_, err = redisstream.ACLRules("a b")
	require.Error(t, err)
}

func TestEntriesOfOthersAreNoEvents(t *testing.T) {
	t.Parallel()
	for _, values := range []map[string]any{
		nil,
		{"id": "1", "data": "{}"},
		{"specversion": "1.0", "id": "1"},
		{"specversion": "1.0", "data": "{}"},
		{"specversion": "1.0", "id": "1", "data": "{"},
		{"specversion": "0.3", "id": "1", "data": "{}"},
		{"specversion": "1.0", "id": "1", "data": "{}", "time": "yesterday"},
		{"specversion": "1.0", "id": "1", "data": "{}", "subject": "acme\x00"},
		{"specversion": "1.0", "id": "1", "data": "{}", "subject": "acme\xff"},
		{"specversion": "1.0", "id": "1", "data": "{}", "type": "a\nb"},
	} {
		_, err := redisstream.Decode("ratelimit.denials", redis.XMessage{ID: "1-1", Values: values})
		require.ErrorContains(t, err, "1-1", values)
	}
}

func TestMistakesOfTheConfigurationAreReportedAllAtOnce(t *testing.T) {
	t.Parallel()
	_, err := redisstream.New(redisstream.Config{Namespace: "a b", MaxEntries: 1, MaxAge: 1, MaxEvent: 1})
	for _, part := range []string{"Config.Client is nil", "Config.Namespace", "Config.MaxEntries is 1", "Config.MaxAge is 1ns", "Config.MaxEvent is 1"} {
		require.ErrorContains(t, err, part)
	}
}

func TestAClusterKeepsEachTopicOnAShard(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	var addrs []string
	for _, server := range cluster.Servers {
		addrs = append(addrs, server.Addr)
	}
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs})
	t.Cleanup(func() { _ = client.Close() })
	queue, err := stream.Start(stream.Config{Sink: open(t, redisstream.Config{Client: client})})
	require.NoError(t, err)
	for i := range 10 {
		queue.Observe(t.Context(), event.Decided{RefusalID: fmt.Sprint("A", i), Tenant: "acme"})
		queue.Observe(t.Context(), event.LimitReached{})
		queue.Observe(t.Context(), event.PolicyApplied{})
	}
	require.NoError(t, queue.Close(t.Context()))
	for _, topic := range []string{"ratelimit.denials", "ratelimit.thresholds", "ratelimit.policy.updates"} {
		require.EqualValues(t, 10, client.XLen(t.Context(), redisstream.Key("", topic)).Val())
	}
}
