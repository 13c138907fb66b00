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
	// points are what tenants have used, and decided what instances have told that they have decided.
	points  map[string]int64
	decided map[string]int64
	// added is what those count who add what is new since they read last.
	added    atomic.Int64
	receipts []receipt
	// untold are hours of tenants that an instance has to tell.
	untold map[usage.Counted]bool
	// instances are how many decisions each instance has made in each minute, since it was started.
	instances []*instance
	rounds    []collect.Round
}

type receipt struct {
	taken  bucket.Receipt
	claim  *idempotency.Claim
	tenant string
	at     time.Time
	points int64
}

type instance struct {
	name     string
	boot     int
	decided  map[usage.Decisions]int64
	untold   map[usage.Decisions]bool
	lastTold map[usage.Decisions]int64
}

func (i *instance) start() {
	i.boot++
	i.decided, i.untold, i.lastTold = map[usage.Decisions]int64{}, map[usage.Decisions]bool{}, map[usage.Decisions]int64{}
}

func newModel(s *scene, seed uint64) *model {
	m := &model{
		scene: s, Rand: rand.New(rand.NewPCG(seed, 1)), faults: &faults{Rand: rand.New(rand.NewPCG(seed, 2)), share: 4},
		points: map[string]int64{}, decided: map[string]int64{}, untold: map[usage.Counted]bool{},
	}
	for i := range 2 {
		one := &instance{name: fmt.Sprint("api-", i)}
		one.start()
		m.instances = append(m.instances, one)
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
		m.decide()
	case 6:
		m.tellAll()
	case 7, 8:
		m.collect()
	case 9:
		// A daemon is killed, and started anew.
		m.rounds[m.IntN(len(m.rounds))] = m.start()
	case 10:
		if m.IntN(4) == 0 {
			m.instances[m.IntN(len(m.instances))].start()
			m.untold = map[usage.Counted]bool{}
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
		m.receipts = append(m.receipts, receipt{result.Receipt, take.Claim, tenant, m.clock.now(), n})
		m.untold[usage.Counted{Tenant: tenant, Hour: m.clock.now().Truncate(time.Hour)}] = true
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
		m.untold[usage.Counted{Tenant: r.tenant, Hour: r.at.Truncate(time.Hour)}] = true
	}
}

// decide has an instance decide something.
func (m *model) decide() {
	i := m.instances[m.IntN(len(m.instances))]
	at := m.clock.now().Truncate(time.Minute)
	for _, d := range []usage.Decisions{{Tenant: "acme", Minute: at}, {Tenant: "acme", Minute: at, By: usage.ByOperation, Name: "Query.search"}} {
		i.decided[d]++
		i.untold[d] = true
	}
}

// tellAll has instances tell what they have counted, some of it for the second time.
func (m *model) tellAll() {
	batch := usage.Batch{}
	for c := range m.untold {
		if m.IntN(10) > 0 {
			batch.Counted = append(batch.Counted, c)
		}
	}
	m.untold = map[usage.Counted]bool{}
	m.budget.Tell(m.clock.now(), "api-0", "0", batch)
	for _, i := range m.instances {
		batch := usage.Batch{}
		minutes := map[time.Time]bool{}
		for d := range i.untold {
			minutes[d.Minute] = true
		}
		// A report has everything of a tenant and minute.
		for d, n := range i.decided {
			if !minutes[d.Minute] {
				continue
			}
			m.decided[d.By.String()] += n - i.lastTold[d]
			i.lastTold[d] = n
			d.Numbers = usage.Numbers{Refused: n, WouldRefuse: 2 * n}
			batch.Decisions = append(batch.Decisions, d)
		}
		i.untold = map[usage.Decisions]bool{}
		m.budget.Tell(m.clock.now(), i.name, fmt.Sprint(i.boot), batch)
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
			case 0, 1, 2, 3:
				_ = r.ReadMinutes(ctx)
			case 4:
				_ = r.Search(ctx)
			case 5, 6:
				_ = r.RollUp(ctx, m.clock.now())
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
			for _, r := range m.rounds {
				for r.Keep(t.Context()) != nil {
					continue
				}
			}
			for range 900 {
				m.step()
			}
			m.tellAll()
			// Two minutes later everything was told in full.
			m.clock.advance(2 * time.Minute)
			m.scene.settle()
			m.clock.advance(3 * time.Hour)
			m.scene.settle()
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

// requireTruth holds that the database has what was used and decided, in each level. It returns what one row for all generations has less.
func (m *model) requireTruth(total int64, seed uint64) (lost int64) {
	points := " FROM %s WHERE field = " + m.literal("") + " AND unit = " + m.literal("points")
	for _, table := range []string{"usage_minute", "usage_hour", "usage_day", "usage_month"} {
		is := m.sums(fmt.Sprintf("SELECT 'net', charged - given_back"+points, table))
		require.Equal(m, total, is["net"], "seed %d: %s", seed, table)
	}
	generations := m.sums(fmt.Sprintf("SELECT 'all', charged"+points, "usage_minute"))
	one := m.sums("SELECT 'all', n FROM (SELECT max(charged) AS n" + fmt.Sprintf(points, "usage_minute") + " GROUP BY tenant, minute, grade) AS largest")
	for _, table := range []string{"decision_minute", "decision_hour", "decision_day", "decision_month"} {
		require.Equal(m, m.decided, m.sums("SELECT dimension, refused FROM "+table), "seed %d: %s", seed, table)
	}
	// Everything that is over is forgotten in the store of budgets.
	found, _, err := m.budget.Found(context.Background(), "")
	require.NoError(m, err)
	require.Empty(m, found, "seed %d", seed)
	return generations["all"] - one["all"]
}
