// Package ferrettest starts servers that speak the protocol of MongoDB for tests: FerretDB, built from tools/ferretdb, with SQLite in a
// folder, on a free port of the loopback. They are stopped by their process.
package ferrettest

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/freeport"
)

const stopTimeout = 10 * time.Second

// Build builds the program into a folder, without the race detector, and returns its path.
func Build(folder string) (string, error) {
	path := filepath.Join(folder, "ferretdb")
	cmd := exec.Command("go", "build", "-o", path, ".")
	cmd.Dir = filepath.Join("..", "..", "tools", "ferretdb")
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build in %s: %w: %s", cmd.Dir, err, out)
	}
	return path, nil
}

// Server is a FerretDB. Its methods are for one goroutine at a time.
type Server struct {
	// URI is where it is, also after a restart.
	URI string

	program, folder, address string
	cmd                      *exec.Cmd
	said                     bytes.Buffer
	exited                   chan struct{}
}

// Launch starts a server with its data in a folder. [Server.Stop] ends it.
func Launch(program, folder string) (*Server, error) {
	address, err := freeport.Address()
	if err != nil {
		return nil, err
	}
	s := &Server{program: program, folder: folder, address: address}
	return s, s.start()
}

func (s *Server) start() error {
	s.cmd, s.exited = exec.Command(s.program, s.address, s.folder), make(chan struct{})
	s.said.Reset()
	s.cmd.Stderr = &s.said
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	go func() {
		_ = s.cmd.Wait()
		close(s.exited)
	}()
	if err != nil {
		<-s.exited
		return fmt.Errorf("%s has ended: %s", s.program, &s.said)
	}
	s.URI = strings.TrimSpace(line)
	return nil
}

// Restart ends the server with all of its connections, and starts it again with what it has at the same address.
func (s *Server) Restart() error {
	if err := s.Stop(); err != nil {
		return err
	}
	return s.start()
}

// Stop ends the server.
func (s *Server) Stop() error {
	_ = s.cmd.Process.Signal(os.Interrupt)
	select {
	case <-s.exited:
		return nil
	case <-time.After(stopTimeout):
	}
	_ = s.cmd.Process.Kill()
	<-s.exited
	return fmt.Errorf("%s had to be killed", s.program)
}
