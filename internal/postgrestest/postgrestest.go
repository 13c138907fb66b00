// Package postgrestest starts a real PostgreSQL, and a PgBouncer before it, for tests: on free ports of the loopback, with their files
// in a folder of their own, as a user without rights where the tests run as root. They are stopped by their process.
package postgrestest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/freeport"
)

const (
	startTimeout = 30 * time.Second
	stopTimeout  = 20 * time.Second
	pollInterval = 10 * time.Millisecond
	startTries   = 5
)

// Server is a PostgreSQL. Its methods are for one goroutine at a time.
type Server struct {
	folder string
	port   int
	as     *syscall.Credential
	server *process
}

// Launch starts a PostgreSQL. [Server.Close] ends it.
func Launch() (_ *Server, err error) {
	as, err := unprivileged()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "postgres-")
	if err != nil {
		return nil, err
	}
	s := &Server{folder: folder, as: as}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if as != nil {
		if err := os.Chown(folder, int(as.Uid), int(as.Gid)); err != nil {
			return nil, err
		}
	}
	initdb, err := program("initdb")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(initdb, "--pgdata", s.data(), "--username", "postgres", "--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--no-sync")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	for range startTries {
		if s.port, err = freePort(); err != nil {
			return nil, err
		}
		// A program that reserves no ports may take one between the choice and the start.
		if err = s.start(); err == nil {
			return s, nil
		}
	}
	return nil, err
}

func (s *Server) data() string { return filepath.Join(s.folder, "data") }

// URL is where a database of the server is.
func (s *Server) URL(database string) string { return s.urlAt(s.port, database) }

func (s *Server) urlAt(port int, database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", port, database)
}

func (s *Server) start() error {
	postgres, err := program("postgres")
	if err != nil {
		return err
	}
	s.server, err = run(s.folder, s.as, postgres, "-D", s.data(), "-p", strconv.Itoa(s.port), "-c", "listen_addresses=127.0.0.1",
		"-c", "unix_socket_directories=", "-c", "fsync=off", "-c", "max_connections=300")
	if err != nil {
		return err
	}
	return s.server.until(func(ctx context.Context) error { return answers(ctx, s.port) })
}

// Restart ends the server with all of its connections, and starts it again with what it has.
func (s *Server) Restart() error {
	if err := s.server.stop(syscall.SIGINT); err != nil {
		return err
	}
	return s.start()
}

// Kill ends the server at once, as the loss of its process does. [Server.Revive] starts it again; until then nothing else but Close may be called.
func (s *Server) Kill() { _ = s.server.stop(syscall.SIGKILL) }

// Revive starts a server that was killed, with what it had written. Those who served its connections end by themselves, and until they have it does not start.
func (s *Server) Revive() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		if err = s.start(); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-ticker.C:
		}
	}
}

// Close ends the server and removes its files.
func (s *Server) Close() error {
	var err error
	if s.server != nil {
		err = s.server.stop(syscall.SIGINT)
	}
	return errors.Join(err, os.RemoveAll(s.folder))
}

// Bouncer is a PgBouncer in transaction mode before a [Server].
type Bouncer struct {
	server  *Server
	port    int
	process *process
}

// Bounce starts a PgBouncer before the server. [Bouncer.Close] ends it; that comes before Close of the server.
func (s *Server) Bounce() (*Bouncer, error) {
	pgbouncer, err := program("pgbouncer")
	if err != nil {
		return nil, err
	}
	for range startTries {
		b := &Bouncer{server: s}
		if b.port, err = freePort(); err != nil {
			return nil, err
		}
		config := fmt.Sprintf("[databases]\n* = host=127.0.0.1 port=%d user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %d\n"+
			"unix_socket_dir =\nauth_type = any\npool_mode = transaction\n", s.port, b.port)
		path := filepath.Join(s.folder, "pgbouncer.ini")
		if err = os.WriteFile(path, []byte(config), 0o644); err != nil {
			return nil, err
		}
		if b.process, err = run(s.folder, s.as, pgbouncer, path); err != nil {
			return nil, err
		}
		if err = b.process.until(func(ctx context.Context) error { return answers(ctx, b.port) }); err == nil {
			return b, nil
		}
	}
	return nil, err
}

// URL is where a database of the server is, through the pooler.
func (b *Bouncer) URL(database string) string { return b.server.urlAt(b.port, database) }

// Close ends the pooler.
func (b *Bouncer) Close() error { return b.process.stop(syscall.SIGTERM) }

// answers returns why a server does not let anybody in. It says the first words of PostgreSQL's protocol itself, so that the
// package needs no driver.
func answers(ctx context.Context, port int) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	// Version 3.0 of the protocol, and who asks for which database.
	hello := append([]byte{0, 0, 0, 0, 0, 3, 0, 0}, "user\x00postgres\x00database\x00postgres\x00\x00"...)
	binary.BigEndian.PutUint32(hello, uint32(len(hello)))
	if _, err := conn.Write(hello); err != nil {
		return err
	}
	reply := make([]byte, 256)
	n, err := conn.Read(reply)
	// R begins the answer to who may come in.
	if err == nil && reply[0] != 'R' {
		err = fmt.Errorf("%q", reply[:n])
	}
	return err
}

// process is a program that runs.
type process struct {
	cmd    *exec.Cmd
	said   *bytes.Buffer
	exited chan struct{}
}

func run(folder string, as *syscall.Credential, path string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(path, args...), said: &bytes.Buffer{}, exited: make(chan struct{})}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = folder, p.said, p.said
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.exited)
		_ = p.cmd.Wait()
	}()
	return p, nil
}

// until waits until a program that was started answers, and ends it if it does not.
func (p *process) until(ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.exited:
			return fmt.Errorf("%s has ended: %s", p.cmd.Path, p.said)
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%s does not answer: %w", p.cmd.Path, err), p.stop(syscall.SIGKILL))
		case <-ticker.C:
		}
	}
}

// stop ends the process by a signal, and by force if it takes too long.
func (p *process) stop(signal syscall.Signal) error {
	_ = p.cmd.Process.Signal(signal)
	select {
	case <-p.exited:
		return nil
	case <-time.After(stopTimeout):
	}
	_ = p.cmd.Process.Kill()
	<-p.exited
	return fmt.Errorf("%s had to be killed", p.cmd.Path)
}

// unprivileged returns who servers run as: they refuse to be root. Nil is whoever runs the tests.
func unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(nobody.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(nobody.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// program returns the path of a program: Debian keeps those of PostgreSQL where no PATH leads, in a folder for each version.
func program(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return filepath.EvalSymlinks(path)
	}
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin/", "/usr/sbin/", "/usr/pgsql-*/bin/"} {
		found, err := filepath.Glob(pattern + name)
		if err == nil && len(found) > 0 {
			return slices.Max(found), nil
		}
	}
	return "", fmt.Errorf("%s is missing: make postgres installs it", name)
}

func freePort() (int, error) {
	ports, err := freeport.Reserve(1)
	if err != nil {
		return 0, err
	}
	return ports[0], nil
}
