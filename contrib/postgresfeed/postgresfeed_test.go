package postgresfeed_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/contrib/postgresfeed"
	"github.com/gqlgen-ratelimit/ratelimit/internal/postgrestest"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/policy/policytest"
)

func TestAPostgreSQLIsAFeed(t *testing.T) {
	t.Parallel()
	policytest.Run(t, func(t *testing.T) policytest.Harness {
		t.Helper()
		url := server.URL(database(t))
		pool := connect(t, url)
		return policytest.Harness{
			Open: func() policy.Feed { return open(t, postgresfeed.Config{Pool: connect(t, url)}) },
			Put:  func(r *policy.Revision) error { return put(pool, r) },
			Empty: func() error {
				_, err := pool.Exec(context.Background(), "TRUNCATE ratelimit.policy_head, ratelimit.policy_revision")
				return err
			},
			Publisher: open(t, postgresfeed.Config{Pool: pool}),
			Restart: func() error {
				_, err := terminate(context.Background(), pool, "")
				return err
			},
		}
	})
}

func TestAServerThatWasRestartedIsFollowedAgainWithHints(t *testing.T) {
	t.Parallel()
	own, err := postgrestest.Launch()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, own.Close()) })
	pool := connect(t, own.URL("postgres"))
	require.NoError(t, postgresfeed.Migrate(t.Context(), pool, ""))
	feed := open(t, postgresfeed.Config{Pool: pool})
	require.NoError(t, feed.Publish(t.Context(), revision(1), 0))
	f := follow(t, feed, policy.Config{Interval: policy.None})
	for number := uint64(2); number < 4; number++ {
		require.Eventually(t, func() bool { return feed.HintsFailure() == nil }, patience, time.Millisecond)
		require.NoError(t, feed.Publish(t.Context(), revision(number), number-1))
		require.Eventually(t, func() bool { return maxCost(f) == number }, patience, time.Millisecond)
		require.NoError(t, own.Restart())
		require.Eventually(t, func() bool { return feed.HintsFailure() != nil }, patience, time.Millisecond)
	}
}

// TestAPoolerThatSwallowsNotificationsIsNoticedAndSaidOnce runs a PgBouncer in transaction mode, which takes LISTEN.
func TestAPoolerThatSwallowsNotificationsIsNoticedAndSaidOnce(t *testing.T) {
	t.Parallel()
	name := database(t)
	bouncer, err := server.Bounce()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, bouncer.Close()) })
	log := &memo{}
	pooled := connect(t, bouncer.URL(name))
	feed := open(t, postgresfeed.Config{Pool: pooled, Logger: slog.New(slog.NewTextHandler(log, nil))})
	require.NoError(t, feed.Publish(t.Context(), revision(1), 0))
	f := follow(t, feed, policy.Config{Interval: 100 * time.Millisecond})
	second := follow(t, feed, policy.Config{Interval: 100 * time.Millisecond})

	require.Eventually(t, func() bool { return log.count("polled for") > 0 }, patience, 5*time.Millisecond)
	require.ErrorIs(t, feed.HintsFailure(), postgresfeed.ErrSwallowed)
	for number := uint64(2); number < 5; number++ {
		require.NoError(t, feed.Publish(t.Context(), revision(number), number-1))
		require.Eventually(t, func() bool { return maxCost(f) == number && maxCost(second) == number }, patience, time.Millisecond)
	}
	require.Equal(t, 1, log.count("polled for"))

	direct, err := pgx.ParseConfig(server.URL(name))
	require.NoError(t, err)
	past := open(t, postgresfeed.Config{Pool: pooled, Listen: direct})
	require.ErrorContains(t, past.HintsFailure(), "nobody listens yet")
	hinted := follow(t, past, policy.Config{Interval: policy.None})
	require.Eventually(t, func() bool { return past.HintsFailure() == nil }, patience, time.Millisecond)
	require.NoError(t, feed.Publish(t.Context(), revision(5), 4))
	require.Eventually(t, func() bool { return maxCost(hinted) == 5 }, patience, time.Millisecond)
}

