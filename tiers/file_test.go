package tiers_test

import (
	"os"
	"path/filepath"
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
	return source.Snapshot().Rules(tiers.Subject{Tenant: "x"}, nil).MaxCost
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
		file, err := tiers.OpenFile(path, tiers.FileOptions{OnReload: func(s *tiers.Snapshot, err error) {
			reloads = append(reloads, reload{s.Generation(), err != nil})
		}})
		require.NoError(t, err)
		next := func() {
			time.Sleep(tiers.DefaultInterval) //nolint:forbidigo // In a synctest bubble: no time passes.
			synctest.Wait()
		}
		next()
		require.EqualValues(t, 100, maxCostOf(file))
		require.Empty(t, reloads, "nothing changed")

		replace(t, path, policyOf("200"))
		next()
		require.EqualValues(t, 200, maxCostOf(file))

		replace(t, path, policyOf("many"))
		next()
		next()
		require.EqualValues(t, 200, maxCostOf(file), "the last good policy stays")

		require.NoError(t, os.Remove(path))
		next()
		require.EqualValues(t, 200, maxCostOf(file))

		replace(t, path, policyOf("200"))
		next()
		replace(t, path, policyOf("300"))
		next()
		require.EqualValues(t, 300, maxCostOf(file))
		require.Equal(t, []reload{{2, false}, {2, true}, {2, true}, {3, false}}, reloads)

		require.NoError(t, file.Close())
		require.NoError(t, file.Close())
		replace(t, path, policyOf("400"))
		next()
		require.EqualValues(t, 300, maxCostOf(file), "a closed file is followed no more")
		require.NoError(t, file.Reload())
		require.EqualValues(t, 400, maxCostOf(file))
	})
}

func TestReloadReturnsWhyAFileDoesNotLoad(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	replace(t, path, policyOf("100"))
	file, err := tiers.OpenFile(path, tiers.FileOptions{Interval: -1})
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
	replace(t, path, string(make([]byte, tiers.MaxDocument+1)))
	require.ErrorAs(t, file.Reload(), &mistakes)
	require.EqualValues(t, 1, file.Snapshot().Generation())
}

func TestAFileMustBeGoodAtFirst(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	_, err := tiers.OpenFile(filepath.Join(folder, "missing.yaml"), tiers.FileOptions{})
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = tiers.OpenFile(folder, tiers.FileOptions{})
	require.ErrorContains(t, err, "not a regular file")

	path := filepath.Join(folder, "policy.yaml")
	replace(t, path, "version: 1\n")
	_, err = tiers.OpenFile(path, tiers.FileOptions{})
	var mistakes *tiers.PolicyError
	require.ErrorAs(t, err, &mistakes)
}

func TestLookupsSeeWholePoliciesWhileAFileIsReloaded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	replace(t, path, policyOf("1"))
	file, err := tiers.OpenFile(path, tiers.FileOptions{Interval: -1})
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
