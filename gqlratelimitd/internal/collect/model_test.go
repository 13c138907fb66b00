package collect_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/collect"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
)

// model keeps the truth beside what is collected.
type model struct {
	*scene
	*rand.Rand
	faults *faults
	// points are what tenants have used, and refused what instances have stored that they have refused, by limit.
	points  map[string]int64
	refused map[string]int64
	// added is what those count who add what is new since they read last.
	added    atomic.Int64
	receipts []receipt
	// instances are what each instance has refused since it was started.
	instances []*instance
	boots     int
	rounds    []collect.Round
}

type receipt struct {
	taken  bucket.Receipt
	claim  *idempotency.Claim
	tenant string
	points int64
}

// instance is a run of one, and what of its refusals is stored.
type instance struct {
	run     string
	counted *usage.Refusals
	stored  map[usage.Refused]int64
}

// boot starts an instance anew. What it had not stored is lost.
func (m *model) boot(i int) {
	m.boots++
	m.instances[i] = &instance{fmt.Sprintf("%016x", m.boots), &usage.Refusals{}, map[usage.Refused]int64{}}
}

func newModel(s *scene, seed uint64) *model {
	m := &model{
		scene: s, Rand: rand.New(rand.NewPCG(seed, 1)), faults: &faults{Rand: rand.New(rand.NewPCG(seed, 2)), share: 4},
		points: map[string]int64{}, refused: map[string]int64{}, instances: make([]*instance, 2),
	}
	for i := range m.instances {
		m.boot(i)
	}
	for range 3 {
		m.rounds = append(m.rounds, m.start())
	}
	return m
}

// start starts a daemon that knows nothing.
func (m *model) start() collect.Round {
	source := &faultySource{Source: m.budget, faults: m.faults, seen: map[string]int64{}, added: &m.added}
	return collect.NewRound(m.collector(source), &faultyDatabase{m.db, m.faults})
}

func (m *model) step() {
	switch m.IntN(16) {
	case 0:
		m.clock.advance(time.Duration(m.IntN(90)) * time.Second)
	case 1:
		if m.IntN(8) == 0 {
			m.clock.advance(40 * time.Minute)
		}
	case 2, 3:
		m.settle()
	case 4, 5:
		m.instances[m.IntN(len(m.instances))].counted.Add(m.clock.now(), "acme", fmt.Sprint("limit-", m.IntN(3)))
	case 6:
		m.store()
	case 7, 8:
		m.collect()
	case 9:
		// A daemon is killed, and started anew.
		m.rounds[m.IntN(len(m.rounds))] = m.start()
	case 10:
		if m.IntN(4) == 0 {
			m.boot(m.IntN(len(m.instances)))
		}
	default:
		m.takeSome()
	}
}

// takeSome takes, at times what is settled much later.
func (m *model) takeSome() {
	tenant, n := []string{"acme", "\x00\xff", "globex"}[m.IntN(3)], int64(m.IntN(30))
	take := bucket.Take{Tenant: tenant, Amounts: bucket.Amounts{{Unit: bucket.Points, N: n}, {Unit: bucket.Requests, N: 1}}, Usage: &bucket.Usage{}}
	if m.IntN(3) == 0 {
		take.Usage.Fields = []bucket.FieldUsage{{Name: "Query.search", Points: n, Calls: 1}}
	}
	if m.IntN(2) == 0 {
		take.Claim = &idempotency.Claim{
			Subject: "ann", Key: idempotency.Key(fmt.Sprint("12345678-", m.Uint64())), Attempt: idempotency.NewAttemptID(), Lease: 30 * time.Second, TTL: 24 * time.Hour,
		}
	}
	result, err := m.budget.Take(context.Background(), take)
	require.NoError(m, err)
	if result.Verdict == bucket.Admitted {
		m.points[tenant] += n
		m.receipts = append(m.receipts, receipt{result.Receipt, take.Claim, tenant, n})
	}
}

