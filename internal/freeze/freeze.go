// Package freeze stops processes of tests and benchmarks in the middle of what they do, without closing their connections, as an overloaded machine does.
//
// A signal alone is not enough: kill(2) returns before the threads on other processors have seen it, and a server that is "frozen" answers for some milliseconds more.
package freeze

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

const (
	patience = 10 * time.Second
	interval = 100 * time.Microsecond
)

// Process stops a process and returns when each of its threads has stopped. Where the system has no /proc, it returns once the signal is sent.
func Process(p *os.Process) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	threads := filepath.Join("/proc", strconv.Itoa(p.Pid), "task")
	if _, err := os.Stat(threads); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	over := time.After(patience)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		if stopped, err := allStopped(threads); stopped || err != nil {
			return err
		}
		select {
		case <-over:
			return fmt.Errorf("freeze: process %d has not stopped after %v", p.Pid, patience)
		case <-tick.C:
		}
	}
}

// Thaw lets a frozen process go on.
func Thaw(p *os.Process) error { return p.Signal(syscall.SIGCONT) }

func allStopped(threads string) (bool, error) {
	all, err := os.ReadDir(threads)
	if err != nil {
		return false, err
	}
	for _, thread := range all {
		stat, err := os.ReadFile(filepath.Join(threads, thread.Name(), "stat"))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue
		}
		if err != nil {
			return false, err
		}
		// The state is the first field after the name, which stands in brackets and may have brackets in it (proc_pid_stat(5)).
		if _, state, found := bytes.Cut(stat[max(0, bytes.LastIndexByte(stat, ')')):], []byte(") ")); !found || state[0] != 'T' {
			return false, nil
		}
	}
	return true, nil
}
