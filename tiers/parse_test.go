package tiers_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

var update = flag.Bool("update", false, "write the golden files anew")

// fixtures returns the documents of a folder of testdata by file name.
func fixtures(t testing.TB, folder, pattern string) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", folder, pattern))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	documents := make(map[string][]byte)
	for _, path := range paths {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		documents[filepath.Base(path)] = data
	}
	return documents
}

func TestEachMistakeIsReportedAsTheGoldenFileSays(t *testing.T) {
	t.Parallel()
	for name, data := range fixtures(t, "invalid", "*.yaml") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := tiers.Parse(data)
			var mistakes *tiers.PolicyError
			require.ErrorAs(t, err, &mistakes)
			if name != "ten_mistakes.yaml" {
				require.Len(t, mistakes.Mistakes, 1, "one failure, one mistake: %v", err)
			}
			golden := filepath.Join("testdata", "invalid", strings.TrimSuffix(name, ".yaml")+".golden")
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(err.Error()+"\n"), 0o600))
			}
			want, readErr := os.ReadFile(golden)
			require.NoError(t, readErr)
			require.Equal(t, string(want), err.Error()+"\n")
		})
	}
}

func TestTenMistakesAreReportedWithTheirLines(t *testing.T) {
	t.Parallel()
	_, err := tiers.Parse(fixtures(t, "invalid", "ten_mistakes.yaml")["ten_mistakes.yaml"])
	var mistakes *tiers.PolicyError
	require.ErrorAs(t, err, &mistakes)
	var lines []int
	for _, mistake := range mistakes.Mistakes {
		lines = append(lines, mistake.Line)
		require.Positive(t, mistake.Column)
		require.NotEmpty(t, mistake.Path)
	}
	require.Equal(t, []int{1, 2, 5, 6, 8, 9, 10, 12, 13, 15}, lines)
}

func TestValidDocumentsComeBackUnchangedFromBothForms(t *testing.T) {
	t.Parallel()
	for name, data := range fixtures(t, "valid", "*") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			policy, err := tiers.Parse(data)
			require.NoError(t, err)
			_, err = tiers.Compile(policy)
			require.NoError(t, err)

			asJSON, err := json.Marshal(policy)
			require.NoError(t, err)
			again, err := tiers.Parse(asJSON)
			require.NoError(t, err)
			require.Equal(t, policy, again)

			asYAML, err := yaml.Marshal(policy)
			require.NoError(t, err)
			again, err = tiers.Parse(asYAML)
			require.NoError(t, err)
			require.Equal(t, policy, again)
		})
	}
}

func TestErrorsRepeatAtMost64CharactersOfTheDocument(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("secret", 100)
	for _, document := range []string{
		"version: 1\ndefault: " + long + "\ntiers: {free: {unlimited: true}}",
		"version: 1\ndefault: free\ntiers: {free: {mode: " + long + ", unlimited: true}}",
		"version: 1\ndefault: free\ntiers: {free: {limits: {minute: {capacity: 1, per: " + long + "}}}}",
		"version: 1\ndefault: free\n" + long + ": 1\ntiers: {free: {unlimited: true}}",
		"version: *" + long,
		"version: 1\ndefault: free\ntiers: {" + long + ": {unlimited: " + long + "}}",
		"version: " + strings.Repeat("9", 600),
	} {
		_, err := tiers.Parse([]byte(document))
		require.Error(t, err)
		require.NotContains(t, err.Error(), long[:maxName+1])
		require.NotContains(t, err.Error(), strings.Repeat("9", 65))
	}
}

func TestALongListOfMistakesIsCutInTheTextOnly(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("version: 1\ndefault: free\ntiers: {free: {unlimited: true}}\n")
	for i := range 250 {
		fmt.Fprintf(&b, "key%d: 1\n", i)
	}
	_, err := tiers.Parse([]byte(b.String()))
	var mistakes *tiers.PolicyError
	require.ErrorAs(t, err, &mistakes)
	require.Len(t, mistakes.Mistakes, 250)
	require.True(t, strings.HasSuffix(err.Error(), "\n  and 150 more"))
}

func TestDocumentsAreBounded(t *testing.T) {
	t.Parallel()
	_, err := tiers.Parse(make([]byte, maxDocument+1))
	require.ErrorContains(t, err, "larger than the 1048576 bytes")

	t.Run("so is the work for one that is all mistakes", func(t *testing.T) {
		t.Parallel()
		var b strings.Builder
		b.WriteString("{version: 1, default: free, tiers: {free: {unlimited: true}}, tenants: {")
		for i := 0; b.Len() < maxDocument-100; i++ {
			fmt.Fprintf(&b, "a%d: {}, b%d: 1, c%d: {d: 1},\n", i, i, i)
		}
		b.WriteString("}}")
		_, err := tiers.Parse([]byte(b.String()))
		var mistakes *tiers.PolicyError
		require.ErrorAs(t, err, &mistakes)
		require.Greater(t, len(mistakes.Mistakes), 50_000)
	})
	t.Run("so is what exceptions multiply to", func(t *testing.T) {
		t.Parallel()
		policy := tiers.Policy{Default: "t0", Tiers: make(map[string]tiers.Tier), Tenants: make(map[string]tiers.Exception)}
		limits := make(map[string]*tiers.Limit)
		for i := range 32 {
			limits[fmt.Sprintf("l%d", i)] = &tiers.Limit{Capacity: 1, Per: tiers.Minute}
		}
		for i := range 32 {
			policy.Tiers[fmt.Sprintf("t%d", i)] = tiers.Tier{Limits: limits}
		}
		for i := range 600 {
			policy.Tenants[fmt.Sprint(i)] = tiers.Exception{MaxCost: int64(i + 1)}
		}
		_, err := tiers.Compile(policy)
		require.ErrorContains(t, err, "tenants: the policy comes to more than 524288 limits")
	})
}

