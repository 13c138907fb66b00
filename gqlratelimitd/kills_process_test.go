package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// roleVariable has this binary be a process of the fleet that is killed, instead of running tests: its role and what that takes, with | between.
const roleVariable = "KILL_TEST_ROLE"

// Roles of processes.
const (
	roleInstance = "instance"
	roleDaemon   = "daemon"
	roleProxy    = "proxy"
	// roleMain is the program itself, with its arguments.
	roleMain = "main"
)

func TestMain(m *testing.M) {
	role := os.Getenv(roleVariable)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := runRole(strings.Split(role, "|")); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// runRole runs until it is killed, or until its standard input ends because the test is gone.
func runRole(words []string) error {
	switch words[0] {
	case roleMain:
		main()
	case roleProxy:
		return runProxy(words[1], words[2])
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	if words[0] == roleInstance {
		return runInstance(words[1], words[2], words[3])
	}
	return runKilledDaemon(words[1], words[2])
}

// runProxy stands at an address before a server, and loses replies when it is told to.
func runProxy(address, server string) error {
	p, err := redistest.LaunchProxyAt(address, server)
	if err != nil {
		return err
	}
	say("up", address)
	orders := bufio.NewScanner(os.Stdin)
	for orders.Scan() {
		switch order, of, _ := strings.Cut(orders.Text(), " "); order {
		case "lose":
			p.LoseReply(of)
		case "drop":
			p.DropReplies()
		case "heal":
			p.Heal()
		case "sever":
			p.Sever()
		}
	}
	return nil
}

// killable is a process of this binary that is killed and started again.
type killable struct {
	// role returns what the next one is, and first is how its first line begins.
	role  func() string
	first string
	// log is a file with what the last one has written of its errors.
	log string
	// hear is told each line, the first one too.
	hear func(line string)

	mu      sync.Mutex
	command *exec.Cmd
	orders  io.WriteCloser
	heard   chan struct{}
}

// rise starts the process, again and again until it is there: it may need what is away.
func (k *killable) rise() (err error) {
	for deadline := time.Now().Add(patient); time.Now().Before(deadline); <-time.After(soon) {
		if err = k.launch(); err == nil {
			return nil
		}
	}
	said, _ := os.ReadFile(k.log)
	return fmt.Errorf("%s: %w\n%s", k.log, err, said)
}

func (k *killable) launch() error {
	log, err := os.Create(k.log)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), roleVariable+"="+k.role())
	command.Stderr = log
	orders, err := command.StdinPipe()
	if err != nil {
		return err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(out)
	up := false
	for !up && lines.Scan() {
		k.hear(lines.Text())
		up = strings.HasPrefix(lines.Text(), k.first)
	}
	if !up {
		_ = command.Process.Kill()
		_ = command.Wait()
		return fmt.Errorf("it has ended before it was there: %s", command.ProcessState)
	}
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		for lines.Scan() {
			k.hear(lines.Text())
		}
	}()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.command, k.orders, k.heard = command, orders, heard
	return nil
}

// order tells the process something, which may be gone.
func (k *killable) order(text string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, _ = io.WriteString(k.orders, text+"\n")
}

// die kills the process as the loss of a machine does, and waits until all that it had said was heard.
func (k *killable) die() {
	k.mu.Lock()
	defer k.mu.Unlock()
	_ = k.command.Process.Kill()
	<-k.heard
	_ = k.command.Wait()
	_ = k.orders.Close()
}
