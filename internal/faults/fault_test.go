package faults_test

import (
	"cmp"
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// site is a store with a fault in waiting.
type site struct {
	// addresses are what the clients of the replicas are opened with, and master is the name of the group if
	// they are those of Sentinels.
	addresses []string
	master    string
	// timeout is how long a call may take. Zero means deadline.
	timeout time.Duration
	// own are the addresses of the first replicas, where these go another way than the others.
	own [][]string
	// begin begins the fault and end ends it.
	begin, end func(t *testing.T)
	// clock is that of each replica. Nil means that of the machine.
	clock func(replica int) func() time.Time
}

func (s *site) deadline() time.Duration { return cmp.Or(s.timeout, deadline()) }

// connect opens the client that users are told to use, for one replica.
func (s *site) connect(t *testing.T, replica int) redis.UniversalClient {
	t.Helper()
	addresses := s.addresses
	if replica < len(s.own) {
		addresses = s.own[replica]
	}
	client, err := redisclient.Open("", redisclient.Config{
		Addresses: addresses, Master: s.master, SocketTimeout: max(2*s.deadline(), 25*time.Millisecond),
	})
	require.NoError(t, err)
	return client
}

// admin opens a client that waits, which must not go through what is broken.
func (s *site) admin(t *testing.T) redis.UniversalClient {
	t.Helper()
	client, err := redisclient.Open("", redisclient.Config{
		Addresses: s.addresses, Master: s.master, DialTimeout: patience, SocketTimeout: patience,
		Breaker: redisclient.BreakerConfig{Disabled: true},
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// fault is a way in which stores go wrong.
type fault struct {
	name string
	// short says that it is part of make test.
	short bool
	// unfelt says that no call fails because of it.
	unfelt bool
	// loses says that the store forgets what it has answered.
	loses bool
	start func(t *testing.T, tenants []string) *site
}

func nothing(*testing.T) {}

func direct(server *redistest.Server, begin, end func(*testing.T)) *site {
	return &site{addresses: []string{server.Addr}, begin: begin, end: end}
}

// network makes a site of a server behind a proxy that is told to break and then healed.
func network(t *testing.T, begin func(*redistest.Proxy)) *site {
	t.Helper()
	proxy := redistest.StartProxy(t, redistest.Start(t).Addr)
	return &site{
		addresses: []string{proxy.Addr},
		begin:     func(*testing.T) { begin(proxy) },
		end:       func(*testing.T) { proxy.Heal() },
	}
}

func restarted(options ...string) func(*testing.T, []string) *site {
	return func(t *testing.T, _ []string) *site {
		t.Helper()
		server := redistest.Start(t, options...)
		return direct(server,
			func(*testing.T) { server.Kill() },
			func(t *testing.T) { t.Helper(); require.NoError(t, server.Restart()) })
	}
}

var faults = []fault{
	{name: "none", unfelt: true, start: func(t *testing.T, _ []string) *site {
		t.Helper()
		return direct(redistest.Start(t), nothing, nothing)
	}},
	{name: "killed and restarted, nothing on disk", short: true, loses: true, start: restarted()},
	{name: "killed and restarted, all on disk", start: restarted("--appendonly", "yes", "--appendfsync", "always")},
	{name: "network cut and healed", start: func(t *testing.T, _ []string) *site {
		t.Helper()
		return network(t, (*redistest.Proxy).Cut)
	}},
	{name: "network cut for one of the three servers", start: func(t *testing.T, _ []string) *site {
		t.Helper()
		server := redistest.Start(t)
		proxy := redistest.StartProxy(t, server.Addr)
		s := direct(server, func(*testing.T) { proxy.Cut() }, func(*testing.T) { proxy.Heal() })
		s.own = [][]string{{proxy.Addr}}
		return s
	}},
	{name: "200 ms of latency", start: func(t *testing.T, _ []string) *site {
		t.Helper()
		return network(t, func(p *redistest.Proxy) { p.Delay(200 * time.Millisecond) })
	}},
	{name: "replies lost after they were applied", short: true, start: func(t *testing.T, _ []string) *site {
		t.Helper()
		return network(t, (*redistest.Proxy).DropReplies)
	}},
	{name: "process frozen", short: true, start: func(t *testing.T, _ []string) *site {
		t.Helper()
		server := redistest.Start(t)
		return direct(server,
			func(t *testing.T) { t.Helper(); server.Freeze(t) },
			func(t *testing.T) { t.Helper(); server.Thaw(t) })
	}},
	{name: "failover to a replica that lags", loses: true, start: failover},
	{name: "slots of a cluster moved", unfelt: true, start: slotsMoved},
	{name: "script cache flushed", unfelt: true, start: scriptsFlushed},
	{name: "clock of one replica an hour fast", unfelt: true, start: func(t *testing.T, _ []string) *site {
		t.Helper()
		s := direct(redistest.Start(t), nothing, nothing)
		s.clock = func(replica int) func() time.Time {
			return func() time.Time { return time.Now().Add(time.Duration(replica/(replicas-1)) * time.Hour) }
		}
		return s
	}},
}

// failover is behind Sentinels. The replica misses the last moments of its master, so that something is lost.
func failover(t *testing.T, _ []string) *site {
	t.Helper()
	group := redistest.StartSentinel(t, 500*time.Millisecond)
	return &site{
		addresses: group.Addrs, master: group.Name, end: nothing,
		begin: func(t *testing.T) {
			t.Helper()
			require.NoError(t, group.Replica.StopReplicating(context.Background()))
			last(t, held()/2)
			group.Master.Kill()
		},
	}
}

// slotsMoved moves the slot of each tenant to the next master.
func slotsMoved(t *testing.T, tenants []string) *site {
	t.Helper()
	cluster := redistest.StartCluster(t)
	return &site{
		addresses: cluster.Addrs, end: nothing,
		begin: func(t *testing.T) {
			t.Helper()
			for _, tenant := range tenants {
				slot := cluster.Slot(t, tenant)
				from := redistest.Shard(slot)
				to := (from + 1) % len(cluster.Servers)
				require.NoError(t, cluster.Move(context.Background(), slot, cluster.Servers[from], cluster.Servers[to]))
			}
		},
	}
}

// scriptsFlushed flushes as often as it can.
func scriptsFlushed(t *testing.T, _ []string) *site {
	t.Helper()
	server := redistest.Start(t)
	s := direct(server, nil, nil)
	admin := s.admin(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	s.begin = func(*testing.T) {
		go func() {
			defer close(ended)
			for ctx.Err() == nil {
				_ = admin.ScriptFlush(ctx).Err()
			}
		}()
	}
	s.end = func(*testing.T) { cancel(); <-ended }
	return s
}