func TestARevisionOfATransactionIsThereWithTheRestOfItOrNotAtAll(t *testing.T) {
	t.Parallel()
	pool := connect(t, server.URL(database(t)))
	feed := open(t, postgresfeed.Config{Pool: pool})
	ctx := t.Context()
	_, err := pool.Exec(ctx, "CREATE TABLE audit (entry text)")
	require.NoError(t, err)
	publish := func(number, expected uint64, end func(pgx.Tx) error) error {
		tx, err := pool.Begin(ctx)
		require.NoError(t, err)
		published := feed.PublishIn(ctx, tx, revision(number), expected)
		_, err = tx.Exec(ctx, "INSERT INTO audit VALUES ('somebody tried')")
		require.NoError(t, err, "a conflict leaves the transaction as it was")
		require.NoError(t, end(tx))
		return published
	}
	commit := func(tx pgx.Tx) error { return tx.Commit(ctx) }
	require.NoError(t, publish(1, 0, func(tx pgx.Tx) error { return tx.Rollback(ctx) }))
	_, err = feed.Newest(ctx, policy.Head{})
	require.ErrorIs(t, err, policy.ErrEmpty)
	require.NoError(t, publish(1, 0, commit))
	require.ErrorIs(t, publish(2, 0, commit), policy.ErrConflict)
	r, err := feed.Newest(ctx, policy.Head{})
	require.NoError(t, err)
	require.Equal(t, revision(1).Head(), r.Head())
	var entries int
	require.NoError(t, pool.QueryRow(ctx, "SELECT count(*) FROM audit").Scan(&entries))
	require.Equal(t, 2, entries)
}

func TestWhatSomebodyHasWrittenIntoTheTablesIsRefusedAndReplaced(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for name, change := range map[string]string{
		"a huge author":    "UPDATE ratelimit.policy_revision SET author = repeat('a', 64 << 20)",
		"a huge signature": "UPDATE ratelimit.policy_revision SET signature = convert_to(repeat('a', 2000), 'UTF8')",
		"a huge document":  "UPDATE ratelimit.policy_revision SET document = convert_to(repeat('#', 64 << 20), 'UTF8')",
		"a time for ever":  "UPDATE ratelimit.policy_revision SET published = 'infinity'",
		"a hash of nothing": "ALTER TABLE ratelimit.policy_revision DROP CONSTRAINT policy_revision_hash_check; " +
			"UPDATE ratelimit.policy_revision SET hash = ''",
		"a head without a revision": "ALTER TABLE ratelimit.policy_head DROP CONSTRAINT policy_head_name_number_fkey; " +
			"DELETE FROM ratelimit.policy_revision",
	} {
		pool := connect(t, server.URL(database(t)))
		feed := open(t, postgresfeed.Config{Pool: pool})
		require.NoError(t, feed.Publish(ctx, revision(1), 0))
		_, err := pool.Exec(ctx, change, pgx.QueryExecModeSimpleProtocol)
		require.NoError(t, err, name)
		_, err = feed.Newest(ctx, policy.Head{})
		var refused *policy.RefusedError
		require.ErrorAs(t, err, &refused, name)
		require.Equal(t, policy.ReasonMalformed, refused.Reason)
		require.EqualValues(t, 1, refused.Revision.Number)
		require.NoError(t, feed.Publish(ctx, revision(2), 1), "it is in nobody's way")
		r, err := feed.Newest(ctx, policy.Head{})
		require.NoError(t, err)
		require.EqualValues(t, 2, r.Number)
	}
}

func TestANumberThatWasThereBeforeIsNotPublishedAgain(t *testing.T) {
	t.Parallel()
	pool := connect(t, server.URL(database(t)))
	feed := open(t, postgresfeed.Config{Pool: pool})
	ctx := t.Context()
	require.NoError(t, feed.Publish(ctx, revision(1), 0))
	require.NoError(t, feed.Publish(ctx, revision(2), 1))
	_, err := pool.Exec(ctx, "UPDATE ratelimit.policy_head SET number = 1")
	require.NoError(t, err)
	require.ErrorContains(t, feed.Publish(ctx, other(2, revision(3).Document), 1), "publish under a larger number")
	require.NoError(t, feed.Publish(ctx, revision(3), 1))
}

func TestATextThatPostgreSQLDoesNotKeepIsRefused(t *testing.T) {
	t.Parallel()
	feed := open(t, postgresfeed.Config{Pool: connect(t, server.URL(database(t)))})
	wrong := revision(1)
	wrong.Author = "a\x00b"
	require.ErrorContains(t, feed.Publish(t.Context(), wrong, 0), "zero byte")
	require.ErrorContains(t, feed.Publish(t.Context(), revision(1), 1<<63), "no number is larger")
}

func TestALargeDocumentIsPublishedWhereItWasAskedFor(t *testing.T) {
	t.Parallel()
	pool := connect(t, server.URL(database(t)))
	large := other(1, append(revision(1).Document, strings.Repeat("#", 3<<20)...))
	require.Error(t, open(t, postgresfeed.Config{Pool: pool}).Publish(t.Context(), large, 0))
	feed := open(t, postgresfeed.Config{Pool: pool, MaxDocument: 4 << 20})
	require.NoError(t, feed.Publish(t.Context(), large, 0))
	r, err := feed.Newest(t.Context(), policy.Head{})
	require.NoError(t, err)
	require.Equal(t, large.Head(), r.Head())
	require.Len(t, r.Document, len(large.Document))
}

