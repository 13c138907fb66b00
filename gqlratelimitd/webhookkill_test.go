package main

import (
	"database/sql"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/internal/postgrestest"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

var webhookKills = flag.Int("webhook-kills", 10, "how often daemons are killed while they bring webhooks")

// process is a daemon in a process of its own, which can be killed.
type process struct {
	*running
	command *exec.Cmd
}

// launch starts a daemon in a process of its own, and waits until it serves.
func launch(t *testing.T, data string, args ...string) *process {
	t.Helper()
	command := exec.Command(os.Args[0], append([]string{"-listen", "127.0.0.1:0", "-data", data}, args...)...)
	command.Env = append(os.Environ(), roleVariable+"="+roleMain)
	var errs strings.Builder
	command.Stderr = &errs
	said := make(greeting, 1)
	command.Stdout = said
	require.NoError(t, command.Start())
	p := &process{running: &running{TB: t}, command: command}
	t.Cleanup(p.kill)
	select {
	case p.out = <-said:
	case <-time.After(patient):
		p.kill()
		t.Fatal("it does not serve: ", errs.String())
	}
	p.understand()
	return p
}

// kill sends SIGKILL, unless it was sent, and waits until the process has ended.
func (p *process) kill() {
	if p.command.ProcessState == nil {
		_ = p.command.Process.Kill()
		_ = p.command.Wait()
	}
}

// trap is a receiver that stops the next attempt between its message and its answer, where a test says so.
type trap struct {
	*receiver
	mu      sync.Mutex
	caught  chan struct{}
	release chan struct{}
}

// set has the next attempt stop. It returns when one has, and how to let it go.
func (c *trap) set() (caught <-chan struct{}, release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.caught, c.release = make(chan struct{}), make(chan struct{})
	free := c.release
	return c.caught, func() { close(free) }
}

// pass stops an attempt, if it is the one to stop.
func (c *trap) pass() {
	c.mu.Lock()
	caught, release := c.caught, c.release
	c.caught, c.release = nil, nil
	c.mu.Unlock()
	if caught != nil {
		close(caught)
		<-release
	}
}

// eventsOf are the ids of the messages that each refusal came under.
func (r *receiver) eventsOf() map[string]map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	refusal, ids := regexp.MustCompile(`"refusalId":"(R\d+)"`), map[string]map[string]bool{}
	for _, a := range r.bodies {
		found := refusal.FindStringSubmatch(a.body)
		if found == nil {
			continue
		}
		if ids[found[1]] == nil {
			ids[found[1]] = map[string]bool{}
		}
		ids[found[1]][a.id] = true
	}
	return ids
}

// TestDaemonsThatAreKilledLoseNoMessageAndBringEachUnderOneID kills one daemon or both while an endpoint has a message and has not answered.
func TestDaemonsThatAreKilledLoseNoMessageAndBringEachUnderOneID(t *testing.T) {
	t.Parallel()
	const each = 8
	redis := redistest.Start(t)
	postgres, err := postgrestest.Launch()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, postgres.Close()) })
	database, err := sql.Open("pgx", postgres.URL("postgres"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, database.Close()) })
	var traps trap
	traps.receiver = newReceiver(t, "127.0.0.1", func(w http.ResponseWriter, _ int) {
		traps.pass()
		w.WriteHeader(http.StatusNoContent)
	})
	failing := newReceiver(t, "127.0.0.1", func(w http.ResponseWriter, attempt int) {
		w.WriteHeader(map[bool]int{true: http.StatusServiceUnavailable, false: http.StatusOK}[attempt == 1])
	})
	data := t.TempDir()
	args := []string{"-config", hooksConfig(t, traps.receiver, failing), "-database", postgres.URL("postgres"), "-redis", "redis://" + redis.Addr}
	pair := [2]*process{launch(t, data, args...)}
	token := pair[0].first()
	pair[1] = launch(t, data, args...)
	pair[0].register(token, "acme", traps.receiver)
	pair[0].register(token, "acme", failing)
	queue := queueTo(t, redis.Addr)
	reading(t, queue, traps.receiver, "acme")

	sent := 0
	for kill := range *webhookKills {
		caught, release := traps.set()
		for range each {
			queue.Observe(t.Context(), event.Decided{At: time.Now(), RefusalID: fmt.Sprint("R", sent), Outcome: "limited", Code: "RATE_LIMITED", Tenant: "acme"})
			sent++
		}
		select {
		case <-caught:
		case <-time.After(patient):
			t.Fatal("nothing is brought")
		}
		// The one that has the attempt is among those that are killed every third time at least.
		for i := range pair {
			if kill%3 == 2 || kill%3 == i {
				pair[i].kill()
				pair[i] = nil
			}
		}
		release()
		// Two minutes pass, after which what the dead had under way is anybody's.
		_, err := database.ExecContext(t.Context(), "UPDATE "+store.Schema+".webhook_delivery SET due = due - 120000000 WHERE lease <> 0 AND dead = 0")
		require.NoError(t, err)
		for i := range pair {
			if pair[i] == nil {
				pair[i] = launch(t, data, args...)
			}
		}
	}

	for _, to := range []*receiver{traps.receiver, failing} {
		require.Eventually(t, func() bool { return len(to.eventsOf()) == sent && pair[0].state(token, to).Waiting == 0 }, patient, soon, "all that happened")
		for refusal, ids := range to.eventsOf() {
			require.Len(t, ids, 1, refusal)
		}
		require.Zero(t, pair[0].state(token, to).Dead)
		_, forged := to.came()
		require.Zero(t, forged)
	}
	attempts, _ := traps.came()
	again := 0
	for _, n := range attempts {
		again += n - 1
	}
	require.Positive(t, again, "nobody was killed while an endpoint had a message")
	t.Logf("%d kills: %d events, each under one id, %d attempts again", *webhookKills, sent, again)
}
