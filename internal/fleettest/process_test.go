package fleettest_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/observe/report"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisfeed"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// An instance is this test binary, started again with these variables set.
const (
	kindVariable      = "FLEET_TEST_KIND"
	sentinelsVariable = "FLEET_TEST_SENTINELS"
	masterVariable    = "FLEET_TEST_MASTER"
)

// kind is how an instance has its revisions.
type kind string

const (
	// follows is a policy.Follower with its defaults.
	follows kind = "follows"
	// deaf is a follower whose subscriptions stand and say nothing.
	deaf kind = "deaf"
	// subscribes reads at each message, and at nothing else: the first naive way.
	subscribes kind = "subscribes"
	// reads does so once it has subscribed, and then at each message: the second one.
	reads kind = "reads"
)

// What an instance writes, a line for each, to its standard output. Times are nanoseconds.
const (
	saysHas    = "has"    // number, time
	saysServes = "serves" // maximum cost
	saysLate   = "late"   // time of the tick, lateness
)

// patience is for how long something that has to happen may take on a busy machine.
const patience = time.Minute

// tick is how often the bare timer of an instance is due: in all at once, as a hint comes to all at once, and halfway between two revisions.
const tick = 100 * time.Millisecond

// silent is the log of clients whose connections are ended all the time.
type silent struct{}

// Printf implements the logger of go-redis.
func (silent) Printf(context.Context, string, ...any) {}

func TestMain(m *testing.M) {
	redis.SetLogger(silent{})
	is := kind(os.Getenv(kindVariable))
	if is == "" {
		os.Exit(m.Run())
	}
	if err := live(is); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// voice writes one line at a time.
type voice struct{ mu sync.Mutex }

func (v *voice) say(what string, numbers ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	_, _ = fmt.Fprintln(os.Stdout, append([]any{what}, numbers...)...)
}

// Observe says which revision was applied.
func (v *voice) Observe(_ context.Context, e event.Event) {
	if applied, ok := e.(event.PolicyApplied); ok && !applied.Again {
		v.say(saysHas, applied.Revision, applied.At.UnixNano())
	}
}

// live is an instance until its standard input ends because the test is gone. It says what it serves for each line.
func live(is kind) error {
	client, err := redisclient.Open("", redisclient.Config{
		Addresses: strings.Split(os.Getenv(sentinelsVariable), ","), Master: os.Getenv(masterVariable), PoolSize: 2,
	})
	if err != nil {
		return err
	}
	feed, err := redisfeed.New(redisfeed.Config{Client: client})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	said := &voice{}
	served := func() uint64 { return 0 }
	switch is {
	case follows:
		served, err = follow(ctx, feed, client, said)
	case deaf:
		served, err = follow(ctx, &deafFeed{feed}, client, said)
	default:
		go listen(ctx, client, feed, is == reads, said)
	}
	if err != nil {
		return err
	}
	go late(ctx, said)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		said.say(saysServes, served())
	}
	return nil
}

// follow starts a follower, which reports for as long as the process lives, and returns what asks it as a decision does.
func follow(ctx context.Context, feed policy.Feed, client redis.UniversalClient, said *voice) (served func() uint64, _ error) {
	quiet := slog.New(slog.DiscardHandler)
	reporter, err := report.Start(report.Config{Place: report.Place{Client: client}, Logger: quiet})
	if err != nil {
		return nil, err
	}
	f, err := policy.Follow(ctx, feed, policy.Config{
		Patience: patience, Observe: policy.ObserveConfig{Observer: event.All(said, reporter), Logger: quiet},
	})
	return func() uint64 { return maxCost(f) }, err
}

// maxCost is by what decisions tell revisions apart.
func maxCost(source tiers.Source) uint64 {
	return uint64(source.Snapshot().Rules(tiers.Subject{Tenant: "x"}, tiers.Selection{}).MaxCost.Enforce)
}

// deafFeed has subscriptions that stand and say nothing.
type deafFeed struct{ *redisfeed.Feed }

// Hints wakes when the subscription stands, and never again.
func (f *deafFeed) Hints(ctx context.Context, wake func()) error {
	var once sync.Once
	return f.Feed.Hints(ctx, func() { once.Do(wake) })
}

// listen trusts its subscription, which is made again when it breaks, and reads at a message.
func listen(ctx context.Context, client redis.UniversalClient, feed *redisfeed.Feed, atStart bool, said *voice) {
	subscription := client.Subscribe(ctx, hints)
	defer func() { _ = subscription.Close() }()
	read := func() {
		if r, err := feed.Newest(ctx, policy.Head{}); err == nil {
			said.say(saysHas, r.Number, time.Now().UnixNano())
		}
	}
	if atStart {
		read()
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-subscription.Channel():
			read()
		}
	}
}

// late says how late a bare timer is.
func late(ctx context.Context, said *voice) {
	for due := time.Now().Truncate(tick).Add(tick + tick/2); ; due = due.Add(tick) {
		timer := time.NewTimer(time.Until(due))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
			said.say(saysLate, due.UnixNano(), time.Since(due).Nanoseconds())
		}
	}
}