func TestPoliciesOfOneDatabaseDoNotMeet(t *testing.T) {
	t.Parallel()
	pool := connect(t, server.URL(database(t)))
	ctx := t.Context()
	require.NoError(t, postgresfeed.Migrate(ctx, pool, "Elsewhere"))
	feeds := []*postgresfeed.Feed{
		open(t, postgresfeed.Config{Pool: pool}), open(t, postgresfeed.Config{Pool: pool, Name: "b"}),
		open(t, postgresfeed.Config{Pool: pool, Schema: "Elsewhere"}),
	}
	for i, feed := range feeds {
		require.NoError(t, feed.Publish(ctx, revision(uint64(i+1)), 0))
	}
	for i, feed := range feeds {
		r, err := feed.Newest(ctx, policy.Head{})
		require.NoError(t, err)
		require.EqualValues(t, i+1, r.Number)
	}
}

func TestManyMigrateAtOnceAndAgainWithoutTheRightToCreate(t *testing.T) {
	t.Parallel()
	pool := connect(t, server.URL(database(t)))
	ctx := t.Context()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := postgresfeed.Migrate(ctx, pool, "fresh"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	_, err := pool.Exec(ctx, "INSERT INTO fresh.policy_migration (step) VALUES (1000)")
	require.NoError(t, err)
	require.NoError(t, postgresfeed.Migrate(ctx, pool, "fresh"), "what a newer version has made stays")
	require.ErrorContains(t, postgresfeed.Migrate(ctx, pool, "a b"), "write 1 to 63")

	_, err = pool.Exec(ctx, "CREATE SCHEMA byhand")
	require.NoError(t, err)
	steps, err := postgresfeed.Migrations("byhand")
	require.NoError(t, err)
	for _, step := range steps {
		_, err = pool.Exec(ctx, step, pgx.QueryExecModeSimpleProtocol)
		require.NoError(t, err)
	}
	require.NoError(t, open(t, postgresfeed.Config{Pool: pool, Schema: "byhand"}).Publish(ctx, revision(1), 0))
	_, err = postgresfeed.Migrations("1")
	require.Error(t, err)
}

// rights are those of docs/guide/feeds.md.
const rights = `
GRANT USAGE ON SCHEMA ratelimit TO instance, publisher;
GRANT SELECT ON ratelimit.policy_head, ratelimit.policy_revision TO instance, publisher;
GRANT INSERT, UPDATE ON ratelimit.policy_head TO publisher;
GRANT INSERT ON ratelimit.policy_revision TO publisher;
`

func TestTheRightsOfThePageAreEnoughAndInstancesDoNotPublish(t *testing.T) {
	t.Parallel()
	name := database(t)
	pool := connect(t, server.URL(name))
	ctx := t.Context()
	_, err := pool.Exec(ctx, "CREATE ROLE instance LOGIN; CREATE ROLE publisher LOGIN;"+rights, pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
	as := func(user string) *postgresfeed.Feed {
		url := strings.Replace(server.URL(name), "postgres@", user+"@", 1)
		return open(t, postgresfeed.Config{Pool: connect(t, url)})
	}
	publisher, instance := as("publisher"), as("instance")
	require.NoError(t, publisher.Publish(ctx, revision(1), 0))
	f := follow(t, instance, policy.Config{Interval: policy.None})
	require.Eventually(t, func() bool { return instance.HintsFailure() == nil }, patience, time.Millisecond)
	require.NoError(t, publisher.Publish(ctx, revision(2), 1))
	require.Eventually(t, func() bool { return maxCost(f) == 2 }, patience, time.Millisecond)
	var denied *pgconn.PgError
	require.ErrorAs(t, instance.Publish(ctx, revision(3), 2), &denied)
	require.Equal(t, "42501", denied.Code)
	_, err = connect(t, strings.Replace(server.URL(name), "postgres@", "publisher@", 1)).Exec(ctx, "DELETE FROM ratelimit.policy_revision")
	require.ErrorAs(t, err, &denied, "what was published stays")
}

func TestMistakesOfTheConfigurationAreReportedAllAtOnce(t *testing.T) {
	t.Parallel()
	_, err := postgresfeed.New(postgresfeed.Config{Schema: "a b", Name: "c{d", MaxDocument: -1})
	for _, part := range []string{"Config.Pool is nil", "Config.Schema", "Config.Name", "Config.MaxDocument is -1"} {
		require.ErrorContains(t, err, part)
	}
}
