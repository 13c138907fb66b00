package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

// ownBenchmarks are the benchmarks of a whole server, of pricing and of the stores.
const ownBenchmarks = `^Benchmark(Server|Extension|Refund|Parse|Compile|CompileSummed|Evaluate|PlanAndEvaluate|Tally|Explain|` +
	`MemoryTakeFourLimits|Redis|Rules)$`

// turnAgainst is how much processor time a benchmark gets in a turn, besides its set-up.
const turnAgainst = 150 * time.Millisecond

// against compares the benchmarks of the checkout with those of an older commit, by processor time: servers
// that a benchmark starts count with it. It builds the test binaries of both and runs them by turns. A
// benchmark is found by its name, so that it may have moved between packages.
func against(ctx context.Context, e effort, commit string, match *regexp.Regexp) (string, error) {
	now, err := output(ctx, "", "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return "", err
	}
	room, err := os.MkdirTemp("", "against")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(room) }()
	before := filepath.Join(room, "checkout")
	if _, err := output(ctx, "", "git", "clone", "--quiet", "--shared", now, before); err != nil {
		return "", err
	}
	if _, err := output(ctx, before, "git", "checkout", "--quiet", commit); err != nil {
		return "", err
	}
	old, err := ownIn(ctx, before, filepath.Join(room, "old"), match)
	if err != nil {
		return "", err
	}
	current, err := ownIn(ctx, now, filepath.Join(room, "new"), match)
	if err != nil {
		return "", err
	}
	pairs := inBoth(old, current)
	if len(pairs) == 0 {
		return "", fmt.Errorf("no benchmark that matches %q is in both commits", match)
	}
	t := &table{
		title: "Against " + commit,
		note: fmt.Sprintf("Processor time, median of %d rounds; the ratio is formed within a round, the interval is that of "+
			"its median.", e.rounds),
		header: []string{"benchmark", "then", "now", "ratio", "95 %"},
	}
	for _, pair := range pairs {
		fmt.Fprintf(os.Stderr, "\n%s", pair[0].name)
		cells, err := pairCells(ctx, e, pair)
		if err != nil {
			return "", err
		}
		t.add(cells...)
	}
	return t.String(), nil
}

// pairCells returns the cells of one benchmark.
func pairCells(ctx context.Context, e effort, pair [2]ownBenchmark) ([]string, error) {
	n, setUp, err := pair[0].calibrate(ctx, turnAgainst)
	if err != nil {
		return nil, err
	}
	setUpNow, err := pair[1].setUp(ctx)
	if err != nil {
		return nil, err
	}
	outcomes, err := contest(ctx, e, []contender{pair[0].contender("then", n, setUp), pair[1].contender("now", n, setUpNow)})
	if err != nil {
		return nil, err
	}
	then, now := &outcomes[0], &outcomes[1]
	low, high := interval(now.ratios(then, processor))
	return []string{
		pair[0].name, duration(then.median(processor)), duration(now.median(processor)),
		fmt.Sprintf("%.3f", now.ratio(then, processor)), fmt.Sprintf("%.3f–%.3f", low, high),
	}, nil
}

// contender runs the benchmark n times a turn, and leaves out what its set-up takes.
func (b ownBenchmark) contender(name string, n int, setUp time.Duration) contender {
	return contender{name: name, turn: func(ctx context.Context) (sample, error) {
		took, err := b.run(ctx, n)
		var s sample
		s[processor] = max(1, float64(took-setUp)) / float64(n)
		return s, err
	}}
}

// setUp returns the processor time of a run that does nothing more than it must.
func (b ownBenchmark) setUp(ctx context.Context) (time.Duration, error) {
	const runs = 9
	times := make([]float64, runs)
	for i := range times {
		took, err := b.run(ctx, 1)
		if err != nil {
			return 0, err
		}
		times[i] = float64(took)
	}
	return time.Duration(median(times)), nil
}

// calibrate returns how often a turn does it, and what the set-up takes.
func (b ownBenchmark) calibrate(ctx context.Context, turn time.Duration) (n int, setUp time.Duration, err error) {
	if setUp, err = b.setUp(ctx); err != nil {
		return 0, 0, err
	}
	const most = 1 << 30
	for n = 16; ; n *= 4 {
		took, err := b.run(ctx, n)
		if err != nil {
			return 0, 0, err
		}
		if net := took - setUp; net > turn/4 || n >= most {
			return max(1, int(float64(n)*float64(turn)/float64(max(net, 1)))), setUp, nil
		}
	}
}

// interval returns the 95 % interval of the median: the two sorted values between which it lies by the
// binomial distribution, in its normal approximation. Of few values it is all of them.
func interval(values []float64) (low, high float64) {
	sorted := slices.Sorted(slices.Values(values))
	n := float64(len(sorted))
	const normal = 1.96
	rank := int(math.Floor((n - normal*math.Sqrt(n)) / 2))
	rank = max(0, min(rank, len(sorted)-1))
	return sorted[rank], sorted[len(sorted)-1-rank]
}
