package leasetest_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// patience is for how long something that has to happen may take on a busy machine.
const patience = time.Minute

// process is an instance that runs, behind a proxy of its own or none.
type process struct {
	command *exec.Cmd
	input   io.WriteCloser
	ledger  string

	mu    sync.Mutex
	said  []counted
	says  *sync.Cond
	ended bool
}

// fleet is instances that share a Redis.
type fleet struct {
	testing.TB
	setting
	// program is what an instance is.
	program string
	server  *redistest.Server
	// proxies has one for each instance, unless they ask the server directly.
	proxies []*redistest.Proxy
	clock   sharedClock

	mu  sync.Mutex
	all []*process
	// ledgers are those of all processes that there were.
	ledgers []string
	rates   []float64
	drift   int64
}

// fleetSize is how many instances a fleet has whose setting names no number.
const fleetSize = 8

// newFleet starts instances that ask for nothing yet.
func newFleet(t testing.TB, server *redistest.Server, s setting, direct bool) *fleet {
	t.Helper()
	return newFleetOf(t, os.Args[0], server, s, direct)
}

// newFleetOf starts instances of such a program.
func newFleetOf(t testing.TB, program string, server *redistest.Server, s setting, direct bool) *fleet {
	t.Helper()
	clock, err := newSharedClock()
	require.NoError(t, err)
	if s.Instances == 0 {
		s.Instances = fleetSize
	}
	fl := &fleet{
		TB: t, setting: s, program: program, server: server, clock: clock,
		all: make([]*process, s.Instances), rates: make([]float64, s.Instances),
	}
	fl.drift = wallLess(&clock)
	for i := range fl.all {
		if !direct {
			fl.proxies = append(fl.proxies, redistest.StartProxy(t, server.Addr))
		}
		fl.start(i)
	}
	for i := range fl.all {
		fl.all[i].awaits(t, 1)
	}
	t.Cleanup(func() {
		for _, p := range fl.all {
			_ = p.command.Process.Signal(syscall.SIGCONT)
			_ = p.command.Process.Kill()
			p.awaitEnd(t)
		}
	})
	return fl
}

// wallLess is the time of the day less that of the shared clock: what may change of it is what the clock of Redis drifts or steps.
func wallLess(c *sharedClock) int64 { return time.Now().UnixNano() - c.after() }

// start starts an instance, in the place of one that has ended.
func (fl *fleet) start(i int) {
	s := fl.setting
	s.Address, s.Seed = fl.server.Addr, s.Seed<<8+uint64(len(fl.ledgers))
	if fl.proxies != nil {
		s.Address = fl.proxies[i].Addr
	}
	s.Ledger = filepath.Join(fl.TempDir(), "ledger")
	text, err := json.Marshal(s)
	if err != nil {
		fl.Error(err)
		return
	}
	p := &process{command: exec.Command(fl.program), ledger: s.Ledger}
	p.says = sync.NewCond(&p.mu)
	p.command.Env = append(os.Environ(), settingVariable+"="+string(text))
	p.command.Stderr = os.Stderr
	output, err := p.command.StdoutPipe()
	if err == nil {
		p.input, err = p.command.StdinPipe()
	}
	if err == nil {
		err = p.command.Start()
	}
	if err != nil {
		fl.Error(err)
		return
	}
	go p.listen(output)
	fl.mu.Lock()
	defer fl.mu.Unlock()
	fl.all[i], fl.ledgers = p, append(fl.ledgers, s.Ledger)
	p.tell(tellRate, fl.rates[i])
}

// listen notes what the process says until it has ended.
func (p *process) listen(output io.Reader) {
	for lines := json.NewDecoder(bufio.NewReader(output)); ; {
		var c counted
		err := lines.Decode(&c)
		p.mu.Lock()
		if err == nil {
			p.said = append(p.said, c)
		}
		p.mu.Unlock()
		p.says.Broadcast()
		if err != nil {
			break
		}
	}
	_ = p.command.Wait()
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.says.Broadcast()
}

// tell writes a line. What is said to a process that has been killed is lost.
func (p *process) tell(word string, numbers ...any) {
	_, _ = fmt.Fprintln(p.input, append([]any{word}, numbers...)...)
}

