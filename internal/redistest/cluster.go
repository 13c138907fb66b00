package redistest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	masters = 3
	slots   = 16384
	// joinTimeout is how long a node may be silent while the cluster forms: news travel twice in it.
	joinTimeout = 2 * time.Second
)

// Cluster is a Redis Cluster of three masters.
type Cluster struct {
	// Addrs are the addresses of the nodes.
	Addrs []string
	// Servers are the masters of the start. Each has a third of the slots.
	Servers []*Server
	// Replicas are those of the masters at the same places, if there are any.
	Replicas []*Server
}

// StartCluster starts a cluster of three masters and stops it when the test ends. A lost master takes
// only its own slots away.
func StartCluster(t testing.TB) *Cluster {
	t.Helper()
	return startCluster(t, 0, joinTimeout)
}

// StartReplicatedCluster starts a cluster of three masters with a replica each, waits until these are in
// step, and stops it when the test ends. A master that is silent for the timeout is replaced by its
// replica some time after: choose it long where nothing is to be replaced, because a busy machine is
// silent too.
func StartReplicatedCluster(t testing.TB, timeout time.Duration) *Cluster {
	t.Helper()
	return startCluster(t, masters, timeout)
}

func startCluster(t testing.TB, replicas int, timeout time.Duration) *Cluster {
	t.Helper()
	cluster := &Cluster{}
	clients := make([]*redis.Client, 0, masters+replicas)
	for i := range masters + replicas {
		server := Start(t, "--cluster-enabled", "yes", "--cluster-require-full-coverage", "no",
			"--cluster-node-timeout", milliseconds(joinTimeout))
		cluster.Addrs = append(cluster.Addrs, server.Addr)
		if i < masters {
			cluster.Servers = append(cluster.Servers, server)
		} else {
			cluster.Replicas = append(cluster.Replicas, server)
		}
		client := server.client()
		defer func() { _ = client.Close() }()
		clients = append(clients, client)
	}
	err := cluster.join(clients)
	for _, client := range clients {
		if err == nil {
			err = client.ConfigSet(context.Background(), "cluster-node-timeout", milliseconds(timeout)).Err()
		}
	}
	if err != nil {
		t.Fatalf("redistest: cluster: %v", err)
	}
	return cluster
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// join makes a cluster of nodes that do not know each other.
func (c *Cluster) join(clients []*redis.Client) error {
	ctx := context.Background()
	for i, client := range clients {
		if i < masters {
			first, last := i*slots/masters, (i+1)*slots/masters-1
			if err := client.ClusterAddSlotsRange(ctx, first, last).Err(); err != nil {
				return err
			}
		}
		config, err := client.ConfigGet(ctx, "cluster-port").Result()
		if err != nil {
			return err
		}
		if i > 0 {
			err := clients[0].Do(ctx, "cluster", "meet", "127.0.0.1", c.server(i).port, config["cluster-port"]).Err()
			if err != nil {
				return err
			}
		}
	}
	if err := known(clients); err != nil {
		return err
	}
	if len(c.Replicas) == 0 {
		return nil
	}
	if err := replicate(ctx, clients); err != nil {
		return err
	}
	return mapped(clients)
}

func (c *Cluster) server(i int) *Server {
	if i < masters {
		return c.Servers[i]
	}
	return c.Replicas[i-masters]
}

// known waits until every node knows all others and who has which slots.
func known(clients []*redis.Client) error {
	for _, client := range clients {
		err := poll(func(ctx context.Context) error {
			info, err := client.ClusterInfo(ctx).Result()
			if err != nil {
				return err
			}
			if !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_slots_ok:16384") ||
				!strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d", len(clients))) {
				return errors.New(info)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// replicate makes the nodes after the masters their replicas, and waits until each has a whole copy: before
// that it would not take the place of its master.
func replicate(ctx context.Context, clients []*redis.Client) error {
	for i, replica := range clients[masters:] {
		id, err := clients[i].ClusterMyID(ctx).Result()
		if err != nil {
			return err
		}
		if err := replica.ClusterReplicate(ctx, id).Err(); err != nil {
			return err
		}
	}
	for i, replica := range clients[masters:] {
		if err := poll(func(ctx context.Context) error { return inStep(ctx, clients[i], replica) }); err != nil {
			return err
		}
	}
	return nil
}

// inStep returns an error while a replica has not all that its master has.
func inStep(ctx context.Context, master, replica *redis.Client) error {
	of, err := master.Info(ctx, "replication").Result()
	if err != nil {
		return err
	}
	in, err := replica.Info(ctx, "replication").Result()
	if err != nil {
		return err
	}
	if !strings.Contains(of, "state=online") || !strings.Contains(in, "master_link_status:up") {
		return fmt.Errorf("the replica is not in step:\n%s%s", of, in)
	}
	return nil
}

// mapped waits until every node says of every master that it has a replica, so that a client that asks any
// of them learns all.
func mapped(clients []*redis.Client) error {
	for _, client := range clients {
		err := poll(func(ctx context.Context) error {
			ranges, err := client.ClusterSlots(ctx).Result() //nolint:staticcheck // It is what go-redis asks for its map.
			if err != nil {
				return err
			}
			for _, r := range ranges {
				if len(r.Nodes) != len(clients)/masters {
					return fmt.Errorf("slots %d to %d have %d nodes", r.Start, r.End, len(r.Nodes))
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Slot returns the slot of a key.
func (c *Cluster) Slot(t testing.TB, key string) int {
	t.Helper()
	client := c.Servers[0].client()
	defer func() { _ = client.Close() }()
	slot, err := client.ClusterKeySlot(context.Background(), key).Result()
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	return int(slot)
}

// Shard returns the place among Servers of the master that has had the slot from the start.
func Shard(slot int) int {
	for i := range masters {
		if slot < (i+1)*slots/masters {
			return i
		}
	}
	return masters - 1
}
