package doctor_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/doctor"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// patience is the timeout of tests that are not about time, and never longer than a busy machine is silent.
const (
	patience = time.Minute
	never    = time.Minute
	memory   = "1073741824"
)

// healthy are the options of a server about which nothing is to be said but that it has no replica.
func healthy(more ...string) []string {
	return append([]string{"--maxmemory", memory, "--appendonly", "yes", "--appendfsync", "no"}, more...)
}

// open returns a client as [redisclient.Open] makes them, with as much time as is not called long.
func open(t *testing.T, config redisclient.Config) redis.UniversalClient {
	t.Helper()
	config.DialTimeout, config.SocketTimeout = time.Second, time.Second
	client, err := redisclient.Open("", config)
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func at(t *testing.T, addrs ...string) redis.UniversalClient {
	t.Helper()
	return open(t, redisclient.Config{Addresses: addrs})
}

func set(t *testing.T, addr string, parameters ...any) {
	t.Helper()
	for i := 0; i < len(parameters); i += 2 {
		require.NoError(t, redistest.Plain(t, addr).Do(context.Background(), "config", "set", parameters[i], parameters[i+1]).Err())
	}
}

// examine returns the findings about the client and its servers, judged by a long timeout.
func examine(t *testing.T, client redis.UniversalClient) []doctor.Finding {
	t.Helper()
	found, err := doctor.Examine(context.Background(), doctor.Config{Client: client, Timeout: patience, Patience: patience})
	require.NoError(t, err)
	for _, f := range found {
		require.NotEmpty(t, f.Seen, f)
		require.NotEmpty(t, f.Why, f)
		require.NotEmpty(t, f.Remedy, f)
	}
	return found
}

func codes(found []doctor.Finding) []string {
	all := []string{}
	for _, f := range found {
		all = append(all, f.Code)
	}
	return all
}

// only requires that nothing is found but one thing, besides that a single server has no replica.
func only(t *testing.T, client redis.UniversalClient, severity doctor.Severity, code, seen string) doctor.Finding {
	t.Helper()
	found := examine(t, client)
	var others []doctor.Finding
	for _, f := range found {
		if f.Code != "no-replica" {
			others = append(others, f)
		}
	}
	require.Len(t, others, 1, found)
	require.Equal(t, code, others[0].Code, found)
	require.Equal(t, severity, others[0].Severity)
	require.Contains(t, others[0].Seen, seen)
	return others[0]
}

func TestAHealthyServerGivesNoFinding(t *testing.T) {
	t.Parallel()
	group := redistest.StartSentinel(t, never)
	for _, addr := range []string{group.Master.Addr, group.Replica.Addr} {
		set(t, addr, "maxmemory", memory, "appendonly", "yes")
	}
	require.Empty(t, examine(t, at(t, group.Master.Addr)))
	require.Empty(t, examine(t, open(t, redisclient.Config{Addresses: group.Addrs, Master: group.Name})))
}

func TestAHealthyClusterGivesNoFinding(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartReplicatedCluster(t, never)
	for _, addr := range cluster.Addrs {
		set(t, addr, "maxmemory", memory, "appendonly", "yes")
	}
	require.Empty(t, examine(t, at(t, cluster.Addrs...)))
	require.Empty(t, examine(t, at(t, "redis://"+cluster.Addrs[4]+"?cluster=true")))
}

func TestTheDoctorLeavesNoKeys(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	client := at(t, cluster.Addrs...)
	examine(t, client)
	for _, addr := range cluster.Addrs {
		keys, err := redistest.Plain(t, addr).DBSize(context.Background()).Result()
		require.NoError(t, err)
		require.Zero(t, keys)
	}
}

func TestWhatAUserMayNotRemoveExpires(t *testing.T) {
	t.Parallel()
	addr := redistest.Start(t, healthy()...).Addr
	allow(t, redistest.Plain(t, addr), append(rules(t, false), "-del", "-unlink")...)
	examine(t, open(t, redisclient.Config{Addresses: []string{addr}, Username: limiter, Password: "pw"}))
	ctx := context.Background()
	keys, err := redistest.Plain(t, addr).Keys(ctx, "*").Result()
	require.NoError(t, err)
	for _, key := range keys {
		require.Contains(t, key, "rl:main:{~doctor-")
		life, err := redistest.Plain(t, addr).PTTL(ctx, key).Result()
		require.NoError(t, err)
		// A key that has expired meanwhile has -2.
		require.True(t, life == -2 || life > 0 && life <= 5*time.Second, life)
	}
}

func TestMistakesInTheConfigurationAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	_, err := doctor.Examine(context.Background(), doctor.Config{Namespace: "*", Timeout: -1, Patience: -1})
	for _, text := range []string{"Config.Client is nil", `namespace "*"`, "Timeout of -1ns", "Patience of -1ns"} {
		require.ErrorContains(t, err, text)
	}
}

