package e2e_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
)

// listener hears whose usage was counted.
type listener struct {
	mu  sync.Mutex
	all []event.UsageCounted
}

func (*listener) Observe(context.Context, event.Event) {}

func (l *listener) CountUsage(c event.UsageCounted) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, c)
}

// heard returns what was told since it was called last.
func (l *listener) heard() (all []event.UsageCounted) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all, l.all = l.all, nil
	return all
}

// heeded is counting with a listener.
func heeded(t *testing.T, tier string) (*fixture, *listener) {
	t.Helper()
	heard := &listener{}
	policy := policyOf(t, "version: 1\ndefault: free\ntiers:\n  free:\n"+tier)
	return newFixture(t, func(cfg *ratelimit.Config) {
		cfg.Policy, cfg.Settlement = policy, ratelimit.SettlementConfig{Refund: true, FailedShare: 1}
		cfg.Observe.Observer = event.All(event.Func(func(context.Context, event.Event) {}), heard)
	}), heard
}

const countsAll = "    usage: fields\n    limits: {minute: {capacity: 1000, per: minute}}\n"

func TestWhoIsCountedIsToldWhenTheStoreHasCountedAndOtherwiseNot(t *testing.T) {
	t.Parallel()
	s, heard := heeded(t, countsAll)
	began := s.clock.Now()
	require.Equal(t, http.StatusOK, s.post(request{Query: `{ me { name } }`}).Status)
	s.settled()
	told := heard.heard()
	require.Len(t, told, 1)
	require.Equal(t, "free", told[0].Tenant)
	require.WithinRange(t, told[0].At, began, s.clock.Now())
	require.False(t, told[0].Local)

	s.post(request{Query: createUser, Key: testKey})
	s.settled()
	require.Len(t, heard.heard(), 1)
	s.post(request{Query: createUser, Key: testKey})
	require.Empty(t, heard.heard(), "a replay counts nothing")
	s.post(request{Query: `{ page(first: 2000) { name } }`})
	require.Empty(t, heard.heard(), "a refusal counts nothing")
	s.store.Fail(bucket.ErrUnavailable)
	s.post(request{Query: `{ me { name } }`})
	require.Empty(t, heard.heard(), "the store has surely not counted it")
}

func TestATakeWhoseReplyWasLostIsToldBecauseItMayBeCounted(t *testing.T) {
	t.Parallel()
	s, heard := heeded(t, countsAll)
	s.store.Fail(bucket.ErrAmbiguous)
	s.post(request{Query: `{ me { name } }`})
	told := heard.heard()
	require.NotEmpty(t, told)
	require.Equal(t, "free", told[0].Tenant)
	require.WithinDuration(t, time.Now(), told[0].At, time.Minute)
}

func TestATierThatCountsNothingTellsNothing(t *testing.T) {
	t.Parallel()
	s, heard := heeded(t, "    usage: none\n    limits: {minute: {capacity: 1000, per: minute}}\n")
	s.post(request{Query: `{ page(first: 300) { name } }`})
	s.post(request{Query: createUser, Key: testKey})
	s.settled()
	require.Empty(t, heard.heard())
}

func TestASettlementTellsTheHourOfItsTake(t *testing.T) {
	t.Parallel()
	s, heard := heeded(t, countsAll)
	var told []event.UsageCounted
	s.resolver.OnExport = func(ctx context.Context, rows int) error {
		told = append(told, heard.heard()...)
		err := ratelimit.Charge(ctx, bucket.Points, int64(rows))
		told = append(told, heard.heard()...)
		return err
	}
	s.post(request{Query: `{ export(rows: 3) }`})
	s.settled()
	require.Len(t, told, 2, "the take, and the charge of the resolver")
	heard.heard()
	told = nil

	s.post(request{Query: `{ page(first: 300) { name } }`})
	s.settled()
	told = heard.heard()
	require.Len(t, told, 2, "the take, and what corrects it")
	require.Equal(t, told[0].At, told[1].At)
}

func TestTheEndOfAClaimTellsTheHourOfItsTake(t *testing.T) {
	t.Parallel()
	s, heard := heeded(t, countsAll)
	s.clock.Advance(time.Hour - 5*time.Second)
	hour := s.clock.Now().UTC().Truncate(time.Hour)
	var taken []event.UsageCounted
	s.resolver.OnExport = func(context.Context, int) error {
		taken = heard.heard()
		// It runs into the next hour, and fails.
		s.clock.Advance(10 * time.Second)
		return context.DeadlineExceeded
	}
	s.post(request{Query: `{ export(rows: 3) }`, Key: testKey})
	s.settled()
	told := heard.heard()
	require.Len(t, taken, 1)
	require.Len(t, told, 1)
	require.Equal(t, hour, told[0].At.UTC().Truncate(time.Hour))
}

func TestWhatALocalShareAdmittedIsToldWhenItIsSettled(t *testing.T) {
	t.Parallel()
	s, heard := heeded(t, "    usage: totals\n    failMode: local\n    limits: {minute: {capacity: 100, per: minute}}\n")
	s.post(request{Query: `{ __typename }`})
	heard.heard()
	s.store.Fail(bucket.ErrUnavailable)
	require.Equal(t, http.StatusOK, s.post(request{Query: `{ me { name } }`}).Status)
	require.Empty(t, heard.heard())
	s.store.Fail(nil)
	s.post(request{Query: `{ __typename }`})
	told := heard.heard()
	require.NotEmpty(t, told)
	require.True(t, told[0].Local)
	read, err := s.store.ReadUsage(t.Context(), told[0].Tenant, told[0].At, bucket.UsageLocal)
	require.NoError(t, err)
	require.Equal(t, int64(3), read.Counts[0].Net())
}

func TestWhoReadsWhatARecorderTellsHasWhatTheStoreHasCounted(t *testing.T) {
	t.Parallel()
	recorder, err := usage.NewRecorder(usage.RecorderConfig{})
	require.NoError(t, err)
	policy := policyOf(t, "version: 1\ndefault: free\ntiers:\n  free:\n    usage: totals\n    limits: {minute: {capacity: 350, per: minute}}\n")
	s := newFixture(t, func(cfg *ratelimit.Config) {
		cfg.Policy, cfg.Settlement.Refund = policy, true
		cfg.Observe.Observer = recorder
	})
	for range 3 {
		for _, tenant := range []string{"free", "pro"} {
			s.post(request{Query: `{ page(first: 300) { name } }`, Tenant: tenant})
			s.settled()
		}
	}
	batch := recorder.Collect(time.Now(), time.Now())
	sums := map[string]int64{}
	for _, c := range batch.Counted {
		read, err := s.store.ReadUsage(t.Context(), c.Tenant, c.Hour, c.Grade)
		require.NoError(t, err)
		sums[c.Tenant] += read.Counts[1].Net()
	}
	admitted, refused := map[string]int64{}, map[string]int64{}
	for _, d := range batch.Decisions {
		if d.By == usage.ByTenant {
			admitted[d.Tenant] += d.Admitted
		}
		if d.By == usage.ByLimit {
			require.Equal(t, "tenant:minute", d.Name)
			refused[d.Tenant] += d.Refused
		}
	}
	require.Equal(t, sums, admitted)
	for tenant, n := range refused {
		require.EqualValues(t, 3, n+admitted[tenant])
	}
	require.Len(t, refused, 2)
}
