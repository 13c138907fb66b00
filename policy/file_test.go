package policy_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/policy/policytest"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// write puts a new file in the place of the old one, as deployments do.
func write(path string, data []byte) error {
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func TestAFileWithADocumentIsAFeed(t *testing.T) {
	t.Parallel()
	policytest.Run(t, func(t *testing.T) policytest.Harness {
		t.Helper()
		path := filepath.Join(t.TempDir(), "policy.yaml")
		return policytest.Harness{
			Open:  func() policy.Feed { return policy.NewFile(path) },
			Put:   func(r *policy.Revision) error { return write(path, r.Document) },
			Empty: func() error { return os.Remove(path) },
			Plain: true,
		}
	})
}

func TestAFileWithARevisionIsAFeed(t *testing.T) {
	t.Parallel()
	policytest.Run(t, func(t *testing.T) policytest.Harness {
		t.Helper()
		path := filepath.Join(t.TempDir(), "policy.revision")
		return policytest.Harness{
			Open: func() policy.Feed { return policy.NewFile(path) },
			Put: func(r *policy.Revision) error {
				data, err := r.MarshalBinary()
				if err != nil {
					// What no revision can be written as is written all the same.
					data = append([]byte("#ratelimit-revision 1\n{\"number\":2}\n"), r.Document...)
				}
				return write(path, data)
			},
			Empty: func() error { return os.Remove(path) },
		}
	})
}

func TestADocumentIsAsLargeAsItsFollowerPermits(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	large := append(document(2), bytes.Repeat([]byte("#"), tiers.DefaultMaxDocument)...)
	require.NoError(t, write(path, large))
	_, err := policy.Follow(t.Context(), policy.NewFile(path), policy.Config{Interval: policy.None})
	require.ErrorContains(t, err, "policy.Config permits up to 16777216")
	f, _ := follow(t, policy.NewFile(path), policy.Config{Interval: policy.None, MaxDocument: len(large)})
	require.Equal(t, 2, maxCost(f))
	_, err = policy.Follow(t.Context(), policy.NewFile(path), policy.Config{MaxDocument: tiers.MaxDocument + 1})
	require.ErrorContains(t, err, "Config.MaxDocument is 16777217 bytes: write at most 16777216, or 0 for 1048576")
}

// openFile follows a file that is looked at when the test says so.
func openFile(t testing.TB, path string) (*policy.Follower, *told) {
	t.Helper()
	return follow(t, policy.NewFile(path), policy.Config{Interval: policy.None})
}

func TestAFileIsFollowedWithoutARestart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	require.NoError(t, write(path, document(100)))
	synctest.Test(t, func(t *testing.T) {
		f, o := follow(t, policy.NewFile(path), policy.Config{})
		pass(time.Minute)
		require.Equal(t, 100, maxCost(f))
		require.NoError(t, write(path, document(200)))
		pass(3 * time.Second)
		require.Equal(t, 200, maxCost(f))
		require.NoError(t, write(path, []byte("many")))
		pass(time.Minute)
		require.NoError(t, os.Remove(path))
		pass(time.Minute)
		require.Equal(t, 200, maxCost(f), "the last good policy stays")
		require.Equal(t, policy.Stale, f.Status().State)
		require.NoError(t, write(path, document(200)))
		pass(3 * time.Second)
		require.NoError(t, write(path, document(300)))
		pass(3 * time.Second)
		require.Equal(t, 300, maxCost(f))
		require.EqualValues(t, 3, f.Snapshot().Generation())
		require.Equal(t, []string{
			"applied 1 of feed", "applied 2 of feed", "refused 3 document", "current to stale", "applied 2 of feed again", "stale to current",
			"applied 3 of feed",
		}, o.short())
		require.NoError(t, f.Close())
		require.NoError(t, f.Close())
		require.NoError(t, write(path, document(400)))
		pass(time.Minute)
		require.Equal(t, 300, maxCost(f), "a closed file is followed no more")
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
	inPlace := func(document string) { require.NoError(t, os.WriteFile(path, []byte(document), 0o600)) }
	half, _, found := strings.Cut(blocking, "tenants:")
	require.True(t, found)
	_, err := tiers.Parse([]byte(half))
	require.NoError(t, err, "the half is a valid document")
	inPlace(blocking)
	// The looks are the test's own: an instance makes them at its intervals.
	feed := policy.NewFile(path)
	have := policy.Head{Number: 1, Hash: policy.HashOf([]byte(blocking))}
	look := func() *policy.Revision {
		r, err := feed.Newest(t.Context(), have)
		if err != nil {
			require.ErrorIs(t, err, policy.ErrNotYet)
		}
		return r
	}
	require.Nil(t, look())
	changed := blocking + "  globex: {tier: free}\n"
	// A writer that is slow, and seen at it each time.
	for _, part := range []string{"", half[:20], half, blocking[:len(blocking)-3], changed} {
		inPlace(part)
		require.Nil(t, look(), "after %q", part)
	}
	require.Equal(t, changed, string(look().Document))
	// Looks that are equal count only in a row.
	for _, between := range []string{changed + "#", blocking} {
		inPlace(half)
		require.Nil(t, look())
		inPlace(between)
		require.Nil(t, look())
	}
	inPlace(half)
	require.Nil(t, look())
	require.NoError(t, os.Remove(path))
	_, err = feed.Newest(t.Context(), have)
	require.ErrorIs(t, err, os.ErrNotExist)
	inPlace(half)
	require.Nil(t, look())
	// What stays is the policy, however it came to be.
	require.Equal(t, half, string(look().Document))
}

func TestReloadTakesTheFileAsItIs(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	require.NoError(t, write(path, document(100)))
	f, _ := openFile(t, path)
	require.NoError(t, write(path, document(200)))
	require.NoError(t, f.Reload(t.Context()))
	require.Equal(t, 200, maxCost(f), "at the first look")
}

func TestEveryErrorOfAPolicyFileNamesTheFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	_, err := policy.OpenFile(path, policy.Config{})
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = policy.OpenFile(filepath.Dir(path), policy.Config{})
	require.ErrorContains(t, err, "not a regular file")
	require.NoError(t, write(path, []byte("{version: 1}")))
	_, err = policy.OpenFile(path, policy.Config{})
	var mistakes *tiers.PolicyError
	require.ErrorAs(t, err, &mistakes)
	require.Equal(t, path, mistakes.File)
	require.ErrorContains(t, err, "mistakes in the policy "+path+":")

	require.NoError(t, write(path, document(1)))
	f, _ := openFile(t, path)
	require.NoError(t, write(path, []byte("no policy")))
	require.ErrorContains(t, f.Reload(t.Context()), path)
	require.NoError(t, os.Remove(path))
	require.ErrorContains(t, f.Reload(t.Context()), path)
}

func TestLookupsSeeWholePoliciesWhileAFileIsReloaded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	require.NoError(t, write(path, document(1)))
	f, _ := openFile(t, path)
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for last := uint64(0); ; {
				select {
				case <-done:
					return
				default:
				}
				s := f.Snapshot()
				if s.Generation() < last || maxCost(s) != int(s.Generation()) {
					t.Errorf("generation %d after %d has maximum cost %d", s.Generation(), last, maxCost(s))
					return
				}
				last = s.Generation()
			}
		})
	}
	for cost := 2; cost <= 50; cost++ {
		require.NoError(t, write(path, document(cost)))
		require.NoError(t, f.Reload(t.Context()))
	}
	close(done)
	readers.Wait()
	require.EqualValues(t, 50, f.Snapshot().Generation())
}