func TestSeveritiesAreOrdered(t *testing.T) {
	t.Parallel()
	require.True(t, doctor.Error.AtLeast(doctor.Warning))
	require.True(t, doctor.Warning.AtLeast(doctor.Warning))
	require.False(t, doctor.Note.AtLeast(doctor.Warning))
}

func TestAFrozenServerDoesNotHoldTheDoctor(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, healthy()...)
	addrs := []string{server.Addr}
	// Without deadlines in its options, go-redis waits for 20 seconds and longer.
	clients := map[string]redis.UniversalClient{
		"server":    redis.NewClient(&redis.Options{Addr: server.Addr}),
		"cluster":   redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs}),
		"sentinels": redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "main", SentinelAddrs: addrs}),
		"ring":      redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": server.Addr}}),
		"bounded":   at(t, server.Addr),
	}
	server.Freeze(t)
	defer server.Thaw(t)
	for name, client := range clients {
		t.Cleanup(func() { _ = client.Close() })
		began := time.Now()
		found, err := doctor.Examine(context.Background(), doctor.Config{Client: client, Patience: 500 * time.Millisecond})
		require.NoError(t, err)
		require.Less(t, time.Since(began), patience/6, name)
		require.Contains(t, codes(found), "unanswered", name)
	}
}

func TestOneFrozenNodeOfAClusterDoesNotHideTheOthers(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	client := at(t, cluster.Addrs...)
	require.NoError(t, client.(*redis.ClusterClient).ForEachMaster(context.Background(), func(ctx context.Context, node *redis.Client) error {
		return node.Ping(ctx).Err()
	}))
	cluster.Servers[1].Freeze(t)
	defer cluster.Servers[1].Thaw(t)
	// Of the frozen node the doctor awaits several answers, each for a tenth of its patience.
	found, err := doctor.Examine(context.Background(), doctor.Config{Client: client, Timeout: patience, Patience: patience / 4})
	require.NoError(t, err)
	seen := map[string][]string{}
	for _, f := range found {
		seen[f.Node] = append(seen[f.Node], f.Code)
	}
	require.Equal(t, []string{"unanswered"}, seen[cluster.Addrs[1]])
	for _, i := range []int{0, 2} {
		require.Contains(t, seen[cluster.Addrs[i]], "no-replica")
	}
}

func TestAServerThatIsAwayIsNamed(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := at(t, "redis://somebody:verysecret@"+server.Addr)
	server.Kill()
	found := examine(t, client)
	require.Equal(t, []string{"unreachable"}, codes(found))
	require.Equal(t, server.Addr, found[0].Node)

	// Neither the Sentinels nor a node of a cluster.
	require.Contains(t, codes(examine(t, open(t, redisclient.Config{Addresses: []string{server.Addr}, Master: "main"}))), "unreachable")
	require.Contains(t, codes(examine(t, open(t, redisclient.Config{Addresses: []string{server.Addr}, Cluster: true}))), "unreachable")
}

func TestNoFindingShowsAPassword(t *testing.T) {
	t.Parallel()
	addr := redistest.Start(t).Addr
	require.NoError(t, redistest.Plain(t, addr).Do(context.Background(), "acl", "setuser", limiter, "reset", "on", ">verysecret").Err())
	for _, password := range []string{"verysecret", "otherverysecret"} {
		found := examine(t, at(t, "redis://"+limiter+":"+password+"@"+addr))
		require.NotEmpty(t, found)
		for _, f := range found {
			require.NotContains(t, strings.Join([]string{f.Seen, f.Why, f.Remedy, f.Node}, " "), "verysecret")
		}
	}
}
