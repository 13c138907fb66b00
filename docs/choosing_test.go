package docs_test

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimittest"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

var update = flag.Bool("update", false, "write what was measured, and the policies, into docs/guide/choosing.md")

// policy reads one of the policies of the page.
func policy(t *testing.T, file string) (*tiers.Snapshot, string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	document, err := tiers.Parse(text)
	require.NoError(t, err)
	snapshot, err := tiers.Compile(document)
	require.NoError(t, err)
	require.Empty(t, snapshot.Warnings(), file)
	return snapshot, string(text)
}

// requirePart checks that a part of docs/guide/choosing.md has the text, or writes it there.
func requirePart(t *testing.T, part, text string) {
	t.Helper()
	const file = "guide/choosing.md"
	page, err := os.ReadFile(file)
	require.NoError(t, err)
	head, rest, found := strings.Cut(string(page), "<!-- "+part+" -->\n")
	require.True(t, found, part)
	was, tail, found := strings.Cut(rest, "<!-- end -->\n")
	require.True(t, found, part)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(head+"<!-- "+part+" -->\n"+text+"<!-- end -->\n"+tail), 0o600))
		return
	}
	require.Equal(t, text, was, "run with -update, and read what changed")
}

func TestThePageOnChoosingShowsThePoliciesThatCompile(t *testing.T) { //nolint:paralleltest // it may write the page
	paths, err := filepath.Glob("guide/policies/*.yaml")
	require.NoError(t, err)
	require.Len(t, paths, 13)
	for _, file := range paths {
		_, text := policy(t, file)
		requirePart(t, filepath.Base(file), "```yaml\n"+text+"```\n")
	}
}

// callers are ways to get as much as possible, as how often they ask in a second: all the time, and once at the
// start and then not before the window that this may have opened ends.
var callers = []func(second int) int{
	func(int) int { return math.MaxInt },
	func(second int) int {
		switch {
		case second == 0:
			return 1
		case second < 3599:
			return 0
		}
		return math.MaxInt
	},
}

// admitted returns what a tier admits in each second of four hours, to a caller who asks for one request after another.
func admitted(t *testing.T, snapshot *tiers.Snapshot, tier string, asks func(second int) int) []int {
	t.Helper()
	clock := &ratelimittest.Clock{}
	store := bucket.NewMemory(bucket.MemoryConfig{Clock: clock.Now})
	subject := tiers.Subject{Tenant: "acme", Tier: tier}
	take := bucket.Take{
		Tenant: "acme", Buckets: snapshot.Rules(subject, tiers.Selection{}).Buckets, Amounts: bucket.Amounts{{Unit: bucket.Requests, N: 1}},
	}
	each := make([]int, 4*3600)
	for second := range each {
		for range asks(second) {
			result, err := store.Take(t.Context(), take)
			require.NoError(t, err)
			if result.Verdict != bucket.Admitted {
				break
			}
			each[second]++
		}
		clock.Advance(time.Second)
	}
	return each
}

// most returns the largest sum of so many seconds in a row.
func most(each []int, seconds int) int {
	best, sum := 0, 0
	for i, n := range each {
		sum += n
		if i >= seconds {
			sum -= each[i-seconds]
		}
		best = max(best, sum)
	}
	return best
}

// next returns how many seconds after the first one something is admitted again.
func next(each []int) int {
	for i, n := range each[1:] {
		if n > 0 {
			return i + 1
		}
	}
	return len(each)
}

func TestThePageOnChoosingSaysWhatAlgorithmsAdmit(t *testing.T) { //nolint:paralleltest // it may write the page
	snapshot, _ := policy(t, "guide/policies/algorithms.yaml")
	table := "| algorithm | at once | in two seconds | in an hour | next one after a burst |\n|---|---:|---:|---:|---:|\n"
	for _, tier := range []string{"token-bucket", "leaky-bucket", "fixed-window", "sliding-window", "calendar-hour"} {
		var once, two, hour int
		for _, asks := range callers {
			each := admitted(t, snapshot, tier, asks)
			once, two, hour = max(once, most(each, 1)), max(two, most(each, 2)), max(hour, most(each, 3600))
		}
		after := time.Duration(next(admitted(t, snapshot, tier, callers[0]))) * time.Second
		table += fmt.Sprintf("| %s | %d | %d | %d | %s |\n", strings.ReplaceAll(tier, "-", " "), once, two, hour, after)
	}
	requirePart(t, "algorithms", table)
}
