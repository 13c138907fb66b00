package bucket_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// usageModel keeps the truth beside what a store counts.
type usageModel struct {
	*rand.Rand
	t     *testing.T
	clock *clock
	store interface {
		bucket.Store
		bucket.UsageStore
	}
	buckets [][]bucket.Bucket
	truth   map[string]int64
	// naive is what counts who counts each answer of the store that admits.
	naive    map[string]int64
	admitted map[idempotency.AttemptID]bool
	receipts []usageReceipt
}

type usageReceipt struct {
	receipt bucket.Receipt
	claim   *idempotency.Claim
	points  int64
}

func (m *usageModel) step() {
	m.t.Helper()
	switch m.IntN(10) {
	case 0:
		m.clock.advance(time.Duration(m.IntN(20_000)) * time.Millisecond)
	case 1:
		if m.IntN(20) == 0 {
			m.clock.advance(40 * time.Minute)
		}
	case 2, 3, 4:
		m.settle()
	default:
		m.take()
	}
}

// take takes, mostly once. An answer is lost at times: who sent the take sends it again under its attempt, or knows nothing of it.
func (m *usageModel) take() {
	m.t.Helper()
	n, units := int64(m.IntN(30)), bucket.Amounts{}
	take := bucket.Take{Tenant: "acme|", Buckets: m.buckets[m.IntN(len(m.buckets))], Usage: &bucket.Usage{}}
	take.Amounts = append(units, bucket.Amount{Unit: bucket.Points, N: n}, bucket.Amount{Unit: bucket.Requests, N: 1})
	if m.IntN(4) == 0 {
		take.Amounts = append(take.Amounts, bucket.Amount{Unit: "exports", N: 3})
	}
	if m.IntN(3) == 0 {
		take.Usage.Fields = []bucket.FieldUsage{{Name: fmt.Sprint("Query.f", m.IntN(3)), Points: n, Calls: 1}}
	}
	if m.IntN(3) == 0 {
		take.Claim = &idempotency.Claim{
			Subject: "ann", Key: idempotency.Key(fmt.Sprint("12345678-", m.IntN(40))), Attempt: idempotency.NewAttemptID(), Lease: 30 * time.Second, TTL: time.Hour,
		}
	}
	lost := m.IntN(5) == 0
	for {
		result, err := m.store.Take(context.Background(), take)
		require.NoError(m.t, err)
		fresh := result.Verdict == bucket.Admitted && !result.Repeat && (take.Claim == nil || !m.admitted[take.Claim.Attempt])
		if fresh {
			m.count(m.truth, &take)
		}
		if take.Claim != nil && result.Verdict == bucket.Admitted {
			m.admitted[take.Claim.Attempt] = true
		}
		if !lost {
			if result.Verdict == bucket.Admitted {
				m.count(m.naive, &take)
			}
			if fresh {
				m.receipts = append(m.receipts, usageReceipt{result.Receipt, take.Claim, n})
			}
			return
		}
		if lost = false; take.Claim == nil {
			return
		}
	}
}

func (m *usageModel) count(into map[string]int64, take *bucket.Take) {
	for _, a := range take.Amounts {
		into[string(a.Unit)] += a.N
	}
	for _, f := range take.Usage.Fields {
		into["points"+f.Name] += f.Points
	}
}

// settle corrects a charge, at times for the second time, too late, or above it.
func (m *usageModel) settle() {
	m.t.Helper()
	if len(m.receipts) == 0 {
		return
	}
	i := m.IntN(len(m.receipts))
	r := m.receipts[i]
	if m.IntN(3) > 0 {
		m.receipts = append(m.receipts[:i], m.receipts[i+1:]...)
	}
	actual := int64(m.IntN(40))
	settlement := bucket.Settlement{Receipt: r.receipt, Actual: bucket.Amounts{{Unit: bucket.Points, N: actual}}}
	if r.claim != nil {
		settlement.Claim = &bucket.ClaimSettlement{Tenant: "acme|", Claim: r.claim, Outcome: idempotency.Done, Answer: []byte("{}")}
	}
	settled, err := m.store.Settle(context.Background(), settlement)
	require.NoError(m.t, err)
	if settled.Applied {
		m.truth["points"] += actual - r.points
	}
	if m.IntN(5) > 0 {
		// Who counts by the answers does not know of those that are lost.
		m.naive["points"] += actual - r.points
	}
}

// without leaves out what is zero, of which a store need have no count.
func without(sums map[string]int64) map[string]int64 {
	kept := map[string]int64{}
	for name, n := range sums {
		if n != 0 || !strings.Contains(name, ".") {
			kept[name] = n
		}
	}
	return kept
}

func TestWhatIsCountedIsTheTruthAndWhoCountsAnswersIsWrong(t *testing.T) {
	t.Parallel()
	open := map[string]func(t *testing.T, m *usageModel){
		"memory": func(_ *testing.T, m *usageModel) { m.store = bucket.NewMemory(bucket.MemoryConfig{Clock: m.clock.now}) },
		"redis": func(t *testing.T, m *usageModel) {
			t.Helper()
			store := newRedisStore(t, patientClient(t, redistest.Start(t).Addr))
			require.NoError(t, store.SetTestClock(m.clock.unixMilli))
			m.store = store
		},
	}
	for name, open := range open {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(5) {
				m := &usageModel{
					Rand: rand.New(rand.NewPCG(seed, 1)), t: t, clock: newClock(), truth: map[string]int64{}, naive: map[string]int64{},
					admitted: map[idempotency.AttemptID]bool{},
				}
				open(t, m)
				soft := bucket.Limit{Name: "soft", Capacity: 10, Period: time.Minute, Soft: true}
				shadow := bucket.Limit{Name: "shadow", Capacity: 10, Period: time.Minute, Mode: bucket.Shadow}
				m.buckets = [][]bucket.Bucket{
					nil,
					{{Limits: compile(t, bucket.Limit{Name: "minute", Capacity: 200, Period: time.Minute})}},
					{{Limits: compile(t, soft, shadow)}},
					{{Limits: compile(t, bucket.Limit{Name: "calls", Unit: bucket.Requests, Capacity: 5, Period: time.Minute})}},
				}
				for range 600 {
					m.step()
				}
				require.Equal(t, without(m.truth), without(counted(t, m.store, "acme|", m.clock.now().Add(time.Hour), bucket.UsageExact)), "seed %d", seed)
				require.NotEqual(t, m.truth["points"], m.naive["points"], "seed %d", seed)
				require.NotEqual(t, m.truth["requests"], m.naive["requests"], "seed %d", seed)
			}
		})
	}
}
