package relay_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/relay"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/storetest"
	"github.com/gqlgen-ratelimit/ratelimit/internal/postgrestest"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/policy/directory/redisdirectory"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisfeed"
)

const (
	// patience is for how long something that has to happen may take on a busy machine.
	patience = 60 * time.Second
	tick     = 5 * time.Millisecond
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// scene is a database, a Redis, and what reads and writes there beside the relay.
type scene struct {
	testing.TB
	db        *store.DB
	server    *redistest.Server
	client    redis.UniversalClient
	feed      *redisfeed.Feed
	directory *redisdirectory.Source
	overrides *bucket.Redis
}

// server is a PostgreSQL that several tests share. Each of them has a database of its own.
var server = sync.OnceValues(postgrestest.Launch)

func TestMain(m *testing.M) {
	if address := os.Getenv(followVariable); address != "" {
		fmt.Fprintln(os.Stderr, followForEver(address))
		os.Exit(1)
	}
	code := m.Run()
	if databases.Load() > 0 {
		if launched, err := server(); err != nil || launched.Close() != nil {
			code = 1
		}
	}
	os.Exit(code)
}

// databases counts those that were made in the server.
var databases atomic.Int64

func newScene(t testing.TB) *scene {
	t.Helper()
	return newSceneOn(t, storetest.SQLite(t))
}

// both runs a test on a database of each kind.
func both(t *testing.T, test func(s *scene)) {
	t.Helper()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		test(newScene(t))
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		name := fmt.Sprintf("test%d", databases.Add(1))
		launched, err := server()
		require.NoError(t, err)
		admin, err := pgx.Connect(t.Context(), launched.URL("postgres"))
		require.NoError(t, err)
		defer func() { _ = admin.Close(context.Background()) }()
		// The template of others would be in use while somebody makes a database.
		_, err = admin.Exec(t.Context(), "CREATE DATABASE "+name+" TEMPLATE template0")
		require.NoError(t, err)
		test(newSceneOn(t, launched.URL(name)))
	})
}

func newSceneOn(t testing.TB, database string) *scene {
	t.Helper()
	s := &scene{TB: t, server: redistest.Start(t)}
	var err error
	s.db, err = store.Open(t.Context(), store.Config{URL: database})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.db.Close()) })
	s.client = s.connect()
	s.feed, err = redisfeed.New(redisfeed.Config{Client: s.client})
	require.NoError(t, err)
	s.directory, err = redisdirectory.New(redisdirectory.Config{Client: s.client})
	require.NoError(t, err)
	s.overrides, err = bucket.NewRedis(bucket.RedisConfig{Client: s.client})
	require.NoError(t, err)
	return s
}

func (s *scene) connect() redis.UniversalClient {
	return redistest.Connect(s, s.server.Addr)
}

// config is that of a relay that is quick.
func (s *scene) config() relay.Config {
	return relay.Config{Store: s.db, Client: s.connect(), Interval: 20 * time.Millisecond, Sweep: time.Second, Lease: time.Second, Logger: quiet}
}