// awaits returns what the process has said last, once it has said so much.
func (p *process) awaits(t testing.TB, lines int) counted {
	t.Helper()
	late := time.AfterFunc(patience, func() {
		t.Error("an instance says nothing")
		p.mu.Lock()
		p.ended = true
		p.mu.Unlock()
		p.says.Broadcast()
	})
	defer late.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.said) < lines && !p.ended {
		p.says.Wait()
	}
	require.GreaterOrEqual(t, len(p.said), lines, "the instance has ended")
	return p.said[len(p.said)-1]
}

func (p *process) awaitEnd(t testing.TB) {
	t.Helper()
	require.Eventually(t, func() bool { p.mu.Lock(); defer p.mu.Unlock(); return p.ended }, patience, time.Millisecond)
}

// load gives each instance its part of so many points each second.
func (fl *fleet) load(points float64, weights []float64) {
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	fl.mu.Lock()
	defer fl.mu.Unlock()
	for i, p := range fl.all {
		fl.rates[i] = points * weights[i] / sum
		p.tell(tellRate, fl.rates[i])
	}
}

// kill ends an instance at once, and starts another one after a while.
func (fl *fleet) kill(i int, pause time.Duration) {
	fl.mu.Lock()
	p := fl.all[i]
	fl.mu.Unlock()
	_ = p.command.Process.Kill()
	p.awaitEnd(fl)
	pass(pause)
	fl.start(i)
}

// signal signals an instance.
func (fl *fleet) signal(i int, signal syscall.Signal) {
	fl.mu.Lock()
	defer fl.mu.Unlock()
	_ = fl.all[i].command.Process.Signal(signal)
}

// isStopped reports whether a process stands still.
func isStopped(t testing.TB, pid int) bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(text), ") ")
	return strings.HasPrefix(rest, "T")
}

// count returns what each instance has done by now.
func (fl *fleet) count() []counted {
	fl.Helper()
	all := make([]counted, len(fl.all))
	for i, p := range fl.all {
		p.mu.Lock()
		lines := len(p.said)
		p.mu.Unlock()
		p.tell(tellCount)
		all[i] = p.awaits(fl, lines+1)
		require.Empty(fl, all[i].Problem)
	}
	return all
}

// finish ends the instances as servers end, and returns all operations of all that there were.
func (fl *fleet) finish() (all []operation) {
	fl.Helper()
	for _, p := range fl.all {
		require.NoError(fl, p.input.Close())
	}
	for _, p := range fl.all {
		p.awaitEnd(fl)
		require.Empty(fl, p.said[len(p.said)-1].Problem)
	}
	for _, path := range fl.ledgers {
		all = append(all, readLedger(fl, path)...)
	}
	return all
}

// inexact is by how many points what is admitted in an interval may seem to exceed the limit: the clock of Redis counts whole milliseconds, and may have drifted
// against that of the test.
func (fl *fleet) inexact() int64 {
	drift := wallLess(&fl.clock) - fl.drift
	return (max(drift, -drift)+2_000_000)/1000*fl.Refill/1_000_000 + 1
}

func (fl *fleet) budget() budget { return budget{fl.Capacity, fl.Refill} }

// calls is how many scripts a Redis has run.
func calls(t testing.TB, address string) int64 {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: address})
	defer func() { _ = client.Close() }()
	info := client.Info(t.Context(), "commandstats").Val()
	sum := int64(0)
	for _, name := range []string{"eval", "evalsha", "fcall"} {
		if _, rest, found := strings.Cut(info, "cmdstat_"+name+":calls="); found {
			number, _, _ := strings.Cut(rest, ",")
			n, err := strconv.ParseInt(number, 10, 64)
			require.NoError(t, err)
			sum += n
		}
	}
	return sum
}

// The parts of the load that instances have.
func even() []float64 { return []float64{1, 1, 1, 1, 1, 1, 1, 1} }

func zipf() (weights []float64) {
	for i := range fleetSize {
		weights = append(weights, 1/float64(i+1))
	}
	return weights
}

// onOne is 60 % on one instance.
func onOne(hot int) []float64 {
	weights := even()
	weights[hot] = 0.6 / 0.4 * (fleetSize - 1)
	return weights
}

// newRandom draws from TEST_SEED what happens, though not when.
func newRandom(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 17)) }
