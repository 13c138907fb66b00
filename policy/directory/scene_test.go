package directory_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/policy/directory"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

const document = `
version: 1
default: free
tiers:
  free: {limits: {minute: {capacity: 10, per: minute}}}
  pro: {limits: {minute: {capacity: 100, per: minute}}}
  careful: {limits: {minute: {capacity: 3, per: minute}}}
tenants:
  house: {tier: pro}
`

func compiled(t testing.TB) *tiers.Snapshot {
	t.Helper()
	s, err := tiers.Load([]byte(document), 1)
	require.NoError(t, err)
	return s
}

// source is one that can be away, slow, and counted.
type source struct {
	memory atomic.Pointer[directory.Memory]
	asked  atomic.Int64
	away   atomic.Bool
	// hold is for how long each question about a tenant takes.
	hold atomic.Int64
}

func newSource() *source {
	s := &source{}
	s.memory.Store(directory.NewMemory())
	return s
}

func (s *source) Put(ctx context.Context, tenant string, document []byte, expected uint64) (uint64, error) {
	return s.memory.Load().Put(ctx, tenant, document, expected)
}

var errAway = errors.New("away")

func (s *source) Tenant(ctx context.Context, tenant string) (*directory.Record, error) {
	s.asked.Add(1)
	if hold := time.Duration(s.hold.Load()); hold > 0 {
		select {
		case <-time.After(hold):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if s.away.Load() {
		return nil, errAway
	}
	return s.memory.Load().Tenant(ctx, tenant)
}

func (s *source) Changes(ctx context.Context, since directory.Mark) (directory.Page, error) {
	if s.away.Load() {
		return directory.Page{}, errAway
	}
	return s.memory.Load().Changes(ctx, since)
}

// write puts a record in the place of whatever is there.
func (s *source) write(t testing.TB, tenant, record string) {
	t.Helper()
	var expected uint64
	if was, err := s.memory.Load().Tenant(t.Context(), tenant); err == nil && was != nil {
		expected = was.Revision
	}
	_, err := s.Put(t.Context(), tenant, []byte(record), expected)
	require.NoError(t, err)
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func open(t testing.TB, from directory.Source, cfg directory.Config) *directory.Directory {
	t.Helper()
	if cfg.Observe.Logger == nil {
		cfg.Observe.Logger = quiet
	}
	d, err := directory.Open(t.Context(), compiled(t), from, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// capacity is that of the limit that a tenant has.
func capacity(t testing.TB, d *directory.Directory, subject tiers.Subject) int64 {
	t.Helper()
	rules := d.Snapshot().Rules(subject, tiers.Selection{Record: d.Prepare(t.Context(), subject)})
	return rules.Buckets[0].Limits.All()[0].Capacity
}

func of(t testing.TB, d *directory.Directory, tenant string) int64 {
	t.Helper()
	return capacity(t, d, tiers.Subject{Tenant: tenant})
}

const raised = `{"tier":"pro","limits":{"minute":{"capacity":700,"per":"minute"}}}`

// pass lets time pass in a bubble of synctest.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // In a synctest bubble: no time passes.
}
