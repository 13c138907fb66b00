package freeport_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/freeport"
)

// roleVariable makes this binary a process that reserves ports of a small range, prints them, and ends with its input.
const roleVariable = "FREEPORT_TEST_FILE"

const (
	// Nobody else reserves these.
	low, high = 9000, 9999
	processes = 8
	each      = 50
)

func TestMain(m *testing.M) {
	if path := os.Getenv(roleVariable); path != "" {
		p := freeport.NewPool(path, low, high)
		for range each {
			ports, err := p.Take(1)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			_, _ = fmt.Fprintln(os.Stdout, ports[0])
		}
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestProcessesThatAskAtOnceHaveNoPortTwice(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ports")
	var mu sync.Mutex
	seen := map[int]int{}
	var reading sync.WaitGroup
	var inputs []io.Closer
	for i := range processes {
		command := exec.Command(os.Args[0])
		command.Env = append(os.Environ(), roleVariable+"="+path)
		in, err := command.StdinPipe()
		require.NoError(t, err)
		out, err := command.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, command.Start())
		// All end at once: with the race detector a process takes a second for it.
		t.Cleanup(func() { require.NoError(t, command.Wait()) })
		inputs = append(inputs, in)
		reading.Go(func() {
			lines := bufio.NewScanner(out)
			for n := 0; n < each && lines.Scan(); n++ {
				port, err := strconv.Atoi(lines.Text())
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if other, twice := seen[port]; twice {
					t.Errorf("processes %d and %d have port %d", other, i, port)
				}
				seen[port] = i
				mu.Unlock()
			}
		})
	}
	reading.Wait()
	for _, in := range inputs {
		require.NoError(t, in.Close())
	}
	require.Len(t, seen, processes*each)
}

// TestAPortOnWhichSomebodyListensIsNotGiven runs alone: a process that another test begins would have the listener for a moment after it is closed.
func TestAPortOnWhichSomebodyListensIsNotGiven(t *testing.T) {
	ports, err := freeport.Reserve(1)
	require.NoError(t, err)
	port := ports[0]
	listener, err := net.Listen("tcp", freeport.AddressOf(port))
	require.NoError(t, err)
	only := func() *freeport.Pool { return freeport.NewPool(filepath.Join(t.TempDir(), "ports"), port, port) }
	_, err = only().Take(1)
	require.ErrorIs(t, err, freeport.ErrNoneLeft)
	require.NoError(t, listener.Close())
	p := only()
	ports, err = p.Take(1)
	require.NoError(t, err)
	require.Equal(t, []int{port}, ports)
	_, err = p.Take(1)
	require.ErrorIs(t, err, freeport.ErrNoneLeft)
}

// TestAProcessThatIsBegunMeanwhileHoldsNoPort asks for ports while processes are begun, which have all files of this one until they are the program.
func TestAProcessThatIsBegunMeanwhileHoldsNoPort(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	var beginning sync.WaitGroup
	for range 2 {
		beginning.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
					_ = exec.Command("true").Run()
				}
			}
		})
	}
	t.Cleanup(beginning.Wait)
	t.Cleanup(func() { close(over) })
	for range 300 {
		at, err := freeport.Address()
		require.NoError(t, err)
		listener, err := net.Listen("tcp", at)
		require.NoError(t, err)
		require.NoError(t, listener.Close())
	}
}

func TestNoConnectionLeavesFromAReservedPort(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"32768\t60999\n": 32_767, "49152\t65535\n": 32_767, "20000\t60999\n": 19_999,
		// Hardly any is left, or the text is another one.
		"10100\t65000\n": 32_767, "1024\t65000\n": 32_767, "": 32_767,
	} {
		path := filepath.Join(t.TempDir(), "range")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		require.Equal(t, want, freeport.HighestHere(path), text)
	}
	require.Equal(t, 32_767, freeport.HighestHere(filepath.Join(t.TempDir(), "none")))
	ports, err := freeport.Reserve(3)
	require.NoError(t, err)
	for _, port := range ports {
		require.GreaterOrEqual(t, port, freeport.Lowest)
		require.LessOrEqual(t, port, freeport.HighestHere(freeport.LeavesFrom))
	}
	at, err := freeport.Address()
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(at, "127.0.0.1:"), at)
}
