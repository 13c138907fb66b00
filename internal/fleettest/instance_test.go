package fleettest_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// arrival is a revision that an instance has had since then.
type arrival struct {
	number uint64
	at     time.Time
}

// instance is a process, and what it has said.
type instance struct {
	is      kind
	command *exec.Cmd
	input   io.WriteCloser
	heard   sync.WaitGroup

	mu       sync.Mutex
	arrivals []arrival
	late     map[int64]time.Duration
	// serves is what it has answered last.
	serves uint64
	wrong  []string
}

// startInstance starts a process that ends with the test.
func startInstance(t *testing.T, is kind, group *redistest.Sentinel) *instance {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	i := &instance{is: is, command: exec.Command(self), late: map[int64]time.Duration{}}
	i.command.Env = append(os.Environ(), kindVariable+"="+string(is),
		sentinelsVariable+"="+strings.Join(group.Addrs, ","), masterVariable+"="+group.Name)
	i.command.Stderr = os.Stderr
	i.input, err = i.command.StdinPipe()
	require.NoError(t, err)
	output, err := i.command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, i.command.Start())
	i.heard.Go(func() { i.hear(output) })
	t.Cleanup(func() {
		_ = i.command.Process.Kill()
		i.heard.Wait()
		_ = i.command.Wait()
		_ = i.input.Close()
	})
	return i
}

func (i *instance) hear(output io.Reader) {
	for lines := bufio.NewScanner(output); lines.Scan(); {
		var what string
		var first, second int64
		n, _ := fmt.Sscan(lines.Text(), &what, &first, &second)
		i.mu.Lock()
		switch {
		case what == saysHas && n == 3:
			i.arrivals = append(i.arrivals, arrival{uint64(first), time.Unix(0, second)})
		case what == saysLate && n == 3:
			i.late[first] = time.Duration(second)
		case what == saysServes && n >= 2:
			i.serves = uint64(first)
		default:
			i.wrong = append(i.wrong, lines.Text())
		}
		i.mu.Unlock()
	}
}

// has is the number of the revision that it has said last, 0 for none.
func (i *instance) has() uint64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.arrivals) == 0 {
		return 0
	}
	return i.arrivals[len(i.arrivals)-1].number
}

// answered asks what it serves, and returns what it has answered to an earlier question.
func (i *instance) answered(t *testing.T) uint64 {
	t.Helper()
	_, err := io.WriteString(i.input, "?\n")
	require.NoError(t, err)
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.serves
}

// said returns its arrivals in the order in which it had them.
func (i *instance) said() []arrival {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.arrivals)
}

// backwardSteps is how often it has had an older revision after a newer one.
func (i *instance) backwardSteps() (n int) {
	before := uint64(0)
	for _, a := range i.said() {
		if a.number < before {
			n++
		}
		before = a.number
	}
	return n
}
