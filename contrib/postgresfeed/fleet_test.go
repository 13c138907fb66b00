package postgresfeed_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/contrib/postgresfeed"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
)

// changes reads what has changed since it last asked, and counts the revisions that it has seen.
type changes struct {
	pool  *pgxpool.Pool
	query string
	last  any
	seen  map[uint64]bool
}

// read takes what is there.
func (c *changes) read(ctx context.Context) error {
	rows, err := c.pool.Query(ctx, c.query, c.last)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var number uint64
		if err := rows.Scan(&number, &c.last); err != nil {
			return err
		}
		c.seen[number] = true
	}
	return rows.Err()
}

// tail reads at short intervals until the context ends, and once more then.
func (c *changes) tail(ctx context.Context) error {
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return c.read(context.WithoutCancel(ctx))
		case <-ticker.C:
			if err := c.read(context.WithoutCancel(ctx)); err != nil {
				return err
			}
		}
	}
}

// publishOver publishes a document of one's own over the newest revision, in one transaction with a row of an outbox that has a
// number and a time of its own. It returns whether it was the first to do so, and whether there are as many as there should be.
func publishOver(ctx context.Context, pool *pgxpool.Pool, feed *postgresfeed.Feed, author string, last uint64) (won, done bool, err error) {
	tx, err := pool.Begin(ctx)
	if err != nil {
		return false, false, err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	var row int64
	if err := tx.QueryRow(ctx, "INSERT INTO outbox (revision) VALUES (0) RETURNING id").Scan(&row); err != nil {
		return false, false, err
	}
	// What else a transaction does takes some time, each time another one.
	if _, err := tx.Exec(ctx, "SELECT pg_sleep(random() * 0.01)"); err != nil {
		return false, false, err
	}
	var newest uint64
	if err := tx.QueryRow(ctx, "SELECT coalesce(max(number), 0) FROM ratelimit.policy_head").Scan(&newest); err != nil {
		return false, false, err
	}
	if newest >= last {
		return false, true, nil
	}
	err = feed.PublishIn(ctx, tx, other(newest+1, append(revision(newest+1).Document, "# "+author...)), newest)
	if errors.Is(err, policy.ErrConflict) {
		return false, false, nil
	}
	if err == nil {
		_, err = tx.Exec(ctx, "UPDATE outbox SET revision = $1 WHERE id = $2", newest+1, row)
	}
	if err != nil {
		return false, false, err
	}
	return true, false, tx.Commit(ctx)
}

func TestEightPublishersHaveOneWinnerEachAndWhoReadsByRevisionMissesNone(t *testing.T) {
	t.Parallel()
	const publishers, revisions = 8, 320
	pool := connect(t, server.URL(database(t))+"&pool_max_conns=12")
	feed := open(t, postgresfeed.Config{Pool: pool})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	_, err := pool.Exec(ctx, "CREATE TABLE outbox (id bigserial PRIMARY KEY, revision bigint, updated_at timestamptz DEFAULT now())")
	require.NoError(t, err)
	readers := map[string]*changes{
		"revision":   {query: "SELECT number, number FROM ratelimit.policy_revision WHERE number > $1 ORDER BY number", last: int64(0)},
		"bigserial":  {query: "SELECT revision, id FROM outbox WHERE id > $1 ORDER BY id", last: int64(0)},
		"updated_at": {query: "SELECT revision, updated_at FROM outbox WHERE updated_at > $1 ORDER BY updated_at", last: time.Unix(0, 0)},
	}
	var reading, publishing sync.WaitGroup
	for name, reader := range readers {
		reader.pool, reader.seen = pool, map[uint64]bool{}
		reading.Go(func() {
			if err := reader.tail(ctx); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	var winners, losers atomic.Int64
	for p := range publishers {
		publishing.Go(func() {
			for {
				won, done, err := publishOver(ctx, pool, feed, fmt.Sprint(p), revisions)
				switch {
				case err != nil:
					t.Error(err)
					return
				case done:
					return
				case won:
					winners.Add(1)
				default:
					losers.Add(1)
				}
			}
		})
	}
	publishing.Wait()
	stop()
	reading.Wait()
	missed := func(name string) int { return revisions - len(readers[name].seen) }
	t.Logf("%d revisions, %d publishers were second; missed by revision: %d, by bigserial: %d, by updated_at: %d", winners.Load(), losers.Load(),
		missed("revision"), missed("bigserial"), missed("updated_at"))
	require.EqualValues(t, revisions, winners.Load(), "one winner each")
	require.Positive(t, losers.Load(), "a run without rivals proves nothing")
	require.Zero(t, missed("revision"))
	require.Positive(t, missed("bigserial"), "a run in which a naive reader misses nothing proves nothing")
	require.Positive(t, missed("updated_at"), "a run in which a naive reader misses nothing proves nothing")
}

const (
	fleetSize = 20
	// naiveSize is how many listen without reading.
	naiveSize = 5
	// fleetRevisions are published, and connections are ended before each but the first.
	fleetRevisions = 60
)

// naive listens, reads at a notification, and listens again when the connection breaks.
type naive struct {
	has  atomic.Uint64
	away atomic.Bool
}

// listen listens until the context ends. It waits at the gate before it connects.
func (n *naive) listen(ctx context.Context, url string, feed *postgresfeed.Feed, gate *sync.RWMutex) {
	once := func() error {
		n.away.Store(true)
		gate.RLock()
		conn, err := pgx.Connect(ctx, url)
		gate.RUnlock()
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
		if _, err := conn.Exec(ctx, "LISTEN ratelimit_policy"); err != nil {
			return err
		}
		n.away.Store(false)
		for {
			if _, err := conn.WaitForNotification(ctx); err != nil {
				return err
			}
			r, err := feed.Newest(ctx, policy.Head{})
			if err != nil {
				return err
			}
			n.has.Store(r.Number)
		}
	}
	for ctx.Err() == nil {
		_ = once() // It listens again.
	}
}

// steps fails a test in which a follower goes back.
type steps struct {
	t    testing.TB
	last uint64
}

// Observe implements event.Observer.
func (s *steps) Observe(_ context.Context, e event.Event) {
	if applied, ok := e.(event.PolicyApplied); ok {
		if applied.Revision < s.last {
			s.t.Errorf("back from %d to %d", s.last, applied.Revision)
		}
		s.last = applied.Revision
	}
}

func TestNobodyIsStuckWhateverConnectionsAreKilledAndWhoListensWithoutReadingIs(t *testing.T) {
	t.Parallel()
	url := server.URL(database(t))
	admin := connect(t, url)
	publisher := open(t, postgresfeed.Config{Pool: connect(t, url)})
	publish := func(number uint64) {
		// The connection of the publisher may have been ended as well.
		require.Eventually(t, func() bool { return publisher.Publish(t.Context(), revision(number), number-1) == nil }, patience, time.Millisecond)
	}
	publish(1)
	var followers []*policy.Follower
	var feeds []*postgresfeed.Feed
	for range fleetSize {
		feed := open(t, postgresfeed.Config{Pool: connect(t, url+"&application_name=fleet&pool_max_conns=2")})
		feeds = append(feeds, feed)
		followers = append(followers, follow(t, feed, policy.Config{Observe: policy.ObserveConfig{Observer: &steps{t: t}}}))
	}
	var naives []*naive
	var gate sync.RWMutex
	var listening sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer listening.Wait()
	defer stop()
	for range naiveSize {
		n := &naive{}
		naives = append(naives, n)
		listening.Go(func() { n.listen(ctx, url+"&application_name=fleet", publisher, &gate) })
	}
	connected := func() bool {
		return !slices.ContainsFunc(feeds, func(f *postgresfeed.Feed) bool { return f.HintsFailure() != nil }) &&
			!slices.ContainsFunc(naives, func(n *naive) bool { return n.away.Load() })
	}
	require.Eventually(t, connected, patience, time.Millisecond)

	killed := 0
	kill := func() {
		n, err := terminate(t.Context(), admin, "fleet")
		require.NoError(t, err)
		killed += n
	}
	pace := time.NewTicker(20 * time.Millisecond)
	defer pace.Stop()
	for number := uint64(2); number < fleetRevisions; number++ {
		<-pace.C
		kill()
		publish(number)
	}
	// The last revision is published when no naive one is connected.
	require.Eventually(t, connected, patience, time.Millisecond)
	gate.Lock()
	kill()
	require.Eventually(t, func() bool {
		return !slices.ContainsFunc(naives, func(n *naive) bool { return !n.away.Load() })
	}, patience, time.Millisecond)
	publish(fleetRevisions)
	gate.Unlock()
	stuck := func() (n int) {
		for _, f := range followers {
			if f.Status().Number != fleetRevisions {
				n++
			}
		}
		return n
	}
	require.Eventually(t, func() bool { return stuck() == 0 && connected() }, patience, 5*time.Millisecond, "instances are stuck")
	behind := 0
	for _, n := range naives {
		if n.has.Load() != fleetRevisions {
			behind++
		}
	}
	t.Logf("%d connections ended in %d revisions: %d of %d instances stuck, %d of %d that listen without reading", killed, fleetRevisions,
		stuck(), fleetSize, behind, naiveSize)
	require.Positive(t, behind, "a run in which those who listen without reading lose nothing proves nothing")
}
