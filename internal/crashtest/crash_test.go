package crashtest_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

var (
	kills = flag.Int("kills", 6, "how many times a server is killed in each test")
	lanes = flag.Int("lanes", 3, "how many servers run at once")
)

const (
	// clientsOfALane is how many clients send operations at once to one server. Those whose server was
	// killed wait for the lease of their operation most of the time.
	clientsOfALane = 12
	// life is how long a server lives at most once it listens.
	life = 150 * time.Millisecond
)

// lane is a server that is killed and started again, and its clients.
type lane struct {
	address, refuse string
	// url is where the server listens, or listened.
	url atomic.Pointer[string]
}

// server is a running process.
type server struct {
	command *exec.Cmd
	input   interface{ Close() error }
}

// start starts a server and waits until it listens.
func (l *lane) start() (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := exec.Command(self)
	command.Env = append(os.Environ(), addrVariable+"="+l.address, refuseVariable+"="+l.refuse)
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	started := &server{command: command, input: input}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		started.end()
		return nil, fmt.Errorf("the server said %q: %w", line, err)
	}
	url := strings.TrimSpace(line)
	l.url.Store(&url)
	return started, nil
}

// end kills the process, as a machine that loses its power does, and waits until it is gone.
func (s *server) end() {
	_ = s.command.Process.Kill()
	_ = s.command.Wait()
	_ = s.input.Close()
}

// run kills servers of the lane at random moments while its clients send operations, and then lets the last
// server finish what was begun.
func (l *lane) run(times int, count *counts, client func(stop <-chan struct{})) error {
	running, err := l.start()
	if err != nil {
		return err
	}
	defer func() { running.end() }()
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for range clientsOfALane {
		clients.Go(func() { client(stop) })
	}
	for range times {
		<-time.After(rand.N(life))
		running.end()
		count.kills.Add(1)
		next, startErr := l.start()
		if startErr != nil {
			err = startErr
			break
		}
		running = next
	}
	close(stop)
	clients.Wait()
	return err
}

// counts are what a test reports.
type counts struct {
	kills, broken, inFlight, answered, replayed, unknown atomic.Int64
}

// crash runs the lanes and returns the operations by name, with how they ended.
func crash(t *testing.T, address, refuse string, count *counts) map[string]outcome {
	t.Helper()
	var mu sync.Mutex
	ended := map[string]outcome{}
	var group sync.WaitGroup
	errs := make([]error, *lanes)
	for i := range *lanes {
		times := *kills / *lanes
		if i < *kills%*lanes {
			times++
		}
		group.Go(func() {
			l := &lane{address: address, refuse: refuse}
			errs[i] = l.run(times, count, func(stop <-chan struct{}) {
				c := newClientOf(l, count)
				defer c.http.CloseIdleConnections()
				for {
					select {
					case <-stop:
						return
					default:
					}
					name := fmt.Sprintf("operation-%d", rand.Uint64())
					how := c.operate(name)
					mu.Lock()
					ended[name] = how
					mu.Unlock()
				}
			})
		})
	}
	group.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.NotEmpty(t, ended)
	return ended
}

// requireChargedOnce looks at the budget of each operation.
func requireChargedOnce(t *testing.T, address string, ended map[string]outcome) {
	t.Helper()
	client := newClient(address, 0)
	defer func() { _ = client.Close() }()
	store, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Timeout: patience})
	require.NoError(t, err)
	window := bucket.Window{Kind: bucket.FixedWindow}
	limits, err := bucket.Compile(
		bucket.Limit{Name: "points", Capacity: 1000, Period: 24 * time.Hour, Window: window},
		bucket.Limit{Name: "requests", Unit: bucket.Requests, Capacity: 100, Period: 24 * time.Hour, Window: window},
	)
	require.NoError(t, err)
	for name := range ended {
		states, err := store.Peek(context.Background(), "acme",
			[]bucket.Bucket{{Owner: bucket.Owner{Level: bucket.User, Name: name}, Limits: limits}})
		require.NoError(t, err)
		require.EqualValues(t, 1000-price, states[0].Remaining, "%s: points", name)
		require.EqualValues(t, 100-1, states[1].Remaining, "%s: requests", name)
	}
}

// countEffectsOf returns how often each operation took effect.
func countEffectsOf(t *testing.T, address string, ended map[string]outcome) map[string]int {
	t.Helper()
	client := newClient(address, effects)
	defer func() { _ = client.Close() }()
	times := map[string]int{}
	for name := range ended {
		n, err := client.Get(context.Background(), name).Int()
		if err != nil {
			require.ErrorIs(t, err, redis.Nil)
		}
		times[name] = n
	}
	return times
}

func TestAKilledServerChargesEachOperationOnceAndItsEffectHappensAtLeastOnce(t *testing.T) {
	t.Parallel()
	address, count := redistest.Start(t).Addr, &counts{}
	ended := crash(t, address, "", count)
	requireChargedOnce(t, address, ended)
	more, most := 0, 0
	for name, times := range countEffectsOf(t, address, ended) {
		require.Equal(t, answered, ended[name], "%s: every operation is answered in the end", name)
		require.NotZero(t, times, "%s: what was answered has happened", name)
		if times > 1 {
			more++
		}
		most = max(most, times)
	}
	count.log(t, len(ended))
	t.Logf("effects: %d operations took effect more than once, the worst of them %d times", more, most)
}

func TestAKilledServerRepeatsNoEffectWhereAbandonedClaimsAreRefused(t *testing.T) {
	t.Parallel()
	address, count := redistest.Start(t).Addr, &counts{}
	ended := crash(t, address, "1", count)
	requireChargedOnce(t, address, ended)
	happened := 0
	for name, times := range countEffectsOf(t, address, ended) {
		require.LessOrEqual(t, times, 1, "%s: no effect happened twice", name)
		if ended[name] == answered {
			require.Equal(t, 1, times, "%s: what was answered has happened", name)
			continue
		}
		require.Equal(t, unknown, ended[name], name)
		happened += times
	}
	count.log(t, len(ended))
	t.Logf("effects: none happened twice; of the %d operations whose outcome is unknown %d took effect",
		count.unknown.Load(), happened)
}

func (c *counts) log(t *testing.T, operations int) {
	t.Helper()
	t.Logf("%d kills; %d operations, all charged exactly once: %d answered, %d of unknown outcome; %d attempts got no answer, "+
		"%d told that another is in flight; %d answers asked for again were replayed byte for byte",
		c.kills.Load(), operations, c.answered.Load(), c.unknown.Load(), c.broken.Load(), c.inFlight.Load(), c.replayed.Load())
}
