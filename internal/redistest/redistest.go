// Package redistest starts real Redis servers for tests and benchmarks, on free ports of the loopback,
// and stops them by their process when the test ends.
package redistest

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/internal/freeport"
	"github.com/gqlgen-ratelimit/ratelimit/internal/freeze"
)

const (
	startTimeout = 20 * time.Second
	pollInterval = 5 * time.Millisecond
	startTries   = 5
	// minMajor is the first version with what luatest.SetClock puts in the place of a clock.
	minMajor = 7
)

// Server is one redis-server process. Its methods are for one goroutine at a time.
type Server struct {
	// Addr is host:port.
	Addr string

	port int
	// path is the program, and args are its arguments.
	path string
	args []string
	log  string
	// tls is what its clients need. Nil means plain TCP.
	tls     *tls.Config
	process *os.Process
	exited  chan struct{}
}

// Start starts a server and stops it when the test ends. A machine without redis-server, or with one
// older than Redis 7, fails the test: skipping would leave the scripts untested without a word.
func Start(t testing.TB, options ...string) *Server {
	t.Helper()
	server, err := Launch(folder(t), options...)
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	t.Cleanup(server.Kill)
	return server
}

// folder is one that is removed when the test ends. A process that the server has forked to write its files outlives it for a moment, and may write one
// more meanwhile, so that it takes more than one try.
func folder(t testing.TB) string {
	t.Helper()
	path := t.TempDir()
	t.Cleanup(func() {
		if err := poll(func(context.Context) error { return os.RemoveAll(path) }); err != nil {
			t.Errorf("redistest: %v", err)
		}
	})
	return path
}

// Launch starts a server for a program that is no test, with its files below dir. The caller ends it
// with [Server.Kill].
func Launch(dir string, options ...string) (*Server, error) {
	return launch(dir, nil, func(ports []int) ([]string, error) {
		args := append([]string{"--port", strconv.Itoa(ports[0])}, common(dir)...)
		args = append(args, options...)
		for i, option := range options {
			if option == "--cluster-enabled" && options[i+1] == "yes" {
				args = append(args, "--cluster-port", strconv.Itoa(ports[1]))
			}
		}
		return args, nil
	})
}

// common are the arguments of every server that keeps data.
func common(dir string) []string {
	return []string{
		"--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "no", "--loglevel", "warning",
		// A replica would wait five seconds for company before its first copy, and nodes of a cluster do not
		// name a replica that has received nothing since.
		"--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1",
	}
}

// launch starts a server with the arguments that it is given for two free ports, of which the first is
// that of its clients.
func launch(dir string, clients *tls.Config, arguments func(ports []int) ([]string, error)) (*Server, error) {
	path, err := program()
	if err != nil {
		return nil, err
	}
	for range startTries {
		var ports []int
		if ports, err = freeport.Reserve(2); err != nil {
			return nil, err
		}
		var args []string
		if args, err = arguments(ports); err != nil {
			return nil, err
		}
		server := &Server{
			Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[0])), port: ports[0],
			path: path, args: args, log: filepath.Join(dir, "redis.log"), tls: clients,
		}
		// A program that reserves no ports may take one between the choice and the start.
		if err = server.start(); err == nil {
			return server, nil
		}
	}
	return nil, err
}

// ServerVariable names the program that the tests start in the place of redis-server, such as
// valkey-server.
const ServerVariable = "TEST_REDIS_SERVER"

// program returns the path of the server, which is there and new enough.
func program() (string, error) {
	name := cmp.Or(os.Getenv(ServerVariable), "redis-server")
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%w; install it (make test-tools installs redis-server)", err)
	}
	version, err := exec.Command(path, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", path, err)
	}
	if err := checkVersion(string(version)); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return path, nil
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

// start runs the program and waits until it answers.
func (s *Server) start() error {
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(s.path, s.args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	s.process, s.exited = cmd.Process, exited
	go func() {
		_ = cmd.Wait()
		close(exited)
	}()
	if err := s.ready(); err != nil {
		s.Kill()
		text, _ := os.ReadFile(log.Name())
		return fmt.Errorf("%w\n%s", err, text)
	}
	return nil
}

// client returns a client that the caller closes.
func (s *Server) client() *redis.Client {
	return redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1, TLSConfig: s.tls})
}

func (s *Server) ready() error {
	client := s.client()
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
		if err != nil {
			return err
		}
		// While it reads what it has on disk it answers this with an error.
		return client.Ping(ctx).Err()
	})
}

// errExited ends the polling: the server is not there and will not come.
var errExited = errors.New("redis-server has exited")

// Restart starts a server that was killed once more, at its address. It has what it kept on disk: nothing,
// unless an option of [Start] says otherwise.
func (s *Server) Restart() error {
	return poll(func(context.Context) error {
		// Somebody's connection may have the port for a while.
		if err := s.start(); err != nil {
			return fmt.Errorf("%w at %s: %s", errNotRestarted, s.Addr, err.Error())
		}
		return nil
	})
}

// errNotRestarted does not end the polling, as [errExited] would.
var errNotRestarted = errors.New("redis-server has not come back")

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
	if err := freeze.Process(s.process); err != nil {
		t.Fatalf("redistest: %v", err)
	}
}

// Thaw lets a frozen process go on.
func (s *Server) Thaw(t testing.TB) {
	t.Helper()
	if err := freeze.Thaw(s.process); err != nil {
		t.Fatalf("redistest: %v", err)
	}
}

// Process is the process, for a program that is no test and freezes it itself.
func (s *Server) Process() *os.Process { return s.process }

// Kill ends the process at once and waits until it is gone. It may be called more than once.
func (s *Server) Kill() {
	// The process may have ended already.
	_ = s.process.Kill()
	<-s.exited
}
