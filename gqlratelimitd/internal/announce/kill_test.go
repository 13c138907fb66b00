package announce_test

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/event/redisstream"
	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/announce"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// daemonVariable has the process announce for ever, instead of running tests: a moment, a database and a Redis, with spaces between.
const daemonVariable = "ANNOUNCE_TEST_DAEMON"

// Moments at which a daemon says that it may be killed.
const (
	// beforeSending: it sends nothing, and waits for its end.
	beforeSending = "before"
	// beforeNoting: the broker has stored something, and the database does not know.
	beforeNoting = "after"
)

// announceForEver prints a line at each such moment.
func announceForEver(job string) error {
	words := strings.Fields(job)
	moment, database, address := words[0], words[1], words[2]
	ctx := context.Background()
	db, err := store.Open(ctx, store.Config{URL: database})
	if err != nil {
		return err
	}
	client, err := redisclient.Open(address, redisclient.Config{})
	if err != nil {
		return err
	}
	sink, err := redisstream.New(redisstream.Config{Client: client})
	if err != nil {
		return err
	}
	a, err := announce.New(announce.Config{
		Store: db, Source: source, Interval: 10 * time.Millisecond, Lease: 500 * time.Millisecond, Timeout: time.Second, Logger: quiet,
		Sink: sinkFunc(func(ctx context.Context, batch []stream.Envelope) []error {
			if moment == beforeSending {
				_, _ = fmt.Fprintln(os.Stdout, moment)
				select {}
			}
			errs := sink.Send(ctx, batch)
			if errs == nil {
				_, _ = fmt.Fprintln(os.Stdout, moment)
			}
			return errs
		}),
	})
	if err != nil {
		return err
	}
	return cmp.Or(a.Run(ctx), errors.New("it has ended"))
}

// process is a daemon in a process of its own.
type process struct {
	*exec.Cmd
	out *bufio.Scanner
}

func (s *scene) launch(moment, address string) *process {
	s.Helper()
	p := &process{Cmd: exec.Command(os.Args[0])}
	p.Env = append(os.Environ(), daemonVariable+"="+moment+" "+s.url+" "+address)
	p.Stderr = os.Stderr
	out, err := p.StdoutPipe()
	require.NoError(s, err)
	require.NoError(s, p.Start())
	p.out = bufio.NewScanner(out)
	s.Cleanup(p.kill)
	return p
}

// kill kills it, if it runs.
func (p *process) kill() {
	if p.ProcessState == nil {
		_ = p.Process.Kill()
		_ = p.Wait()
	}
}

// TestDaemonsThatAreKilledWhileTheBrokerComesAndGoesAnnounceEachEntryInOrder kills the one that announces, of two, and then the other one, which has
// taken over, each at the worst moments that there are.
func TestDaemonsThatAreKilledWhileTheBrokerComesAndGoesAnnounceEachEntryInOrder(t *testing.T) {
	t.Parallel()
	both(t, func(s *scene) {
		redisServer := redistest.Start(s)
		changing := make(chan struct{})
		go func() {
			defer close(changing)
			s.overrides(400)
		}()
		for round := range 6 {
			moment := [...]string{beforeNoting, beforeSending}[round%2]
			pair := [2]*process{s.launch(moment, redisServer.Addr), s.launch(moment, redisServer.Addr)}
			reached := make(chan *process, 100)
			next := func() *process {
				select {
				case p := <-reached:
					return p
				case <-time.After(patience):
					s.Fatal("nothing is announced")
					return nil
				}
			}
			for _, p := range pair {
				go func() {
					for p.out.Scan() {
						reached <- p
					}
				}()
			}
			s.do(entry("tenant.assign", "acme", round))
			leader := next()
			if round%3 == 2 {
				redisServer.Freeze(s)
				s.do(entry("mode.switch", "", round))
				redisServer.Thaw(s)
			}
			leader.kill()
			// The other one takes over.
			s.do(entry("override.set", "acme", round))
			for next() == leader {
			}
			pair[0].kill()
			pair[1].kill()
		}
		<-changing
		s.launch(beforeNoting, redisServer.Addr)
		s.arrived()
		client := redis.NewClient(&redis.Options{Addr: redisServer.Addr})
		s.Cleanup(func() { _ = client.Close() })
		entries, err := client.XRange(context.Background(), redisstream.Key("", announce.DefaultTopic), "-", "+").Result()
		require.NoError(s, err)
		var got []stream.Envelope
		for _, e := range entries {
			envelope, err := redisstream.Decode(announce.DefaultTopic, e)
			require.NoError(s, err)
			got = append(got, envelope)
		}
		s.Logf("%d entries of the log, stored %d times again", len(s.rows()), s.requireLog(got))
	})
}
