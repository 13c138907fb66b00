package overload_test

import (
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/throttle"
)

var (
	all    = flag.Bool("all", false, "measure all laws through a minute of a slow dependency, and not only see that the share moves")
	update = flag.Bool("update", false, "write the table to docs/reports/throttle.md; needs -all")
)

// The times of the measurement. What is measured begins when the share has had time to settle.
const (
	well    = 10 * time.Second
	slow    = 90 * time.Second
	settles = 30 * time.Second
	after   = 75 * time.Second
)

// TestASlowDependencyHasTheFleetShedTheLowestTierFirstAndGiveItBack is the short form of the report: it sees that things happen, and
// measures nothing.
func TestASlowDependencyHasTheFleetShedTheLowestTierFirstAndGiveItBack(t *testing.T) {
	t.Parallel()
	f := newFleet(t, shedShare, redistest.Start(t).Addr)
	crowd := f.ask(t)
	each := func(is func(throttle.Status) bool) func() bool {
		return func() bool {
			return !slices.ContainsFunc(f.throttles, func(one *throttle.Throttle) bool { return !is(one.Status()) })
		}
	}
	require.Eventually(t, each(func(s throttle.Status) bool { return s.Fleet.Fresh == servers }), redistest.Patience, 20*time.Millisecond)
	end := f.dependency.slow()
	began := time.Now()
	ordered := func(s throttle.Status) bool {
		for i := range s.Depth[1:] {
			if s.Depth[i+1] > 0 && s.Depth[i] < 1-1e-9 && s.Age < 3*time.Second {
				return false
			}
		}
		return s.Shed > 0
	}
	require.Eventually(t, each(ordered), redistest.Patience, 20*time.Millisecond)
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(crowd.since(began, time.Now()), func(a answered) bool { return a.shed && a.tier == "free" })
	}, redistest.Patience, 20*time.Millisecond)
	end()
	crowd.stop()
	// Nobody asks any more, and so nothing is late: the share comes back by three per cent a second.
	shed := f.throttles[0].Status().Shed
	require.Eventually(t, each(func(s throttle.Status) bool { return s.Shed < shed }), redistest.Patience, 20*time.Millisecond)
}

// measured is what came of a law.
type measured struct {
	law law
	// p99 is of what was admitted, oscillation the standard deviation of what was admitted in a second as a share of its mean, used the
	// share of what the slow dependency can serve that it served in time, and late the share of seconds whose p99 is above twice the target.
	p99         time.Duration
	oscillation float64
	used, late  float64
	failed      float64
	admitted    map[string]float64
	// back is how long after the end the load was admitted whole again, zero if it never was not.
	back time.Duration
}

func measure(t *testing.T, l law, redisAddr string) measured {
	t.Helper()
	f := newFleet(t, l, redisAddr)
	crowd := f.ask(t)
	<-time.After(well)
	end := f.dependency.slow()
	from := time.Now().Add(settles)
	<-time.After(slow)
	to := time.Now()
	end()
	<-time.After(after)
	crowd.stop()
	crowd.work.Wait()
	m := summary(crowd.since(from, to), from, to)
	m.law = l
	// The last second in which anything was refused.
	for _, a := range crowd.since(to, to.Add(after)) {
		if a.shed {
			m.back = max(m.back, a.at.Sub(to))
		}
	}
	return m
}

// summary is what came of a time.
func summary(some []answered, from, to time.Time) measured {
	m := measured{admitted: map[string]float64{}}
	seconds := int(to.Sub(from) / time.Second)
	admitted := make([]float64, seconds)
	took := make([][]time.Duration, seconds)
	offered, ran := map[string]int{}, map[string]int{}
	var whole []time.Duration
	served, failed, total := 0, 0, 0
	for _, a := range some {
		second := min(int(a.at.Sub(from)/time.Second), seconds-1)
		offered[a.tier]++
		if a.shed {
			continue
		}
		total++
		ran[a.tier]++
		admitted[second]++
		took[second], whole = append(took[second], a.took), append(whole, a.took)
		if a.failed {
			failed++
		} else {
			served++
		}
	}
	for name, n := range offered {
		m.admitted[name] = float64(ran[name]) / float64(n)
	}
	m.p99, m.oscillation = percentile(whole), deviation(admitted)
	m.used = float64(served) / (float64(capacity*slowPlaces/places) * to.Sub(from).Seconds())
	m.failed = float64(failed) / float64(max(total, 1))
	for _, in := range took {
		if percentile(in) > 2*target {
			m.late += 1 / float64(seconds)
		}
	}
	return m
}

// percentile is the 99th, zero of nothing.
func percentile(took []time.Duration) time.Duration {
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[(len(took)-1)*99/100]
}

// deviation is the standard deviation as a share of the mean.
func deviation(values []float64) float64 {
	mean, square := 0.0, 0.0
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		square += (v - mean) * (v - mean) / float64(len(values))
	}
	return math.Sqrt(square) / max(mean, 1)
}

// TestTheTableOfTheReport measures all laws beside each other, so that what else the machine does reaches all of them.
func TestTheTableOfTheReport(t *testing.T) {
	t.Parallel()
	if !*all {
		require.False(t, *update, "-update needs -all")
		return
	}
	redisAddr := redistest.Start(t).Addr
	laws := []law{nothing, shedShare}
	results := make([]measured, len(laws))
	var work sync.WaitGroup
	for i, l := range laws {
		work.Go(func() { results[i] = measure(t, l, redisAddr) })
	}
	work.Wait()
	text := table(results)
	t.Log("\n" + text)
	if *update {
		write(t, text)
	}
}

func table(results []measured) string {
	var text strings.Builder
	text.WriteString("| law | p99 | seconds with a p99 above 400 ms | oscillation | capacity used | failed | free / pro / enterprise admitted | sheds last, after the end |\n|---|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, m := range results {
		fmt.Fprintf(&text, "| %s | %d ms | %.0f %% | %.0f %% | %.0f %% | %.0f %% | %.0f / %.0f / %.0f %% | %.0f s |\n", m.law, m.p99.Milliseconds(), 100*m.late,
			100*m.oscillation, 100*m.used, 100*m.failed, 100*m.admitted["free"], 100*m.admitted["pro"], 100*m.admitted["enterprise"], m.back.Seconds())
	}
	// Of a busy machine all times are longer.
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		fmt.Fprintf(&text, "\nThe load average of the machine was %s at the end.\n", strings.Fields(string(load))[0])
	}
	return text.String()
}

const (
	page  = "../../docs/reports/throttle.md"
	begin = "<!-- table -->\n"
	over  = "<!-- end -->\n"
)

// write puts the table between the marks of the page.
func write(t *testing.T, text string) {
	t.Helper()
	old, err := os.ReadFile(page)
	require.NoError(t, err)
	head, rest, found := strings.Cut(string(old), begin)
	require.True(t, found)
	_, tail, found := strings.Cut(rest, over)
	require.True(t, found)
	require.NoError(t, os.WriteFile(page, []byte(head+begin+text+over+tail), 0o600))
}