// listing is a document that assigns so many tenants to a tier.
func listing(tenants int) []byte {
	var b strings.Builder
	b.WriteString("version: 1\ndefault: free\ntiers: {free: {maxCost: 1}, pro: {maxCost: 2}}\ntenants:\n")
	for i := range tenants {
		fmt.Fprintf(&b, "  t%06d: {tier: pro}\n", i)
	}
	return []byte(b.String())
}

func TestAHundredThousandTenantsAreReadWhereTheServerPermits(t *testing.T) {
	t.Parallel()
	document := listing(100_000)
	_, err := tiers.Parse(document)
	require.ErrorContains(t, err, "the document is larger than the 1048576 bytes that fit; "+
		"MaxDocument of tiers.ParseConfig or policy.Config permits up to 16777216")
	policy, err := tiers.ParseConfig{MaxDocument: len(document)}.Parse(document)
	require.NoError(t, err)
	require.Len(t, policy.Tenants, 100_000)
	s, err := tiers.Compile(policy)
	require.NoError(t, err)
	require.Equal(t, "pro", s.Rules(tiers.Subject{Tenant: "t099999"}, tiers.Selection{}).Tier)
	require.Equal(t, "free", s.Rules(tiers.Subject{Tenant: "t100000"}, tiers.Selection{}).Tier)
	_, err = tiers.ParseConfig{MaxDocument: len(document) - 1}.Parse(document)
	require.ErrorContains(t, err, fmt.Sprint("larger than the ", len(document)-1, " bytes"))
}

func TestTheBoundOfADocumentHasABound(t *testing.T) {
	t.Parallel()
	for _, most := range []int{-1, 16<<20 + 1} {
		_, err := tiers.ParseConfig{MaxDocument: most}.Parse([]byte("version: 1\ndefault: free\ntiers: {free: {maxCost: 1}}\n"))
		require.EqualError(t, err,
			fmt.Sprintf("tiers: a ParseConfig.MaxDocument of %d bytes; 0 is the default, and at most 16777216 fit", most))
	}
	_, err := tiers.ParseConfig{MaxDocument: 16 << 20}.Parse(make([]byte, 16<<20+1))
	require.EqualError(t, err, "tiers: 1 mistake in the policy:\n  the document is larger than the 16777216 bytes that fit")
}

func TestCompileReportsGoValuesByPath(t *testing.T) {
	t.Parallel()
	_, err := tiers.Compile(tiers.Policy{
		Version: 3,
		Tiers: map[string]tiers.Tier{
			"free": {Limits: map[string]*tiers.Limit{"minute": {Capacity: 1 << 53, Per: tiers.Minute}, "hour": {}}},
		},
		Tenants: map[string]tiers.Exception{"a.b": {Mode: "audit"}},
	})
	require.EqualError(t, err, `tiers: 6 mistakes in the policy:
  version: version 3 is unknown; 1 fits
  default: the default tier is required
  tiers.free.limits.hour.capacity: a capacity of at least 1 is required
  tiers.free.limits.hour.per: a period is required, such as minute
  tiers.free.limits.minute.capacity: without a refill it is the capacity: the refill is 9007199254740992; at most 9007199254740991 fits
  tenants["a.b"].mode: mode "audit" is unknown; off, shadow, warn or enforce fits`)
}

func TestASnapshotSharesNothingWithItsPolicy(t *testing.T) {
	t.Parallel()
	limit := &tiers.Limit{Capacity: 5, Per: tiers.Minute}
	policy := tiers.Policy{Default: "free", Tiers: map[string]tiers.Tier{"free": {Limits: map[string]*tiers.Limit{"minute": limit}}}}
	s, err := tiers.Compile(policy)
	require.NoError(t, err)
	limit.Capacity = 50
	delete(policy.Tiers, "free")
	require.EqualValues(t, 5, s.Rules(tiers.Subject{Tenant: "x"}, tiers.Selection{}).Buckets[0].Limits.All()[0].Capacity)
	require.EqualValues(t, 1, s.Generation())
	require.Same(t, s, s.Snapshot())
}

func FuzzParseNeverPanicsAndItsErrorsAreText(f *testing.F) {
	for _, data := range fixtures(f, "invalid", "*.yaml") {
		f.Add(data)
	}
	for _, data := range fixtures(f, "valid", "*") {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		policy, err := tiers.Parse(data)
		if err != nil {
			require.True(t, utf8.ValidString(err.Error()))
			return
		}
		_, err = tiers.Compile(policy)
		require.NoError(t, err, "what Parse accepts compiles")
	})
}
