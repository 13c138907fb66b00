//go:build long

package leasetest_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

func TestBackstopIsUsedWhole(t *testing.T) {
	fl, points := newWallFleet(t)
	from, before := fl.clock.after(), calls(t, fl.server.Addr)
	begun := operations(fl.count())
	for move := range 2 {
		fl.load(points, onOne(1+2*move))
		pass(moveEvery)
	}
	asked := calls(t, fl.server.Addr) - before
	t.Logf("%d calls for %d operations", asked, operations(fl.count())-begun)
	v := fl.judgeWall(from)
	require.Greater(t, v.all.used(), 99.0)
	require.Greater(t, v.operation.used(), 99.0)
}

func TestBackstopHoldsUnderFaults(t *testing.T) {
	fl, _ := newWallFleet(t)
	from := fl.clock.after()
	t.Log(fl.breaks(newRandom(fl.Seed), *faultTime))
	pass(time.Second)
	v := fl.judgeWall(from)
	require.Greater(t, v.all.used(), 30.0, "they go on serving")
}

func TestBlockReachesEveryInstance(t *testing.T) {
	reached := blockEach(t, 8)
	t.Logf("blocks reached the last of %d instances after %v in the middle, and %v at most", fleetSize, reached[len(reached)/2], reached[len(reached)-1])
}

// A clock that is behind brings nothing back, and one that is right again no more than what has passed. Nobody takes back what somebody still holds: an end
// of a lease by the clock that was behind is too early, but the other one has to be silent for a lease as well, by a clock that does not step.
func TestRedisClockStepsBackAndOn(t *testing.T) {
	v, times := backAndOn(t, *faultTime)
	require.NotZero(t, times)
	require.LessOrEqual(t, v.over, v.inexact)
}

// The store takes half a minute for passed that has not, which fills what nobody holds. Nothing is taken back from those who hold the rest.
func TestRedisClockStepsOn(t *testing.T) {
	v := onlyOn(t)
	require.LessOrEqual(t, v.over, 20_000+v.inexact)
}

func TestLimitHoldsUnderFaults(t *testing.T) {
	v := ordinaryFaults(t)
	require.LessOrEqual(t, v.over, v.inexact)
	require.Greater(t, v.used(), 30.0, "they go on serving")
}

func TestStoppedProcessAdmitsNothingAfterItsLease(t *testing.T) {
	fl := newFleet(t, redistest.Start(t), ordinary(t), false)
	fl.load(0.8*float64(fl.Refill), even())
	pass(1500 * time.Millisecond)
	for i := range 3 {
		p := fl.all[i]
		fl.proxies[i].Cut()
		p.tell(tellStop)
		require.Eventually(t, func() bool { return isStopped(t, p.command.Process.Pid) }, patience, time.Millisecond)
	}
	stopped := fl.clock.after()
	pass(mostStopped)
	for i := range 3 {
		fl.signal(i, syscall.SIGCONT)
	}
	// Calls that nobody answers take a while.
	pass(leaseLength)
	healed := fl.clock.before()
	for i := range 3 {
		fl.proxies[i].Heal()
	}
	pass(500 * time.Millisecond)
	v := fl.inexact()
	all := fl.finish()
	across := 0
	for i, path := range fl.ledgers[:3] {
		since := 0
		for _, o := range readLedger(t, path) {
			switch {
			case o.after < stopped+int64(leaseLength) || o.after >= healed:
			case o.is == admitted:
				t.Errorf("instance %d has admitted %d points after its lease: %+v", i, o.cost, o)
			case o.before <= stopped:
				across++
			default:
				since++
			}
		}
		t.Logf("instance %d: %d operations were decided afterwards", i, since)
	}
	require.GreaterOrEqual(t, across, 3, "an operation of each was on its way while it stood still")
	require.LessOrEqual(t, fl.budget().excess(all), v)
}

func TestFailoverExceedsOnlyByItsLag(t *testing.T) {
	v, most := failOver(t, ordinary(t), 300*time.Millisecond)
	t.Logf("at most %d", most)
	require.LessOrEqual(t, v.over, most+v.inexact)
}

func TestRedisThatLostEverything(t *testing.T) {
	v := loseAll(t, ordinary(t))
	// A bucket that is full again, and what was held: its level, and what comes back to it during a lease.
	require.LessOrEqual(t, v.over, 20_000+20_000+2*20_000+v.inexact)
	require.Positive(t, v.over, "what is measured would be seen")
}

// A short run measures one row of the first table, and judges nothing but the limit.
func TestReportTables(t *testing.T) {
	if !*all {
		of := setting{Kind: leased, Seed: seed(t), Capacity: 20_000, Refill: 20_000, Costs: mixed}
		v, reached := shapes[1].run(t, of, 1.5, 2*time.Second)
		t.Logf("%.0f decisions a second", reached)
		require.LessOrEqual(t, v.over, v.inexact)
		return
	}
	for _, table := range tables {
		t.Run(table.name, func(t *testing.T) { writeTable(t, table.name, table.measure(t)) })
	}
}
