package usage_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/digest"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
)

// row is what tells decisions from others.
type row struct {
	tenant string
	minute int64
	by     usage.Dimension
	name   string
}

func rowOf(d *usage.Decisions) row { return row{d.Tenant, d.Minute.Unix() / 60, d.By, d.Name} }

// table is what is kept of reports: the larger one of two numbers of a row.
type table map[row]usage.Numbers

func (to table) keep(batch *usage.Batch) {
	for i := range batch.Decisions {
		d := &batch.Decisions[i]
		was := to[rowOf(d)]
		to[rowOf(d)] = usage.Numbers{
			Admitted: max(was.Admitted, d.Admitted), Refused: max(was.Refused, d.Refused),
			WouldRefuse: max(was.WouldRefuse, d.WouldRefuse), Points: max(was.Points, d.Points),
		}
	}
}

// add adds numbers to one row.
func (to table) add(of row, n usage.Numbers) {
	was := to[of]
	to[of] = usage.Numbers{
		Admitted: was.Admitted + n.Admitted, Refused: was.Refused + n.Refused, WouldRefuse: was.WouldRefuse + n.WouldRefuse, Points: was.Points + n.Points,
	}
}

// sum adds up the rows of a dimension.
func (to table) sum(by usage.Dimension) (n usage.Numbers) {
	all := table{}
	for of, numbers := range to {
		if of.by == by {
			all.add(row{}, numbers)
		}
	}
	return all[row{}]
}

// network is what happens to batches on their way.
type network struct {
	*rand.Rand
	kept table
	// naive adds up what came since the batch before, as who sends differences does. before is what was sent last.
	naive, before table
	late          []usage.Batch
}

// send sends a batch, and reports whether its sender knows that it has come.
func (n *network) send(batch usage.Batch) (known bool) {
	differences := table{}
	for i := range batch.Decisions {
		d := &batch.Decisions[i]
		was := n.before[rowOf(d)]
		differences[rowOf(d)] = usage.Numbers{
			Admitted: d.Admitted - was.Admitted, Refused: d.Refused - was.Refused, WouldRefuse: d.WouldRefuse - was.WouldRefuse, Points: d.Points - was.Points,
		}
		n.before[rowOf(d)] = d.Numbers
	}
	comes := func() {
		n.kept.keep(&batch)
		for of, numbers := range differences {
			n.naive.add(of, numbers)
		}
	}
	switch n.IntN(6) {
	case 0:
		return false
	case 1:
		comes()
		return false
	case 2:
		comes()
		comes()
		return true
	case 3:
		n.late = append(n.late, batch)
		return false
	case 4:
		for i := range n.late {
			n.kept.keep(&n.late[i])
		}
		fallthrough
	default:
		comes()
		return true
	}
}

func TestWhatIsLostRepeatedOrLateChangesNothingAndWhoAddsDifferencesIsWrong(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		random := rand.New(rand.NewPCG(seed, 7))
		r := recorder(t, usage.RecorderConfig{Users: digest.Plain})
		net := &network{Rand: random, kept: table{}, naive: table{}, before: table{}}
		truth, now := table{}, noon
		for second := range 600 {
			for range random.IntN(8) {
				tenant, user, field := fmt.Sprint("tenant-", random.IntN(5)), fmt.Sprint("user-", random.IntN(3)), fmt.Sprint("Query.f", random.IntN(4))
				v, n := admitted(now, tenant, user, field, 3), usage.Numbers{Admitted: 1, Points: 3}
				limit := ""
				switch random.IntN(4) {
				case 0:
					v.Refused, v.Outcome, v.Level, v.Limit, limit, n = true, "limited", "user", "minute", "user:minute", usage.Numbers{Refused: 1}
				case 1:
					v.WouldRefuse, v.Because, limit, n.WouldRefuse = true, "too_expensive", "too_expensive", 1
				}
				r.Count(v)
				minute := now.Unix() / 60
				truth.add(row{tenant, minute, usage.ByTenant, ""}, n)
				truth.add(row{tenant, minute, usage.ByUser, user}, n)
				truth.add(row{tenant, minute, usage.ByOperation, field}, n)
				if limit != "" {
					truth.add(row{tenant, minute, usage.ByLimit, limit}, n)
				}
			}
			now = now.Add(time.Second)
			if net.send(r.Collect(now, now)) {
				r.Stored()
			}
			for of, n := range net.kept {
				if n.Admitted > truth[of].Admitted || n.Points > truth[of].Points {
					t.Fatalf("seed %d, second %d: %+v is told, which did not happen", seed, second, of)
				}
			}
		}
		// What is told until it stands is there in the end.
		last := r.Collect(now, now)
		net.kept.keep(&last)
		require.Equal(t, truth, net.kept, "seed %d", seed)
		require.NotEqual(t, truth, net.naive, "seed %d", seed)
		require.NotEqual(t, truth.sum(usage.ByTenant), net.naive.sum(usage.ByTenant), "seed %d", seed)
	}
}

func TestAProcessThatIsKilledLosesWhatItHasCountedSinceItToldLast(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 1))
	now, lost := noon, int64(0)
	for boot := range 50 {
		r, kept, truth, since := recorder(t, usage.RecorderConfig{}), table{}, int64(0), int64(0)
		for range 1 + random.IntN(100) {
			now = now.Add(time.Second)
			batch := r.Collect(now, now)
			kept.keep(&batch)
			// Whether or not it hears that it stands.
			if random.IntN(2) == 0 {
				r.Stored()
			}
			since = int64(random.IntN(5))
			for range since {
				r.Count(admitted(now, "acme", "mira", "Query.search", 1))
			}
			truth += since
		}
		require.Equal(t, truth-since, kept.sum(usage.ByTenant).Admitted, "boot %d", boot)
		lost += since
	}
	require.Positive(t, lost)
}
