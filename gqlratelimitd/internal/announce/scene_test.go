package announce_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/announce"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/storetest"
	"github.com/gqlgen-ratelimit/ratelimit/internal/postgrestest"
)

// patience is for how long something that has to happen may take on a busy machine.
const patience = 60 * time.Second

var (
	quiet   = slog.New(slog.NewTextHandler(io.Discard, nil))
	errAway = errors.New("the broker is away")
	source  = announce.SourceOf("")
)

// server is a PostgreSQL that several tests share. Each of them has a database of its own.
var server = sync.OnceValues(postgrestest.Launch)

// databases counts those that were made in the server.
var databases atomic.Int64

func TestMain(m *testing.M) {
	if job := os.Getenv(daemonVariable); job != "" {
		fmt.Fprintln(os.Stderr, announceForEver(job))
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

// scene is a database.
type scene struct {
	*testing.T
	url string
	db  *store.DB
}

func newScene(t *testing.T) *scene {
	t.Helper()
	return newSceneOn(t, storetest.SQLite(t))
}

func newSceneOn(t *testing.T, url string) *scene {
	t.Helper()
	db, err := store.Open(t.Context(), store.Config{URL: url})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return &scene{t, url, db}
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

// entry is one of a tenant.
func entry(action, tenant string, n int) audit.Entry {
	return audit.Entry{
		Time: time.Now(), Actor: audit.Actor{Subject: "ada", Method: "token", Address: "192.0.2.1"}, Action: action, Target: "override of " + tenant, Tenant: tenant,
		After: json.RawMessage(fmt.Sprintf(`{"capacity":%d}`, n)), Reason: "launch",
	}
}

// do appends entries to the log, each in a change of its own.
func (s *scene) do(entries ...audit.Entry) {
	s.Helper()
	for i := range entries {
		require.NoError(s, s.db.Change(context.Background(), func(tx *store.Tx) error {
			_, err := audit.Append(context.Background(), tx.Audit(), entries[i])
			return err
		}))
	}
}

// overrides does so many changes of seven tenants.
func (s *scene) overrides(n int) {
	s.Helper()
	for i := range n {
		s.do(entry("override.set", fmt.Sprint("tenant-", i%7), i))
	}
}

// rows are those of the log.
func (s *scene) rows() (rows []audit.Row) {
	s.Helper()
	require.NoError(s, s.db.Read(context.Background(), func(v *store.View) (err error) {
		rows, err = v.Audit().Rows(context.Background(), 0, store.MaxPage)
		return err
	}))
	return rows
}

// config is that of an announcer that is quick. Its lease is as long as that of a daemon: one of half a second is lost by who gets no processor.
func (s *scene) config(sink stream.Sink) announce.Config {
	return announce.Config{Store: s.db, Sink: sink, Source: source, Interval: 10 * time.Millisecond, Timeout: 200 * time.Millisecond, Logger: quiet}
}

// start starts an announcer until the test ends, or stop is called.
func (s *scene) start(cfg announce.Config) (_ *announce.Announcer, stop func()) {
	s.Helper()
	a, err := announce.New(cfg)
	require.NoError(s, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); require.NoError(s, <-ended) })
	s.Cleanup(stop)
	return a, stop
}

func (s *scene) eventually(is func() bool) {
	s.Helper()
	require.Eventually(s, is, patience, time.Millisecond)
}

// arrived waits until the log has arrived, as the database has it.
func (s *scene) arrived() {
	s.Helper()
	want := int64(len(s.rows()))
	s.eventually(func() bool {
		var next int64
		require.NoError(s, s.db.Read(context.Background(), func(v *store.View) (err error) {
			next, err = v.Announced("redis")
			return err
		}))
		return next == want
	})
}

// firsts are the events without those whose id was there before, and how many these are.
func firsts(got []stream.Envelope) (first []stream.Envelope, duplicates int) {
	seen := map[string]bool{}
	for _, e := range got {
		if seen[e.ID] {
			duplicates++
			continue
		}
		seen[e.ID] = true
		first = append(first, e)
	}
	return first, duplicates
}

// requireLog holds that the events are the entries of the log: each there, in their order, once one of those with the same id is counted.
func (s *scene) requireLog(got []stream.Envelope) (duplicates int) {
	s.Helper()
	first, duplicates := firsts(got)
	rows := s.rows()
	require.Len(s, first, len(rows))
	for i, row := range rows {
		require.EqualValues(s, i+1, first[i].Sequence)
		require.Equal(s, string(row.Record), string(first[i].Data))
	}
	return duplicates
}

// requireTenants holds that each entry is there, and those of each tenant in their order.
func (s *scene) requireTenants(got []stream.Envelope) {
	s.Helper()
	first, _ := firsts(got)
	last := map[string]uint64{}
	for _, e := range first {
		require.Greater(s, e.Sequence, last[e.Subject], e.Subject)
		last[e.Subject] = e.Sequence
	}
	require.Len(s, first, len(s.rows()))
}

// broker is a sink in memory.
type broker struct {
	mu     sync.Mutex
	stored []stream.Envelope
	// judge says what becomes of an envelope. Nil stores all.
	judge func(ctx context.Context, e *stream.Envelope) error
}

func (b *broker) Send(ctx context.Context, batch []stream.Envelope) []error {
	errs := make([]error, len(batch))
	held := map[string]error{}
	for i := range batch {
		e := batch[i]
		if errs[i] = held[e.Key()]; errs[i] != nil {
			continue
		}
		b.mu.Lock()
		judge := b.judge
		b.mu.Unlock()
		if judge != nil {
			errs[i] = judge(ctx, &e)
		}
		switch {
		case errs[i] == nil:
			b.mu.Lock()
			b.stored = append(b.stored, e)
			b.mu.Unlock()
		case !errors.Is(errs[i], stream.ErrTooLarge) && !errors.Is(errs[i], stream.ErrRefused):
			held[e.Key()] = errs[i]
		}
	}
	return errs
}

// set has it judge otherwise.
func (b *broker) set(judge func(ctx context.Context, e *stream.Envelope) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.judge = judge
}

func (b *broker) all() []stream.Envelope {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]stream.Envelope(nil), b.stored...)
}