// settle corrects a charge.
func (m *model) settle() {
	if len(m.receipts) == 0 {
		return
	}
	i := m.IntN(len(m.receipts))
	r := m.receipts[i]
	m.receipts = append(m.receipts[:i], m.receipts[i+1:]...)
	actual := int64(m.IntN(40))
	settlement := bucket.Settlement{Receipt: r.taken, Actual: bucket.Amounts{{Unit: bucket.Points, N: actual}}}
	if r.claim != nil {
		settlement.Claim = &bucket.ClaimSettlement{Tenant: r.tenant, Claim: r.claim, Outcome: idempotency.Done, Answer: []byte("{}")}
	}
	settled, err := m.budget.Settle(context.Background(), settlement)
	require.NoError(m, err)
	if settled.Applied {
		m.points[r.tenant] += actual - r.points
	}
}

// store has instances store what they have refused.
func (m *model) store() {
	for _, i := range m.instances {
		all := i.counted.Snapshot()
		m.budget.Refuse(i.run, all...)
		if m.IntN(4) == 0 {
			// It does not know, and stores it again.
			continue
		}
		i.counted.Stored()
	}
}

// storedOf notes what the source has, which only grows.
func (m *model) noteStored() {
	now := m.clock.now()
	m.refused = map[string]int64{}
	for hour := now.Add(-30 * 24 * time.Hour).Truncate(time.Hour); !hour.After(now); hour = hour.Add(time.Hour) {
		for cursor := ""; ; {
			page, next, err := m.budget.Refused(context.Background(), hour, cursor)
			require.NoError(m, err)
			for _, r := range page {
				m.refused[r.Limit] += r.N
			}
			if cursor = next; next == "" {
				break
			}
		}
	}
}

// collect has one daemon do something, or all of them at once.
func (m *model) collect() {
	at, all := m.IntN(len(m.rounds)), m.IntN(4) == 0
	what := m.IntN(8)
	var working sync.WaitGroup
	for i, r := range m.rounds {
		if i != at && !all {
			continue
		}
		working.Go(func() {
			ctx := context.Background()
			// What fails is tried again by a later step.
			switch what {
			case 0, 1, 2, 3, 4:
				_ = r.Collect(ctx)
			case 5:
				_ = r.Search(ctx)
			default:
				_ = r.Keep(ctx)
			}
		})
	}
	working.Wait()
}

func TestWhatIsCollectedIsTheTruthHoweverOftenItBreaksAndWhoAddsIsWrong(t *testing.T) {
	t.Parallel()
	both(t, func(s *scene) {
		lost, wrong := int64(0), 0
		for seed := range uint64(3) {
			m := newModel(newScene(s.TB, s.db.Dialect().String()), seed)
			for range 900 {
				m.step()
			}
			m.store()
			m.scene.settle()
			m.clock.advance(3 * time.Hour)
			m.scene.settle()
			m.noteStored()
			total := int64(0)
			for _, n := range m.points {
				total += n
			}
			lost += m.requireTruth(total, seed)
			if m.added.Load() != total {
				wrong++
			}
		}
		require.Positive(s, lost, "who has one row for all generations loses some")
		require.Positive(s, wrong, "who adds what is new since they read last counts it twice after a crash")
	})
}

// requireTruth holds that the database has what was used and refused. It returns what one row for all generations has less.
func (m *model) requireTruth(total int64, seed uint64) (lost int64) {
	points := " FROM %s WHERE field = " + m.literal("") + " AND unit = " + m.literal("points")
	for _, table := range []string{"usage_minute", "usage_hour"} {
		is := m.sums(fmt.Sprintf("SELECT 'net', charged - given_back"+points, table))
		require.Equal(m, total, is["net"], "seed %d: %s", seed, table)
	}
	generations := m.sums(fmt.Sprintf("SELECT 'all', charged"+points, "usage_minute"))
	one := m.sums("SELECT 'all', n FROM (SELECT max(charged) AS n" + fmt.Sprintf(points, "usage_minute") + " GROUP BY tenant, at, grade) AS largest")
	require.Equal(m, m.refused, m.sums("SELECT "+m.text("name")+", refused FROM refused_hour"), "seed %d", seed)
	// Everything that is over is forgotten in the store of budgets.
	found, _, err := m.budget.Found(context.Background(), "")
	require.NoError(m, err)
	require.Empty(m, found, "seed %d", seed)
	return generations["all"] - one["all"]
}
