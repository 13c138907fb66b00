package postgresfeed_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/contrib/postgresfeed"
	"github.com/gqlgen-ratelimit/ratelimit/policy/directory"
	"github.com/gqlgen-ratelimit/ratelimit/policy/directory/directorytest"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// records returns the records of a database.
func records(t testing.TB, cfg postgresfeed.RecordsConfig) *postgresfeed.Records {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = quiet
	}
	r, err := postgresfeed.NewRecords(cfg)
	require.NoError(t, err)
	return r
}

// directoryOf opens a directory that ends with the test.
func directoryOf(t testing.TB, source directory.Source, cfg directory.Config) *directory.Directory {
	t.Helper()
	snapshot, err := tiers.Load([]byte("{version: 1, default: free, tiers: {free: {maxCost: 1}}}"), 1)
	require.NoError(t, err)
	cfg.MissDeadline, cfg.Observe.Logger = 5*time.Second, quiet
	d, err := directory.Open(t.Context(), snapshot, source, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// maxCostOf is what a tenant may cost, which tells its records apart.
func maxCostOf(ctx context.Context, d *directory.Directory, tenant string) int {
	subject := tiers.Subject{Tenant: tenant}
	return int(d.Snapshot().Rules(subject, tiers.Selection{Record: d.Prepare(ctx, subject)}).MaxCost.Enforce)
}

func costs(n int) []byte { return fmt.Appendf(nil, `{"maxCost":%d}`, n) }

func TestAPostgreSQLKeepsTheContractOfSources(t *testing.T) {
	t.Parallel()
	directorytest.Run(t, func(t *testing.T) directorytest.Harness {
		t.Helper()
		url := server.URL(database(t))
		return directorytest.Harness{
			Open: func() directorytest.Source { return records(t, postgresfeed.RecordsConfig{Pool: connect(t, url)}) },
			Lose: func() error {
				_, err := connect(t, url).Exec(context.Background(), "TRUNCATE ratelimit.directory_head, ratelimit.directory_record")
				return err
			},
		}
	})
}

func TestAChangeReachesEveryInstanceByAHintAlsoThroughConnectionsThatAreKilled(t *testing.T) {
	t.Parallel()
	const instances, changes = 8, 30
	url := server.URL(database(t))
	writer := connect(t, url)
	source := records(t, postgresfeed.RecordsConfig{Pool: writer})
	var fleet [instances]*directory.Directory
	for i := range fleet {
		pool := connect(t, url+"&application_name=instance&pool_max_conns=2")
		fleet[i] = directoryOf(t, records(t, postgresfeed.RecordsConfig{Pool: pool}), directory.Config{Interval: 100 * time.Millisecond})
	}
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	var revision uint64
	killed := 0
	for n := 2; n < changes+2; n++ {
		if n%3 == 0 {
			ended, err := terminate(t.Context(), writer, "instance")
			require.NoError(t, err)
			killed += ended
		}
		var err error
		revision, err = source.Put(t.Context(), "acme", costs(n), revision)
		require.NoError(t, err)
		began := time.Now()
		for i, d := range fleet {
			for seen := 0; seen != n; <-ticker.C {
				now := maxCostOf(t.Context(), d, "acme")
				require.GreaterOrEqual(t, now, seen, "instance %d goes back", i)
				require.Less(t, time.Since(began), patience, "instance %d is stuck at %d", i, now)
				seen = now
			}
		}
	}
	require.Greater(t, killed, changes)
	t.Logf("%d changes in %d instances, %d connections ended", changes, instances, killed)
}

func TestAChangeIsThereByItsNotificationAlone(t *testing.T) {
	t.Parallel()
	source := records(t, postgresfeed.RecordsConfig{Pool: connect(t, server.URL(database(t)))})
	require.ErrorContains(t, source.HintsFailure(), "nobody listens yet")
	revision, err := source.Put(t.Context(), "acme", costs(2), 0)
	require.NoError(t, err)
	d := directoryOf(t, source, directory.Config{Interval: time.Minute})
	require.Equal(t, 2, maxCostOf(t.Context(), d, "acme"))
	require.Eventually(t, func() bool { return source.HintsFailure() == nil }, patience, time.Millisecond)
	for n := 3; n < 6; n++ {
		revision, err = source.Put(t.Context(), "acme", costs(n), revision)
		require.NoError(t, err)
		require.Eventually(t, func() bool { return maxCostOf(t.Context(), d, "acme") == n }, patience, time.Millisecond)
	}
}

func TestAPoolerThatSwallowsNotificationsOfChangesIsNoticedAndTheIntervalDecides(t *testing.T) {
	t.Parallel()
	name := database(t)
	bouncer, err := server.Bounce()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, bouncer.Close()) })
	log := &memo{}
	source := records(t, postgresfeed.RecordsConfig{Pool: connect(t, bouncer.URL(name)), Logger: slog.New(slog.NewTextHandler(log, nil))})
	_, err = source.Put(t.Context(), "acme", costs(2), 0)
	require.NoError(t, err)
	d := directoryOf(t, source, directory.Config{Interval: 100 * time.Millisecond})
	require.Eventually(t, func() bool { return errors.Is(source.HintsFailure(), postgresfeed.ErrSwallowed) }, patience, 5*time.Millisecond)
	require.Equal(t, 2, maxCostOf(t.Context(), d, "acme"))
	_, err = source.Put(t.Context(), "acme", costs(3), 1)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return maxCostOf(t.Context(), d, "acme") == 3 }, patience, time.Millisecond)
	require.Equal(t, 1, log.count("changes of tenants are polled for"))
}

