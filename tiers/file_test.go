package tiers_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// policyOf returns a document whose default tier has the maximum cost.
func policyOf(maxCost string) string {
	return "version: 1\ndefault: free\ntiers: {free: {maxCost: " + maxCost + "}}\n"
}

// replace puts a new file in the place of the old one, as deployments do.
func replace(t testing.TB, path, document string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path+".new", []byte(document), 0o600))
	require.NoError(t, os.Rename(path+".new", path))
}

func maxCostOf(source tiers.Source) int64 {
	return source.Snapshot().Rules(tiers.Subject{Tenant: "x"}, tiers.Selection{}).MaxCost.Enforce
}

// reload is one call of OnReload.
type reload struct {
	generation uint64
	failed     bool
}

func TestAFileIsFollowedWithoutARestart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	replace(t, path, policyOf("100"))
	// The bubble also fails the test if a goroutine outlives Close.
	synctest.Test(t, func(t *testing.T) {
		var reloads []reload
		file, err := tiers.OpenFile(path, tiers.FileConfig{OnReload: func(s *tiers.Snapshot, err error) {
			reloads = append(reloads, reload{s.Generation(), err != nil})
		}})
		require.NoError(t, err)
		next := func() {
			time.Sleep(defaultInterval) //nolint:forbidigo // In a synctest bubble: no time passes.
			synctest.Wait()
		}
		next()
		require.EqualValues(t, 100, maxCostOf(file))
		require.Empty(t, reloads, "nothing changed")

		replace(t, path, policyOf("200"))
		next()
		next()
		require.EqualValues(t, 200, maxCostOf(file))

		replace(t, path, policyOf("many"))
		for range 4 {
			next()
		}
		require.EqualValues(t, 200, maxCostOf(file), "the last good policy stays")

		require.NoError(t, os.Remove(path))
		next()
		require.EqualValues(t, 200, maxCostOf(file))

		replace(t, path, policyOf("200"))
		next()
		replace(t, path, policyOf("300"))
		next()
		next()
		require.EqualValues(t, 300, maxCostOf(file))
		require.Equal(t, []reload{{2, false}, {2, true}, {2, true}, {2, false}, {3, false}}, reloads)

		require.NoError(t, file.Close())
		require.NoError(t, file.Close())
		replace(t, path, policyOf("400"))
		next()
		next()
		require.EqualValues(t, 300, maxCostOf(file), "a closed file is followed no more")
		require.NoError(t, file.Reload())
		require.EqualValues(t, 400, maxCostOf(file))
	})
}

// blocking ends with the exception that a part of it, which is a valid document as well, lacks.
const blocking = `version: 1
default: free
tiers:
  free: {maxCost: 100}
  banned: {blocked: true}
tenants:
  abuser: {tier: banned}
`

func TestAFileThatIsHalfWrittenIsNotThePolicy(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write := func(document string) {
		t.Helper()
		require.NoError(t, os.WriteFile(path, []byte(document), 0o600))
	}
	half, _, found := strings.Cut(blocking, "tenants:")
	require.True(t, found)
	_, err := tiers.Parse([]byte(half))
	require.NoError(t, err, "the half is a valid document")
	write(blocking)
	synctest.Test(t, func(t *testing.T) {
		told := make(chan error, 8)
		file, err := tiers.OpenFile(path, tiers.FileConfig{OnReload: func(_ *tiers.Snapshot, err error) {
			told <- err
		}})
		require.NoError(t, err)
		defer func() { require.NoError(t, file.Close()) }()
		next := func() {
			time.Sleep(defaultInterval) //nolint:forbidigo // In a synctest bubble: no time passes.
			synctest.Wait()
		}
		blocked := func() bool { return file.Snapshot().Rules(tiers.Subject{Tenant: "abuser"}, tiers.Selection{}).Blocked }
		changed := blocking + "  globex: {tier: free}\n"

		// A writer that is slow, and seen at it each time.
		for _, part := range []string{"", half[:20], half, blocking[:len(blocking)-3]} {
			write(part)
			next()
			require.True(t, blocked(), "after %q", part)
		}
		write(changed)
		next()
		require.Empty(t, told, "what is half written is no mistake either")
		next()
		require.Len(t, told, 1)
		require.NoError(t, <-told)
		require.True(t, blocked())

		// Looks that are equal count only in a row.
		for _, other := range []string{changed, blocking} {
			write(half)
			next()
			write(other)
			next()
		}
		write(half)
		next()
		require.NoError(t, os.Remove(path))
		next()
		write(half)
		next()
		require.True(t, blocked())

		// What stays is the policy, however it came to be.
		next()
		require.False(t, blocked())
	})
}

