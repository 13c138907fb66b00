package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"os/exec"
	"regexp"
	"slices"
	"strconv"

	"golang.org/x/perf/benchfmt"
)

// goAim is a bound on a metric of a benchmark that stands beside the code it measures.
type goAim struct {
	what, benchmark, unit string
	bound                 float64
	show                  func(float64) string
	// per is the benchmark whose value divides this one, empty where the value itself has the bound.
	per string
}

// nanoseconds shows a time that benchfmt has made seconds.
func nanoseconds(seconds float64) string { return duration(seconds * 1e9) }

// memoryTake is the benchmark of the usual decision.
const memoryTake = "DecisionsInMemory/**ratelimit,_4_limits**/one_tenant"

var goAims = []goAim{
	{what: "memory store with 1 000 000 tenants: memory of a tenant", benchmark: "MemoryTenants/1000000", unit: "B/tenant", bound: 128, show: inBytes},
	{what: "the same: processor time of a collection of garbage", benchmark: "MemoryTenants/1000000", unit: "cpu-ms/GC", bound: 10, show: millis},
	{what: "memory store, 4 limits, one caller and one tenant", benchmark: memoryTake, unit: "sec/op", bound: 150e-9, show: nanoseconds},
	{what: "the same: allocations", benchmark: memoryTake, unit: "allocs/op", show: digits},
	{what: "policy of 100 000 tenants: compiling", benchmark: "CompileAHundredThousandTenants", unit: "sec/op", bound: 1, show: nanoseconds},
	{what: "policy of 100 000 tenants: a look-up", benchmark: "RulesOfAHundredThousandTenants/any", unit: "sec/op", bound: 200e-9, show: nanoseconds},
	{what: "warm price: 160 fields with variables", benchmark: "Evaluate/shared_variables", unit: "sec/op", bound: 300e-9, show: nanoseconds},
	{what: "the same: allocations", benchmark: "Evaluate/shared_variables", unit: "allocs/op", show: digits},
	{what: "cold price ÷ parsing: 160 fields with variables", benchmark: "Pricing/160_fields_with_variables/ratelimit_cold", unit: "x/parse", bound: 1, show: times},
	{what: "cold price ÷ parsing: 2 000 tokens", benchmark: "Pricing/2,000_tokens_with_variables/ratelimit_cold", unit: "x/parse", bound: 1, show: times},
	{what: "cold price ÷ parsing: a small document", benchmark: "Pricing/small/ratelimit_cold", unit: "x/parse", bound: 1, show: times},
	{
		what: "nesting of ten times the depth ÷ the depth, compiled", benchmark: "Hostile/nested_fields/400", per: "Hostile/nested_fields/40",
		unit: "sec/op", bound: 11, show: times,
	},
}

// goPackages are the folders, from here, whose benchmarks the aims are about, and which benchmarks these are.
var goPackages = []struct{ dir, match string }{
	{"../../bucket", "^BenchmarkMemoryTenants$"},
	{"../../tiers", "^Benchmark(RulesOf|Compile)AHundredThousandTenants$"},
	{"../../cost", "^BenchmarkEvaluate$|^BenchmarkHostile$/^nested_fields$"},
	{".", "^Benchmark(Pricing|DecisionsInMemory)$"},
}

// goBenchmarks runs benchmarks that stand beside the code, and shows the medians of all rounds.
func goBenchmarks(ctx context.Context, e effort) (*findings, error) {
	values := map[string]map[string][]float64{}
	for _, p := range goPackages {
		command := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", p.match, //nolint:gosec // all is written above
			"-benchtime", e.benchtime, "-count", strconv.Itoa(e.rounds), "-timeout", "60m", ".")
		command.Dir = p.dir
		text, err := command.CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("%s: %w: %s", p.dir, err, text)
		}
		if err := readBenchmarks(bytes.NewReader(text), values); err != nil {
			return nil, err
		}
	}
	found := &findings{tables: []*table{goTable(values)}}
	for _, a := range goAims {
		reached := median(values[a.benchmark][a.unit])
		if a.per != "" {
			reached /= median(values[a.per][a.unit])
		}
		if len(values[a.benchmark][a.unit]) == 0 || math.IsNaN(reached) {
			return nil, fmt.Errorf("no benchmark %s reports %s", a.benchmark, a.unit)
		}
		found.aims = append(found.aims, atMost(a.what, a.bound, reached, a.show))
	}
	return found, nil
}

// processors is the end of the name of a benchmark, which says how many there are.
var processors = regexp.MustCompile(`-\d+$`)

// readBenchmarks adds the values of each benchmark, by its name and the unit.
func readBenchmarks(text io.Reader, values map[string]map[string][]float64) error {
	reader := benchfmt.NewReader(text, "go test")
	for reader.Scan() {
		result, ok := reader.Result().(*benchfmt.Result)
		if !ok {
			continue
		}
		name := processors.ReplaceAllString(string(result.Name.Full()), "")
		if values[name] == nil {
			values[name] = map[string][]float64{}
		}
		for _, v := range result.Values {
			values[name][v.Unit] = append(values[name][v.Unit], v.Value)
		}
	}
	return reader.Err()
}

// goTable shows the medians of what every benchmark reports.
func goTable(values map[string]map[string][]float64) *table {
	t := &table{title: "Benchmarks beside the code", note: "Medians of all rounds, on the clock.", header: []string{"", "time", "allocations", "× parsing"}}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		of := values[name]
		ratio := "–"
		if parses := of["x/parse"]; len(parses) > 0 {
			ratio = digits(median(parses))
		}
		t.add(name, nanoseconds(median(of["sec/op"])), digits(median(of["allocs/op"])), ratio)
	}
	return t
}