func TestChangesAreNumberedInTheOrderOfTheirCommits(t *testing.T) {
	t.Parallel()
	pool := connect(t, server.URL(database(t)))
	source := records(t, postgresfeed.RecordsConfig{Pool: pool})
	ctx := t.Context()
	_, err := source.Put(ctx, "first", costs(1), 0)
	require.NoError(t, err)
	mark := directory.Mark{}
	read := func() (tenants []string) {
		page, err := source.Changes(ctx, mark)
		require.NoError(t, err)
		mark = page.Through
		for _, c := range page.Changes {
			tenants = append(tenants, c.Tenant)
		}
		return tenants
	}
	require.Empty(t, read())

	slow, err := pool.Begin(ctx)
	require.NoError(t, err)
	_, err = source.PutIn(ctx, slow, "slow", costs(2), 0)
	require.NoError(t, err)
	quick := make(chan error, 1)
	go func() {
		_, err := source.Put(ctx, "quick", costs(3), 0)
		quick <- err
	}()
	require.Eventually(t, func() bool {
		var waiting int
		err := pool.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").Scan(&waiting)
		return err == nil && waiting == 1
	}, patience, time.Millisecond)
	require.Empty(t, read(), "who came second is not there before the first")
	require.NoError(t, slow.Commit(ctx))
	require.NoError(t, <-quick)
	require.Equal(t, []string{"slow", "quick"}, read())
}

func TestManyRecordsOfATransactionAreThereAtOnceOrNotAtAll(t *testing.T) {
	t.Parallel()
	pool := connect(t, server.URL(database(t)))
	source := records(t, postgresfeed.RecordsConfig{Pool: pool})
	ctx := t.Context()
	write := func(tenants ...string) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			for _, tenant := range tenants {
				if _, err := source.PutIn(ctx, tx, tenant, costs(2), 0); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.Error(t, write("acme", "globex", strings.Repeat("x", tiers.MaxLongName+1)))
	_, err := source.Tenant(ctx, "acme")
	require.ErrorIs(t, err, directory.ErrEmpty)
	require.NoError(t, write("acme", "globex"))
	_, err = source.Put(ctx, "acme", costs(3), 1)
	require.NoError(t, err)
	require.ErrorIs(t, write("initech", "acme"), directory.ErrConflict)
	r, err := source.Tenant(ctx, "initech")
	require.NoError(t, err)
	require.Nil(t, r)

	// A conflict leaves the rest of a transaction as it was.
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		_, err := source.PutIn(ctx, tx, "acme", costs(4), 1)
		require.ErrorIs(t, err, directory.ErrConflict)
		_, err = source.PutIn(ctx, tx, "initech", costs(5), 0)
		return err
	})
	require.NoError(t, err)
	r, err = source.Tenant(ctx, "initech")
	require.NoError(t, err)
	require.EqualValues(t, 4, r.Revision)
	_, err = source.Put(ctx, "acme", costs(5), 1<<63)
	require.ErrorContains(t, err, "no number is larger")
}