func TestOnReloadIsToldOnceThatAFailureIsOver(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	replace(t, path, policyOf("100"))
	var reloads []reload
	file, err := tiers.OpenFile(path, tiers.FileConfig{Interval: -1, OnReload: func(s *tiers.Snapshot, err error) {
		reloads = append(reloads, reload{s.Generation(), err != nil})
	}})
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	for range 2 {
		replace(t, path, policyOf("many"))
		for range 2 {
			require.Error(t, file.Reload())
		}
		replace(t, path, policyOf("100"))
		for range 2 {
			require.NoError(t, file.Reload())
		}
	}
	require.Equal(t, []reload{{1, true}, {1, false}, {1, true}, {1, false}}, reloads)
}

func TestReloadTakesTheFileAsItIs(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	replace(t, path, policyOf("100"))
	file, err := tiers.OpenFile(path, tiers.FileConfig{Interval: -1})
	require.NoError(t, err)
	replace(t, path, policyOf("200"))
	require.NoError(t, file.Reload())
	require.EqualValues(t, 200, maxCostOf(file), "at the first look")
	require.NoError(t, file.Close())
}

func TestReloadReturnsWhyAFileDoesNotLoad(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	replace(t, path, policyOf("100"))
	file, err := tiers.OpenFile(path, tiers.FileConfig{Interval: -1})
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()

	replace(t, path, policyOf("-1"))
	var mistakes *tiers.PolicyError
	for range 2 {
		require.ErrorAs(t, file.Reload(), &mistakes, "each time, not only the first")
		require.Equal(t, 3, mistakes.Mistakes[0].Line)
	}
	require.NoError(t, os.Remove(path))
	require.ErrorIs(t, file.Reload(), os.ErrNotExist)
	replace(t, path, string(make([]byte, maxDocument+1)))
	require.ErrorAs(t, file.Reload(), &mistakes)
	require.EqualValues(t, 1, file.Snapshot().Generation())
}

func TestAFileMustBeGoodAtFirst(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	_, err := tiers.OpenFile(filepath.Join(folder, "missing.yaml"), tiers.FileConfig{})
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = tiers.OpenFile(folder, tiers.FileConfig{})
	require.ErrorContains(t, err, "not a regular file")

	path := filepath.Join(folder, "policy.yaml")
	replace(t, path, "version: 1\n")
	_, err = tiers.OpenFile(path, tiers.FileConfig{})
	var mistakes *tiers.PolicyError
	require.ErrorAs(t, err, &mistakes)
}

func TestLookupsSeeWholePoliciesWhileAFileIsReloaded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	replace(t, path, policyOf("1"))
	file, err := tiers.OpenFile(path, tiers.FileConfig{Interval: -1})
	require.NoError(t, err)
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			var last uint64
			for {
				select {
				case <-done:
					return
				default:
				}
				s := file.Snapshot()
				if s.Generation() < last || maxCostOf(s) != int64(2-s.Generation()%2) && s.Generation() != 1 {
					t.Errorf("generation %d after %d has maximum cost %d", s.Generation(), last, maxCostOf(s))
					return
				}
				last = s.Generation()
			}
		})
	}
	// Even generations cost 2, odd ones 1.
	for i := range 50 {
		replace(t, path, policyOf([]string{"2", "1"}[i%2]))
		require.NoError(t, file.Reload())
	}
	close(done)
	readers.Wait()
	require.EqualValues(t, 51, file.Snapshot().Generation())
	require.NoError(t, file.Close())
}
