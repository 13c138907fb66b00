// Package natstest starts servers of NATS for tests, built from tools/nats, as processes with JetStream on a free port of the loopback and their data in a folder.
package natstest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/freeport"
	"github.com/gqlgen-ratelimit/ratelimit/internal/freeze"
)

// Build builds the program into a folder, without the race detector, and returns its path.
func Build(folder string) (string, error) {
	path := filepath.Join(folder, "nats-server")
	cmd := exec.Command("go", "build", "-o", path, "github.com/nats-io/nats-server/v2")
	cmd.Dir = filepath.Join("..", "..", "tools", "nats")
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build in %s: %w: %s", cmd.Dir, err, out)
	}
	return path, nil
}

// Server is a nats-server. Its methods are for one goroutine at a time.
type Server struct {
	// Addr is where it is, also after a restart.
	Addr string

	arguments []string
	cmd       *exec.Cmd
	said      bytes.Buffer
}

// Launch starts a server with its data in a folder. [Server.Kill] ends it.
func Launch(program, folder string) (*Server, error) {
	address, err := freeport.Address()
	if err != nil {
		return nil, err
	}
	s := &Server{Addr: address}
	config := filepath.Join(folder, "nats.conf")
	text := fmt.Sprintf("listen: %q\nmax_payload: 128KB\njetstream: {store_dir: %q}\n", s.Addr, folder)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	s.arguments = []string{program, "-c", config}
	return s, s.start()
}

// readyTimeout is for how long a server may take to start.
const readyTimeout = 30 * time.Second

func (s *Server) start() error {
	s.cmd = exec.Command(s.arguments[0], s.arguments[1:]...)
	s.said.Reset()
	s.cmd.Stderr = &s.said
	if err := s.cmd.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.Addr)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			s.Kill()
			return fmt.Errorf("nats-server does not start: %s", &s.said)
		}
	}
}

// Freeze stops the process without closing its connections.
func (s *Server) Freeze() error { return freeze.Process(s.cmd.Process) }

// Thaw makes a frozen process go on.
func (s *Server) Thaw() error { return freeze.Thaw(s.cmd.Process) }

// Kill ends the process at once and waits until it is gone. It may be called more than once.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// Restart kills the server and starts it again with what it has.
func (s *Server) Restart() error {
	s.Kill()
	return s.start()
}