func TestWhoRestoresABackupHasEveryInstanceAskAnew(t *testing.T) {
	t.Parallel()
	pool := connect(t, server.URL(database(t)))
	source := records(t, postgresfeed.RecordsConfig{Pool: pool})
	ctx := t.Context()
	require.NoError(t, source.Renew(ctx), "where nothing was ever written it does nothing")
	_, err := source.Tenant(ctx, "acme")
	require.ErrorIs(t, err, directory.ErrEmpty)
	_, err = source.Put(ctx, "acme", costs(2), 0)
	require.NoError(t, err)
	_, err = source.Put(ctx, "gone", costs(2), 0)
	require.NoError(t, err)
	_, err = source.Put(ctx, "gone", nil, 2)
	require.NoError(t, err)
	d := directoryOf(t, source, directory.Config{Interval: time.Minute})
	require.Equal(t, 2, maxCostOf(ctx, d, "acme"))
	require.Eventually(t, func() bool { return source.HintsFailure() == nil }, patience, time.Millisecond)

	// The backup has another record under the number that instances have seen.
	_, err = pool.Exec(ctx, "UPDATE ratelimit.directory_record SET document = $1 WHERE tenant = 'acme'", costs(9))
	require.NoError(t, err)
	require.NoError(t, source.Renew(ctx))
	require.Eventually(t, func() bool { return maxCostOf(ctx, d, "acme") == 9 }, patience, time.Millisecond)
	var left int
	require.NoError(t, pool.QueryRow(ctx, "SELECT count(*) FROM ratelimit.directory_record").Scan(&left))
	require.Equal(t, 1, left, "nothing is left of who has no record any more")
	revision, err := source.Put(ctx, "gone", costs(3), 0)
	require.NoError(t, err)
	require.EqualValues(t, 4, revision, "numbers go on")
}

func TestARecordThatSomebodyHasWrittenByHandKeepsNobodyElseFromTheirs(t *testing.T) {
	t.Parallel()
	pool := connect(t, server.URL(database(t)))
	source := records(t, postgresfeed.RecordsConfig{Pool: pool})
	ctx := t.Context()
	_, err := source.Put(ctx, "acme", costs(2), 0)
	require.NoError(t, err)
	_, err = pool.Exec(ctx, "INSERT INTO ratelimit.directory_record SELECT 'main', convert_to('huge' || n, 'UTF8'), 1 + n, convert_to(repeat('#', 8 << 20), 'UTF8') FROM generate_series(1, 5) n")
	require.NoError(t, err)
	_, err = pool.Exec(ctx, "UPDATE ratelimit.directory_head SET revision = 6")
	require.NoError(t, err)
	r, err := source.Tenant(ctx, "huge1")
	require.NoError(t, err)
	require.Len(t, r.Document, 1, "it is not read, and no record")
	d := directoryOf(t, source, directory.Config{})
	for n := range 5 {
		require.Equal(t, 1, maxCostOf(ctx, d, fmt.Sprint("huge", n+1)))
	}
	require.False(t, d.Status().Away)
	require.Equal(t, 2, maxCostOf(ctx, d, "acme"))
}

