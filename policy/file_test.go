package policy_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

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
