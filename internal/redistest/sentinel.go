package redistest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const sentinels = 3

// Sentinel is a master with a replica, and three Sentinels that watch them.
type Sentinel struct {
	// Name is that of the master, by which clients ask for its address.
	Name string
	// Addrs are the addresses of the Sentinels.
	Addrs []string
	// Master and Replica are the servers as they were at the start.
	Master, Replica *Server
}

// StartSentinel starts a group, waits until each Sentinel knows all others and the replica is in step, and
// stops it when the test ends. The replica takes the place of a master that is silent for as long as
// downAfter: choose it long where nothing is to be replaced, because a busy machine is silent too.
func StartSentinel(t testing.TB, downAfter time.Duration) *Sentinel {
	t.Helper()
	group := &Sentinel{Name: "main", Master: Start(t)}
	group.Replica = Start(t, "--replicaof", "127.0.0.1 "+strconv.Itoa(group.Master.port))
	master, replica := group.Master.client(), group.Replica.client()
	defer func() { _ = master.Close(); _ = replica.Close() }()
	err := poll(func(ctx context.Context) error { return inStep(ctx, master, replica) })
	for range sentinels {
		if err != nil {
			t.Fatalf("redistest: sentinel: %v", err)
		}
		var server *Server
		if server, err = group.watch(t.TempDir(), downAfter); err == nil {
			t.Cleanup(server.Kill)
			group.Addrs = append(group.Addrs, server.Addr)
		}
	}
	if err == nil {
		err = group.complete()
	}
	if err != nil {
		t.Fatalf("redistest: sentinel: %v", err)
	}
	return group
}

// watch starts one Sentinel, which writes what it learns into its configuration.
func (g *Sentinel) watch(dir string, downAfter time.Duration) (*Server, error) {
	return launch(dir, nil, func(ports []int) ([]string, error) {
		path := filepath.Join(dir, "sentinel.conf")
		lines := []string{
			fmt.Sprintf("port %d", ports[0]),
			"bind 127.0.0.1",
			"dir " + dir,
			"loglevel warning",
			fmt.Sprintf("sentinel monitor %s 127.0.0.1 %d 2", g.Name, g.Master.port),
			fmt.Sprintf("sentinel down-after-milliseconds %s %d", g.Name, downAfter.Milliseconds()),
			fmt.Sprintf("sentinel failover-timeout %s 3000", g.Name),
		}
		err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600)
		return []string{path, "--sentinel"}, err
	})
}

// complete waits until each Sentinel knows the others and the replica.
func (g *Sentinel) complete() error {
	for _, addr := range g.Addrs {
		client := redis.NewSentinelClient(&redis.Options{Addr: addr})
		defer func() { _ = client.Close() }()
		err := poll(func(ctx context.Context) error {
			master, err := client.Master(ctx, g.Name).Result()
			if err != nil {
				return err
			}
			if master["num-other-sentinels"] != strconv.Itoa(sentinels-1) || master["num-slaves"] != "1" {
				return fmt.Errorf("a sentinel knows only: %v", master)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// StopReplicating lets a replica miss what its master writes from now on, as one that lags does. It can still
// take the place of the master.
func (s *Server) StopReplicating(ctx context.Context) error {
	client := s.client()
	defer func() { _ = client.Close() }()
	// The master knows no password: a replica that gives one is not let in again.
	if err := client.ConfigSet(ctx, "masterauth", "none").Err(); err != nil {
		return err
	}
	return client.Do(ctx, "client", "kill", "type", "master").Err()
}
