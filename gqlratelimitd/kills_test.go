//go:build long

package main

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	_ "github.com/gqlgen-ratelimit/ratelimit/internal/seed" // the same order of kills in every run
)

var kills = flag.Int("kills", 10, "how many processes are killed between takes and counts by hour, on each kind of database")

// TestUsageEqualsChargesAfterKills kills instances, daemons with their collectors, Redis, PostgreSQL and the proxies
// between them, while replies are lost and operations are settled late, and collects the rest in the end. What is stored by minute and hour is
// the truth, row by row.
//
// The truth is read from budgets and not from counts. Each operation has one for itself, to which nothing comes back, beside that of its tenant: what
// it has spent says whether the operation was charged, how often, and whether it was corrected, also where a reply was lost and nobody knows. The scripts
// keep both kinds of numbers in other keys, in another form and by other code. And neither is believed alone: each operation has to have spent what its
// instance knows of it (that which was answered is charged, that which was settled is worth what it is worth, nothing is charged twice), and
// all of a tenant what the tenant has spent. So a Redis that loses what it has answered is found out too, which is why this one writes each change to
// its disk before it answers (appendfsync always). What others lose when they are killed, budgets lose with their counts.
//
// Beside it stand three who count as one would who has not thought of it, from the same replies and collections: by the deltas of each reply, by the deltas
// of each collection, and with one row for all generations of a count. Each has to be wrong.
func TestUsageEqualsChargesAfterKills(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"SQLite", "PostgreSQL"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			f := newKillFleet(t, kind, killSeed(t))
			f.run(*kills)
			f.stop()
			require.Empty(t, f.heard.wrong)
			truth := f.truth()
			f.collectAll(truth)
			points, one := truth.points(), f.oneRow()
			require.NotEqual(t, points, f.heard.answered, "who adds the deltas of replies")
			require.NotEqual(t, points, f.heard.added, "who adds the deltas of collections")
			require.NotEqual(t, points, one, "who keeps one row for all generations")
			t.Logf("%d kills in %v: %v", f.killed(), time.Since(begun).Round(time.Second), f.kills)
			t.Logf("%d operations, %d charged, of %d of them no reply has said so; %d collections of an hour, %d forgotten", len(f.heard.ops),
				truth.charged, truth.unknown, f.heard.collected, f.heard.forgot)
			t.Logf("%d points: stored with a difference of 0; by replies %+d, by collections %+d, with one row %+d", points, f.heard.answered-points,
				f.heard.added-points, one-points)
		})
	}
}

// killSeed is what TEST_SEED says.
func killSeed(t testing.TB) uint64 {
	t.Helper()
	value := flag.Lookup("rapid.seed").Value.String()
	var seed uint64
	_, err := fmt.Sscan(value, &seed)
	require.NoError(t, err)
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("TEST_SEED=%d", seed)
	return seed
}

// truth is what was charged.
func (f *killFleet) truth() *killTruth {
	f.Helper()
	store, err := bucket.NewRedis(bucket.RedisConfig{Client: redistest.Connect(f, f.redis.Addr), AdminTimeout: patient})
	require.NoError(f, err)
	truth, err := f.heard.truth(context.Background(), store)
	require.NoError(f, err)
	require.NotZero(f, truth.unknown, "replies are lost")
	return truth
}

// ahead is when nothing is settled any more of what was charged in these minutes.
const ahead = 4 * time.Hour

// collectAll has a daemon collect what is left, hours later, and compares it with the truth.
func (f *killFleet) collectAll(truth *killTruth) {
	f.Helper()
	collected := time.Now().Add(ahead).Unix() / 60
	o := &options{
		Listen: "127.0.0.1:0", Data: f.data, Database: f.database, Redis: "redis://" + f.redis.Addr, Stream: "none",
		now: func() time.Time { return time.Now().Add(ahead) }, collect: collectsFast(ahead, func(string, any) {}),
	}
	startWith(f, o, io.Discard)
	require.Eventually(f, func() bool {
		return f.stored("SELECT 'collected', '', '', collected, 0 FROM usage_pass")[row{tenant: "collected"}].net >= collected
	}, 10*patient, soon, "the store of budgets is searched for the rest")
	for _, table := range []string{"usage_minute", "usage_hour"} {
		require.Equal(f, truth.rows, f.stored("SELECT tenant, unit, field, sum(charged) - sum(given_back), sum(calls) FROM "+table+" GROUP BY tenant, unit, field"), table)
	}
}

// oneRow is how many points there are for who keeps the largest count of a minute, of whichever generation.
func (f *killFleet) oneRow() (points int64) {
	f.Helper()
	for r, a := range f.stored(`SELECT tenant, unit, field, sum(n), 0 FROM (SELECT tenant, unit, field, max(charged - given_back) AS n
		FROM usage_minute GROUP BY tenant, unit, field, at, grade) AS largest GROUP BY tenant, unit, field`) {
		if r.unit == string(bucket.Points) && r.field == "" {
			points += a.net
		}
	}
	return points
}

// stored are the sums of a query.
func (f *killFleet) stored(query string) map[row]amount {
	f.Helper()
	driver, at := "sqlite", filepath.Join(f.data, "gqlratelimitd.db")
	if f.database != "" {
		driver, at = "pgx", f.database+"&search_path="+store.Schema
	}
	raw, err := sql.Open(driver, at)
	require.NoError(f, err)
	defer func() { require.NoError(f, raw.Close()) }()
	found, err := raw.QueryContext(context.Background(), query)
	require.NoError(f, err)
	defer func() { _ = found.Close() }()
	rows := map[row]amount{}
	for found.Next() {
		var tenant, unit, field []byte
		var a amount
		require.NoError(f, found.Scan(&tenant, &unit, &field, &a.net, &a.calls))
		rows[row{string(tenant), string(unit), string(field)}] = a
	}
	require.NoError(f, found.Err())
	return rows
}
