package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// policyOf returns a policy in which everyone has so many points a day, which refill does not bring
// back while a test runs.
func policyOf(points int) string {
	return fmt.Sprintf(`version: 1
default: anonymous
tiers:
  anonymous:
    limits:
      day: {capacity: %d, per: day}
`, points)
}

// writePolicy puts a document in the place of the file, as operators should: by renaming.
func writePolicy(t *testing.T, path, document string) {
	t.Helper()
	fresh := path + ".new"
	require.NoError(t, os.WriteFile(fresh, []byte(document), 0o600))
	require.NoError(t, os.Rename(fresh, path))
}

// pollLimit waits until the limit of the policy has the capacity. Asking for nothing but the name of
// the type costs no points.
func pollLimit(t *testing.T, i *instance, capacity int64) {
	t.Helper()
	poll(t, fmt.Sprintf("a limit of %d", capacity), func() bool {
		got := post(t, i.url, request{key: "demo-free", query: `{ __typename }`})
		got.requireCharged(t, 0)
		return limit(t, got.rateLimit(t), "day").Capacity == capacity
	})
}

func TestAChangedPolicyHoldsWithoutARestart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	writePolicy(t, path, policyOf(1000))
	i := startExample(t, "-policy", path)
	viewer := request{key: "demo-free", query: `{ viewer { login } }`}
	first := post(t, i.url, viewer)
	first.requireCharged(t, 3)
	require.EqualValues(t, 997, limit(t, first.rateLimit(t), "day").Remaining)

	writePolicy(t, path, policyOf(5))
	pollLimit(t, i, 5)
	// What was spent before stays spent: 2 of 5 points are left.
	post(t, i.url, viewer).requireRefused(t, 3)
	expensive := post(t, i.url, request{key: "demo-free", query: search})
	require.Equal(t, http.StatusBadRequest, expensive.status)
	require.Equal(t, ratelimitclient.CodeCostLimitExceeded, expensive.refusal(t).Code)
	require.Contains(t, i.stderr.String(), `policy_applied" revision=2`)
}

func TestABrokenPolicyKeepsTheLastGoodOneAndSaysWhere(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	writePolicy(t, path, policyOf(1000))
	i := startExample(t, "-policy", path)
	viewer := request{key: "demo-free", query: `{ viewer { login } }`}

	writePolicy(t, path, policyOf(-1))
	poll(t, "the error in the log", func() bool {
		return strings.Contains(i.stderr.String(), `policy_refused" revision=2`)
	})
	require.Contains(t, i.stderr.String(), "line 6")
	require.Contains(t, i.stderr.String(), "tiers.anonymous.limits.day.capacity")
	got := post(t, i.url, viewer)
	got.requireCharged(t, 3)
	require.EqualValues(t, 1000, limit(t, got.rateLimit(t), "day").Capacity)

	writePolicy(t, path, policyOf(1000))
	poll(t, "the end of the error in the log", func() bool {
		return strings.Contains(i.stderr.String(), "again=true")
	})
	require.NotContains(t, i.stderr.String(), `policy_applied" revision=2`)

	writePolicy(t, path, policyOf(500))
	pollLimit(t, i, 500)
	require.Equal(t, 1, strings.Count(i.stderr.String(), "policy_refused"), "an error that lasts is said once")
}

func TestAWrongPolicyAtTheStartIsRefusedWithEveryMistake(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	writePolicy(t, path, `version: 1
default: gone
tiers:
  free:
    mode: strict
    limits:
      minute: {capacity: 0, per: minute}
      hour: {capacity: 10, per: fortnight}
tenants:
  demo-free: {tier: fre}
`)
	said := runFails(t, "-policy", path)
	for line, about := range map[int]string{2: "default", 5: "mode", 7: "capacity", 8: "per", 10: "tenants"} {
		mistake := ""
		for text := range strings.Lines(said) {
			if strings.Contains(text, fmt.Sprintf("line %d,", line)) {
				mistake = text
			}
		}
		require.Contains(t, mistake, about, said)
	}
	require.Equal(t, 5, strings.Count(said, "line "), said)
}

func TestAPolicyThatCannotBeReadIsSaidClearly(t *testing.T) {
	t.Parallel()
	absent := filepath.Join(t.TempDir(), "absent.yaml")
	require.Contains(t, runFails(t, "-policy", absent), absent)
	require.Contains(t, runFails(t, "-policy", t.TempDir()), "not a regular file")
}

func TestAPolicyFileIsAsLargeAsTheFlagSays(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	document := policyOf(1000)
	writePolicy(t, path, document+strings.Repeat("#", 1<<20))
	require.Contains(t, runFails(t, "-policy", path), "larger than the 1048576 bytes")
	require.Contains(t, runFails(t, "-policy", path, "-policy-max-bytes", "-1"), "MaxDocument is -1")
	startExample(t, "-policy", path, "-policy-max-bytes", "2097152")
}

func TestUnderAnotherPolicyThePrintedCommandsPromiseNothingOfTheBuiltInOne(t *testing.T) {
	t.Parallel()
	var printed strings.Builder
	printWelcome(&printed, "http://127.0.0.1:1", "")
	require.Contains(t, printed.String(), "# A refusal, 611 points: the same query three times; the last answer is 429")
	printed.Reset()
	printWelcome(&printed, "http://127.0.0.1:1", "p.yaml")
	require.Contains(t, printed.String(), "# What of this is admitted, the policy \"p.yaml\" decides.\n")
	require.Contains(t, printed.String(), "# One query three times, 611 points.\n")
	for _, promised := range []string{"1000 a minute", "429", "charged once", "A refusal"} {
		require.NotContains(t, printed.String(), promised)
	}
	require.Len(t, commandLines(printed.String()), len(commands))
}