// TestAQuestionIsOneRowHoweverManyTenantsThereAre reads the plans of the server.
func TestAQuestionIsOneRowHoweverManyTenantsThereAre(t *testing.T) {
	t.Parallel()
	pool := connect(t, server.URL(database(t)))
	source := records(t, postgresfeed.RecordsConfig{Pool: pool})
	ctx := t.Context()
	_, err := source.Put(ctx, "acme", costs(2), 0)
	require.NoError(t, err)
	for _, statement := range []string{
		`INSERT INTO ratelimit.directory_record SELECT 'main', convert_to('tenant-' || n, 'UTF8'), 1 + n, '{"tier":"pro"}' FROM generate_series(1, 100000) n`,
		"UPDATE ratelimit.directory_head SET revision = 100001", "ANALYSE",
	} {
		_, err := pool.Exec(ctx, statement)
		require.NoError(t, err)
	}
	for what, query := range source.Plans() {
		rows, err := pool.Query(ctx, "EXPLAIN "+query)
		require.NoError(t, err, what)
		plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err, what)
		text := strings.Join(plan, "\n")
		require.Contains(t, text, "Index", text)
		require.NotContains(t, text, "Seq Scan on directory_record", text)
	}
	page, err := source.Changes(ctx, directory.Mark{})
	require.NoError(t, err)
	page, err = source.Changes(ctx, directory.Mark{Origin: page.Through.Origin, Revision: 1})
	require.NoError(t, err)
	require.Len(t, page.Changes, directory.MaxPage)
	require.True(t, page.More)
}

// directoryRights are those of docs/guide/directory.md.
const directoryRights = `
GRANT USAGE ON SCHEMA ratelimit TO reader, writer;
GRANT SELECT ON ratelimit.directory_head, ratelimit.directory_record TO reader, writer;
GRANT INSERT, UPDATE ON ratelimit.directory_head, ratelimit.directory_record TO writer;
`

func TestWhoReadsRecordsNeedsNoRightToWrite(t *testing.T) {
	t.Parallel()
	name := database(t)
	ctx := t.Context()
	_, err := connect(t, server.URL(name)).Exec(ctx, "CREATE ROLE reader LOGIN; CREATE ROLE writer LOGIN;"+directoryRights, pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
	as := func(user string) (*postgresfeed.Records, *pgxpool.Pool) {
		pool := connect(t, strings.Replace(server.URL(name), "postgres@", user+"@", 1))
		return records(t, postgresfeed.RecordsConfig{Pool: pool}), pool
	}
	reader, reading := as("reader")
	writer, _ := as("writer")
	_, err = writer.Put(ctx, "acme", costs(2), 0)
	require.NoError(t, err)
	d := directoryOf(t, reader, directory.Config{Interval: time.Minute})
	require.Equal(t, 2, maxCostOf(ctx, d, "acme"))
	require.Eventually(t, func() bool { return reader.HintsFailure() == nil }, patience, time.Millisecond)
	_, err = writer.Put(ctx, "acme", nil, 1)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return maxCostOf(ctx, d, "acme") == 1 }, patience, time.Millisecond)
	var denied *pgconn.PgError
	_, err = reader.Put(ctx, "acme", costs(3), 0)
	require.ErrorAs(t, err, &denied)
	require.Equal(t, "42501", denied.Code)
	_, err = reading.Exec(ctx, "SELECT * FROM ratelimit.policy_revision")
	require.ErrorAs(t, err, &denied, "policies are none of its business")
	require.ErrorAs(t, writer.Renew(ctx), &denied, "that is for who may delete")
}

func TestDirectoriesOfOneDatabaseDoNotMeetAndMistakesAreReportedAllAtOnce(t *testing.T) {
	t.Parallel()
	pool := connect(t, server.URL(database(t)))
	ctx := t.Context()
	first, second := records(t, postgresfeed.RecordsConfig{Pool: pool}), records(t, postgresfeed.RecordsConfig{Pool: pool, Name: "second"})
	require.Equal(t, "postgresql:ratelimit.second", second.String())
	_, err := first.Put(ctx, "acme", costs(2), 0)
	require.NoError(t, err)
	_, err = second.Tenant(ctx, "acme")
	require.ErrorIs(t, err, directory.ErrEmpty)
	_, err = second.Put(ctx, "acme", costs(3), 0)
	require.NoError(t, err)
	r, err := first.Tenant(ctx, "acme")
	require.NoError(t, err)
	require.JSONEq(t, `{"maxCost":2}`, string(r.Document))

	_, err = postgresfeed.NewRecords(postgresfeed.RecordsConfig{Schema: "a b", Name: "c{d"})
	for _, part := range []string{"RecordsConfig.Pool is nil", "RecordsConfig.Schema", "RecordsConfig.Name"} {
		require.ErrorContains(t, err, part)
	}
}
