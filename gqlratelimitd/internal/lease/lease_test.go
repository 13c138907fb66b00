package lease_test

import (
	"context"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/lease"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/storetest"
)

// patience is for how long something that has to happen may take on a busy machine.
const patience = 60 * time.Second

// scene is a database.
type scene struct {
	*testing.T
	db *store.DB
}

func newScene(t *testing.T) *scene {
	t.Helper()
	db, err := store.Open(t.Context(), store.Config{URL: storetest.SQLite(t)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return &scene{t, db}
}

// daemon is one that waits for the lease. leads is whether it does, holder who it believes does.
type daemon struct {
	stop   func()
	leads  atomic.Bool
	holder atomic.Pointer[string]
}

func (d *daemon) sees() string {
	if holder := d.holder.Load(); holder != nil {
		return *holder
	}
	return ""
}

// start starts one that does its work until the lease ends.
func (s *scene) start(name string, work func(context.Context)) *daemon {
	d := &daemon{}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		lease.Keep(ctx, lease.Config{
			Store: s.db, Name: "work", Holder: name, Life: 500 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
			Leads: func(leads bool, holder string) { d.leads.Store(leads); d.holder.Store(&holder) },
		}, work)
	}()
	d.stop = func() { cancel(); <-ended }
	s.Cleanup(d.stop)
	return d
}

func (s *scene) eventually(is func() bool) {
	s.Helper()
	require.Eventually(s, is, patience, time.Millisecond)
}

func TestOfTwoOneHasTheLeaseAndTheOtherGetsItWhenThatEnds(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	var working atomic.Int32
	work := func(ctx context.Context) {
		if working.Add(1) > 1 {
			t.Error("two work at once, and both are alive")
		}
		<-ctx.Done()
		working.Add(-1)
	}
	first := s.start("first", work)
	s.eventually(first.leads.Load)
	second := s.start("second", work)
	s.eventually(func() bool { return second.sees() == "first" })
	require.False(t, second.leads.Load())
	first.stop()
	s.eventually(second.leads.Load)
	require.False(t, first.leads.Load())
}

func TestALeaseThatIsTakenAwayEndsTheWork(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	begun, ended := make(chan struct{}, 10), make(chan struct{}, 10)
	d := s.start("first", func(ctx context.Context) {
		begun <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
	})
	<-begun
	require.NoError(t, s.db.Change(t.Context(), func(tx *store.Tx) error {
		there, err := tx.Lease("work")
		if err == nil {
			_, err = tx.TakeLease("work", "somebody else", there)
		}
		return err
	}))
	<-ended
	s.eventually(func() bool { return d.sees() == "somebody else" })
	<-begun // whose beat stands still
}
