package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/freeport"
	"github.com/gqlgen-ratelimit/ratelimit/internal/postgrestest"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/lua"
)

// actor is somebody who is killed and started again.
type actor struct {
	name string
	die  func()
	rise func() error
	// up has something in it while it runs.
	up chan struct{}
	// daemon says that it collects.
	daemon bool
	// process is that of this binary, if it is one, and answers are texts of requests whose reply it can lose, if it is a proxy.
	process *killable
	answers []string
}

// killFleet is everything between a take and the counts by hour, in processes that are killed.
type killFleet struct {
	testing.TB
	random   *rand.Rand
	heard    *testimony
	redis    *redistest.Server
	postgres *postgrestest.Server
	data     string
	// database is the URL of the database for who goes there directly.
	database string

	instances, proxies, daemons []*actor
	servers                     map[string]*actor
	rising                      sync.WaitGroup

	mu sync.Mutex
	// ahead is how far collectors believe the clock of the store of budgets to be.
	ahead  time.Duration
	failed error
	kills  map[string]int
	// calm is how many have not come back while replies were lost: on a busy machine each try of theirs may lose one. None is lost until they are there.
	calm atomic.Int32
}

// Texts of requests whose replies get lost.
var (
	takeOrSettle = []string{lua.Load().Take.SHA, lua.Load().Settle.SHA}
	forgetOrRead = []string{lua.Load().Usage.SHA}
	commit       = []string{"commit"}
)

func newKillFleet(t testing.TB, kind string, seed uint64) *killFleet {
	t.Helper()
	f := &killFleet{
		TB: t, random: rand.New(rand.NewPCG(seed, 1)), heard: newTestimony(), data: filepath.Join(t.TempDir(), "state"), kills: map[string]int{},
		servers: map[string]*actor{},
	}
	// What a killed Redis has answered is on its disk.
	f.redis = redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-min-size", "4mb")
	f.server("redis", f.redis.Kill, f.redis.Restart)
	arguments := "-listen 127.0.0.1:0 -stream none -data " + f.data
	daemons := 1
	if kind == "PostgreSQL" {
		var err error
		f.postgres, err = postgrestest.Launch()
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, f.postgres.Close()) })
		f.server("postgres", f.postgres.Kill, f.postgres.Revive)
		f.database = f.postgres.URL("postgres")
		address := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(f.database)
		arguments += " -database " + strings.Replace(f.database, address, f.proxy("proxy of the database", address, commit), 1)
		daemons = 2
	}
	arguments += " -redis redis://" + f.proxy("proxy of the daemons", f.redis.Addr, forgetOrRead)
	budgets := f.proxy("proxy of the instances", f.redis.Addr, takeOrSettle)
	for i := range daemons {
		f.daemon(fmt.Sprint("daemon-", i), arguments)
	}
	for i := range 3 {
		f.instance(fmt.Sprint("instance-", i), budgets)
	}
	t.Cleanup(f.end)
	return f
}

// server has a server be killed that runs.
func (f *killFleet) server(name string, die func(), rise func() error) {
	f.servers[name] = f.act(&actor{name: name, die: die, rise: rise})
}

func (f *killFleet) act(a *actor) *actor {
	a.up = make(chan struct{}, 1)
	a.up <- struct{}{}
	return a
}

// process starts a process of this binary, which is killed then and now.
func (f *killFleet) process(name, first string, role func() string, hear func(string)) *actor {
	f.Helper()
	k := &killable{role: role, first: first, hear: hear, log: filepath.Join(f.TempDir(), "errors")}
	require.NoError(f, k.rise())
	return f.act(&actor{name: name, die: k.die, rise: k.rise, process: k})
}

// proxy starts one before a server, and returns its address.
func (f *killFleet) proxy(name, server string, answers []string) (address string) {
	f.Helper()
	address, err := freeport.Address()
	require.NoError(f, err)
	role := strings.Join([]string{roleProxy, address, server}, "|")
	a := f.process(name, "up", func() string { return role }, func(string) {})
	a.answers = answers
	f.proxies = append(f.proxies, a)
	return address
}

func (f *killFleet) daemon(name, arguments string) {
	f.Helper()
	a := f.process(name, "gqlratelimitd serves ", func() string {
		f.mu.Lock()
		defer f.mu.Unlock()
		return strings.Join([]string{roleDaemon, f.ahead.String(), arguments}, "|")
	}, func(line string) {
		if strings.HasPrefix(line, saidAdded+" ") || strings.HasPrefix(line, saidForgot+" ") {
			f.heard.hear(line)
		}
	})
	a.daemon = true
	f.daemons = append(f.daemons, a)
}

func (f *killFleet) instance(name, budgets string) {
	f.Helper()
	f.instances = append(f.instances, f.process(name, "up", func() string {
		return strings.Join([]string{roleInstance, name, budgets, strings.Join(f.heard.unfinished(name), " ")}, "|")
	}, f.heard.hear))
}