// start runs a relay until the test ends, or until it is stopped.
func (s *scene) start(cfg relay.Config) (r *relay.Relay, stop func()) {
	s.Helper()
	r, err := relay.New(cfg)
	require.NoError(s, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	stopped := false
	stop = func() {
		cancel()
		if !stopped {
			stopped = true
			require.NoError(s, <-ended)
		}
	}
	s.Cleanup(stop)
	return r, stop
}

func (s *scene) change(f func(tx *store.Tx) error) {
	s.Helper()
	require.NoError(s, s.db.Change(context.Background(), f))
}

func (s *scene) eventually(is func() bool, what ...any) {
	s.Helper()
	require.Eventually(s, is, patience, tick, what...)
}

// carried waits until nothing waits, and everything was compared at least once.
func (s *scene) carried(r *relay.Relay) {
	s.Helper()
	s.eventually(func() bool {
		waiting := int64(0)
		require.NoError(s, s.db.Read(context.Background(), func(v *store.View) (err error) {
			waiting, _, err = v.Waiting()
			return err
		}))
		return waiting == 0 && !r.Status().Swept.IsZero()
	})
}

func revision(number uint64) *policy.Revision {
	document := fmt.Appendf(nil, "version: 1\ndefault: free\ntiers: {free: {maxCost: %d}}\n", number)
	return &policy.Revision{Number: number, Document: document, Hash: policy.HashOf(document), Author: "ada", Reason: "why", Published: time.Unix(1e9, 0).UTC()}
}

func (s *scene) publish(number uint64) {
	s.Helper()
	s.change(func(tx *store.Tx) error {
		if err := tx.Publish(revision(number), number-1); err != nil {
			return err
		}
		return tx.Enqueue(store.PolicyMessage, "", number)
	})
}

// newest is the number of the policy in Redis, 0 for none.
func (s *scene) newest() uint64 {
	r, err := s.feed.Newest(context.Background(), policy.Head{})
	if err != nil || r == nil {
		return 0
	}
	return r.Number
}

// assign writes the record of a tenant, and removes an empty one.
func (s *scene) assign(tenant, document string) {
	s.Helper()
	s.change(func(tx *store.Tx) error {
		there, err := tx.Tenant(tenant)
		if err != nil {
			return err
		}
		next := &store.Tenant{Name: tenant, Written: store.Written{By: "ada", Reason: "why"}}
		if document != "" {
			next.Record = []byte(document)
		}
		expected := uint64(0)
		if there != nil {
			expected = there.Revision
		}
		if err := tx.PutTenant(next, expected); err != nil {
			return err
		}
		return tx.Enqueue(store.TenantMessage, tenant, next.Revision)
	})
}

// record is what Redis has of a tenant: empty for no record.
func (s *scene) record(tenant string) string {
	r, err := s.directory.Tenant(context.Background(), tenant)
	if err != nil || r == nil {
		return ""
	}
	return string(r.Document)
}

// override sets, or with a capacity of 0 removes, the override of the limit "minute" of a tenant.
func (s *scene) override(tenant string, capacity int64, expires time.Time) (revision uint64) {
	s.Helper()
	s.change(func(tx *store.Tx) error {
		o := &store.Override{Tenant: tenant, Removed: capacity == 0}
		o.Limit, o.Capacity, o.Expires, o.Actor, o.Reason = "minute", capacity, expires, "ada", "why"
		there, err := tx.Override(o.Key())
		if err != nil {
			return err
		}
		expected := uint64(0)
		if there.Holds(tx.Now()) {
			expected = there.Revision
		}
		if err := tx.PutOverride(o, expected); err != nil {
			return err
		}
		revision = o.Revision
		return tx.Enqueue(store.OverridesMessage, tenant, revision)
	})
	return revision
}

// there is the override of the limit "minute" of a tenant in Redis, nil for none.
func (s *scene) there(tenant string) *bucket.Override {
	o, err := s.overrides.GetOverride(context.Background(), tenant, bucket.Owner{}, "minute")
	if err != nil {
		return nil
	}
	return o
}

func (s *scene) capacity(tenant string) int64 {
	if o := s.there(tenant); o != nil {
		return o.Capacity
	}
	return 0
}

// foreign sets an override without the daemon, as the command does.
func (s *scene) foreign(tenant string, capacity int64) {
	s.Helper()
	_, err := s.overrides.SetOverride(context.Background(), tenant, bucket.Override{Limit: "minute", Capacity: capacity, Actor: "oncall", Reason: "3 a.m."})
	require.NoError(s, err)
}

// entries are the records of the audit log.
func (s *scene) entries() (found []string) {
	s.Helper()
	require.NoError(s, s.db.Read(context.Background(), func(v *store.View) error {
		rows, err := v.Audit().Rows(context.Background(), 0, store.MaxPage)
		for _, r := range rows {
			found = append(found, string(r.Record))
		}
		return err
	}))
	return found
}

// unmanaged are the records of all tenants that nobody has set here.
func (s *scene) unmanaged() (found []store.Override) {
	s.Helper()
	require.NoError(s, s.db.Read(context.Background(), func(v *store.View) error {
		tenants, err := v.OverrideTenants("", store.MaxPage)
		for _, tenant := range tenants {
			of, err := v.Unmanaged(tenant)
			if err != nil {
				return err
			}
			found = append(found, of...)
		}
		return err
	}))
	return found
}
