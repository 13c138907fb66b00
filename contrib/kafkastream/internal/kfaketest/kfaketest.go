// Package kfaketest starts a Kafka for tests: kfake of franz-go, built from tools/kfake, as a process of its own with three brokers on free ports of the loopback
// and its data in a folder.
package kfaketest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/gqlgen-ratelimit/ratelimit/internal/freeport"
	"github.com/gqlgen-ratelimit/ratelimit/internal/freeze"
)

// Build builds the program into a folder, without the race detector, and returns its path.
func Build(folder string) (string, error) {
	path := filepath.Join(folder, "kfake")
	cmd := exec.Command("go", "build", "-o", path, ".")
	cmd.Dir = filepath.Join("..", "..", "tools", "kfake")
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build in %s: %w: %s", cmd.Dir, err, out)
	}
	return path, nil
}

// Cluster is a Kafka of three brokers in one process. Its methods are for one goroutine at a time.
type Cluster struct {
	// Addrs are those of the brokers, also after a restart.
	Addrs []string

	arguments []string
	cmd       *exec.Cmd
	in        io.WriteCloser
	out       *bufio.Reader
	said      bytes.Buffer
}

// Launch starts a cluster with its data in a folder. [Cluster.Kill] ends it.
func Launch(program, folder string) (*Cluster, error) {
	ports, err := freeport.Reserve(3)
	if err != nil {
		return nil, err
	}
	c := &Cluster{arguments: []string{program, folder}}
	for _, port := range ports {
		c.Addrs = append(c.Addrs, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		c.arguments = append(c.arguments, strconv.Itoa(port))
	}
	return c, c.start()
}

func (c *Cluster) start() (err error) {
	c.cmd = exec.Command(c.arguments[0], c.arguments[1:]...)
	c.said.Reset()
	c.cmd.Stderr = &c.said
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.cmd.Start(); err != nil {
		return err
	}
	c.out = bufio.NewReader(out)
	return c.expect("ready\n")
}

func (c *Cluster) expect(want string) error {
	line, err := c.out.ReadString('\n')
	if err != nil || line != want {
		c.Kill()
		return errors.Join(fmt.Errorf("kfake said %q: %s", line, &c.said), err)
	}
	return nil
}

// Do gives a command to the cluster, one of those of tools/kfake.
func (c *Cluster) Do(command string) error {
	if _, err := io.WriteString(c.in, command+"\n"); err != nil {
		return err
	}
	return c.expect("done\n")
}

// Freeze stops the process without closing its connections, and Thaw makes it go on.
func (c *Cluster) Freeze() error { return freeze.Process(c.cmd.Process) }

// Thaw makes a frozen process go on.
func (c *Cluster) Thaw() error { return freeze.Thaw(c.cmd.Process) }

// Kill ends the process at once and waits until it is gone. It may be called more than once.
func (c *Cluster) Kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// Restart kills the cluster and starts it again with what it has.
func (c *Cluster) Restart() error {
	c.Kill()
	return c.start()
}
