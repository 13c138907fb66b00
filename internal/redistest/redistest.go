// Package redistest starts real Redis servers for tests and benchmarks, on free ports of the loopback,
// and stops them by their process when the test ends.
package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	startTimeout = 20 * time.Second
	pollInterval = 5 * time.Millisecond
	startTries   = 5
	lastSlot     = 16383
	// minMajor is the first version with what lua.WithTestClock puts in the place of a clock.
	minMajor = 7
)

// Server is one redis-server process.
type Server struct {
	// Addr is host:port.
	Addr string

	port    int
	process *os.Process
	exited  chan struct{}
}

// Start starts a server and stops it when the test ends. A machine without redis-server, or with one
// older than Redis 7, fails the test: skipping would leave the scripts untested without a word.
func Start(t testing.TB, options ...string) *Server {
	t.Helper()
	server, err := Launch(t.TempDir(), options...)
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	t.Cleanup(server.Kill)
	return server
}

// Launch starts a server for a program that is no test, with its files below dir. The caller ends it
// with [Server.Kill].
func Launch(dir string, options ...string) (*Server, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("%w; install Redis, for example with: make test-tools", err)
	}
	version, err := exec.Command(path, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("%s --version: %w", path, err)
	}
	if err := checkVersion(string(version)); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var server *Server
	for range startTries {
		// Another process may take the port between the choice and the start.
		if server, err = start(path, dir, options); err == nil {
			return server, nil
		}
	}
	return nil, err
}

// checkVersion returns an error if what redis-server says of its version is older than the tests need.
func checkVersion(text string) error {
	_, version, _ := strings.Cut(text, " v=")
	version, _, _ = strings.Cut(version, " ")
	major, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(major)
	switch {
	case err != nil:
		return fmt.Errorf("unknown version %.80q; the tests need Redis %d or later", strings.TrimSpace(text), minMajor)
	case n < minMajor:
		return fmt.Errorf("version %s; the tests need Redis %d or later, because their clock uses PEXPIRETIME (production needs 6.2)",
			version, minMajor)
	}
	return nil
}

func start(path, dir string, options []string) (*Server, error) {
	ports, err := freePorts(2)
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "redis.log"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	args := append([]string{
		"--port", strconv.Itoa(ports[0]), "--bind", "127.0.0.1", "--dir", dir,
		"--save", "", "--appendonly", "no", "--loglevel", "warning",
	}, options...)
	for i, option := range options {
		if option == "--cluster-enabled" && options[i+1] == "yes" {
			args = append(args, "--cluster-port", strconv.Itoa(ports[1]))
		}
	}
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	server := &Server{
		Addr:    net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[0])),
		port:    ports[0],
		process: cmd.Process,
		exited:  make(chan struct{}),
	}
	go func() {
		_ = cmd.Wait()
		close(server.exited)
	}()
	if err := server.ready(); err != nil {
		server.Kill()
		text, _ := os.ReadFile(log.Name())
		return nil, fmt.Errorf("%w\n%s", err, text)
	}
	return server, nil
}

func (s *Server) ready() error {
	client := redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1})
	defer func() { _ = client.Close() }()
	return poll(func(ctx context.Context) error {
		select {
		case <-s.exited:
			return errExited
		default:
		}
		// Another server may have the port: only the own process counts.
		info, err := client.Info(ctx, "server").Result()
		if err == nil && !strings.Contains(info, fmt.Sprintf("process_id:%d\r\n", s.process.Pid)) {
			return errExited
		}
		return err
	})
}

// errExited ends the polling: the server is not there and will not come.
var errExited = errors.New("redis-server has exited")

func poll(try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		err := try(ctx)
		if err == nil || errors.Is(err, errExited) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-ticker.C:
		}
	}
}

// Freeze stops the process without closing its connections, as an overloaded machine does.
func (s *Server) Freeze(t testing.TB) {
	t.Helper()
	s.signal(t, syscall.SIGSTOP)
}

// Thaw lets a frozen process go on.
func (s *Server) Thaw(t testing.TB) {
	t.Helper()
	s.signal(t, syscall.SIGCONT)
}

func (s *Server) signal(t testing.TB, signal os.Signal) {
	t.Helper()
	if err := s.Signal(signal); err != nil {
		t.Fatalf("redistest: %v: %v", signal, err)
	}
}

// Signal sends a signal to the process, for a program that is no test.
func (s *Server) Signal(signal os.Signal) error {
	return s.process.Signal(signal)
}

// Kill ends the process at once and waits until it is gone. It may be called more than once.
func (s *Server) Kill() {
	// The process may have ended already.
	_ = s.process.Kill()
	<-s.exited
}

// Cluster is a Redis Cluster of three masters.
type Cluster struct {
	// Addrs are the addresses of the nodes.
	Addrs []string
	// Servers are the nodes.
	Servers []*Server
}

// StartCluster starts a cluster of three masters and stops it when the test ends.
func StartCluster(t testing.TB) *Cluster {
	t.Helper()
	const nodes = 3
	cluster := &Cluster{}
	clients := make([]*redis.Client, nodes)
	for i := range nodes {
		server := Start(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000",
			"--cluster-require-full-coverage", "no")
		cluster.Servers = append(cluster.Servers, server)
		cluster.Addrs = append(cluster.Addrs, server.Addr)
		clients[i] = redis.NewClient(&redis.Options{Addr: server.Addr})
		defer func() { _ = clients[i].Close() }()
	}
	if err := join(cluster, clients); err != nil {
		t.Fatalf("redistest: cluster: %v", err)
	}
	return cluster
}

func join(cluster *Cluster, clients []*redis.Client) error {
	ctx := context.Background()
	n := len(clients)
	for i, client := range clients {
		first, last := i*(lastSlot+1)/n, (i+1)*(lastSlot+1)/n-1
		if err := client.ClusterAddSlotsRange(ctx, first, last).Err(); err != nil {
			return err
		}
		bus, err := busPort(ctx, client)
		if err != nil {
			return err
		}
		if i > 0 {
			err := clients[0].Do(ctx, "cluster", "meet", "127.0.0.1", cluster.Servers[i].port, bus).Err()
			if err != nil {
				return err
			}
		}
	}
	for _, client := range clients {
		err := poll(func(ctx context.Context) error {
			info, err := client.ClusterInfo(ctx).Result()
			if err != nil {
				return err
			}
			if !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_slots_ok:16384") ||
				!strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d", n)) {
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

func busPort(ctx context.Context, client *redis.Client) (string, error) {
	config, err := client.ConfigGet(ctx, "cluster-port").Result()
	return config["cluster-port"], err
}

// freePorts returns ports that nothing listens on.
func freePorts(n int) ([]int, error) {
	ports := make([]int, n)
	for i := range ports {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		// All are held until the last is chosen, so that they differ.
		defer func() { _ = listener.Close() }()
		address, ok := listener.Addr().(*net.TCPAddr)
		if !ok {
			return nil, fmt.Errorf("redistest: %v is no TCP address", listener.Addr())
		}
		ports[i] = address.Port
	}
	return ports, nil
}