// deck are ten who are killed next, each kind among them. The last instance lives four times as long, so that something is settled late.
func (f *killFleet) deck(n int) []*actor {
	last := f.instances[0]
	if n%4 == 0 {
		last = f.instances[2]
	}
	deck := []*actor{f.instances[0], f.instances[1], last, f.servers["redis"], f.daemons[0]}
	deck = append(deck, f.proxies...)
	if f.postgres != nil {
		deck = append(deck, f.servers["postgres"], f.daemons[1])
	} else {
		deck = append(deck, f.instances[1], f.servers["redis"], f.daemons[0])
	}
	f.random.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
	return deck
}

// run kills so often. In its second half collectors believe that it is three hours later: the store of budgets forgets an hour as soon as it is
// collected, while it is counted on, as it is after late settlements.
func (f *killFleet) run(kills int) {
	f.Helper()
	var losing sync.WaitGroup
	defer losing.Wait()
	ctx, stop := context.WithCancel(f.Context())
	defer stop()
	random := rand.New(rand.NewPCG(f.random.Uint64(), 1))
	losing.Go(func() { f.loseReplies(ctx, random) })
	var deck []*actor
	later := false
	for decks := 0; f.killed() < kills && !f.broken(); {
		if f.killed() >= kills/2 && !later {
			later = true
			f.mu.Lock()
			f.ahead = 3 * time.Hour
			f.mu.Unlock()
			for _, d := range f.daemons {
				f.kill(d)
			}
			continue
		}
		if len(deck) == 0 {
			deck = f.deck(decks)
			decks++
		}
		next := deck[0]
		deck = deck[1:]
		if next.daemon {
			f.collected(2 * time.Second)
		}
		if f.random.IntN(4) > 0 {
			<-time.After(time.Duration(f.random.Int64N(int64(400 * time.Millisecond))))
		}
		f.kill(next)
	}
	f.rising.Wait()
	require.NoError(f, f.failed)
	require.NotZero(f, f.ahead)
	f.collected(patient)
	forgot, took := f.heard.number(&f.heard.forgot), f.heard.number(&f.heard.took)
	require.Eventually(f, func() bool {
		return f.heard.number(&f.heard.forgot) > forgot+len(killTenants) && f.heard.number(&f.heard.took) > took+20
	}, patient, soon, "hours are forgotten and counted on")
}

// broken says that somebody does not come back.
func (f *killFleet) broken() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed != nil
}

// killed is how many kills there were.
func (f *killFleet) killed() (all int) {
	for _, n := range f.kills {
		all += n
	}
	return all
}

// collected waits until something was collected, or for a while.
func (f *killFleet) collected(most time.Duration) {
	before := f.heard.number(&f.heard.collected)
	for deadline := time.Now().Add(most); time.Now().Before(deadline) && f.heard.number(&f.heard.collected) <= before; <-time.After(soon) {
		continue
	}
}

// kill kills somebody who runs, and has them started again meanwhile.
func (f *killFleet) kill(a *actor) {
	<-a.up
	a.die()
	f.kills[a.name]++
	f.rising.Go(func() {
		err := a.rise()
		if err != nil {
			f.calm.Add(1)
			err = a.rise()
			f.calm.Add(-1)
		}
		if err != nil {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.failed = fmt.Errorf("%s does not come back: %w", a.name, err)
		}
		a.up <- struct{}{}
	})
}

// loseReplies has proxies lose replies.
func (f *killFleet) loseReplies(ctx context.Context, random *rand.Rand) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(random.Int64N(int64(150 * time.Millisecond)))):
		}
		if f.calm.Load() > 0 {
			continue
		}
		proxy := f.proxies[random.IntN(len(f.proxies))].process
		switch random.IntN(8) {
		case 0:
			proxy.order("drop")
			<-time.After(time.Duration(random.Int64N(int64(50 * time.Millisecond))))
			proxy.order("heal")
		case 1:
			proxy.order("sever")
		default:
			of := f.proxies[0].answers
			for _, p := range f.proxies {
				if p.process == proxy {
					of = p.answers
				}
			}
			proxy.order("lose " + of[random.IntN(len(of))])
		}
	}
}

// stop kills all who could change anything, so that what is under way arrives or not, but at no later time.
func (f *killFleet) stop() {
	f.Helper()
	for _, a := range slices.Concat(f.instances, f.daemons, f.proxies) {
		<-a.up
		a.die()
		f.kills[a.name]++
	}
	f.instances, f.daemons, f.proxies = nil, nil, nil
	f.kill(f.servers["redis"])
	f.rising.Wait()
	require.NoError(f, f.failed)
}

// end ends what runs yet where the test has failed.
func (f *killFleet) end() {
	f.rising.Wait()
	for _, a := range slices.Concat(f.instances, f.daemons, f.proxies) {
		a.die()
	}
}
