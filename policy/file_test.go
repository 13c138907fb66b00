package policy_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/policy/policytest"
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
