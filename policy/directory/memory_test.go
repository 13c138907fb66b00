package directory_test

import (
	"testing"

	"github.com/gqlgen-ratelimit/ratelimit/policy/directory"
	"github.com/gqlgen-ratelimit/ratelimit/policy/directory/directorytest"
)

func TestASourceInMemoryKeepsTheContractOfSources(t *testing.T) {
	t.Parallel()
	directorytest.Run(t, func(*testing.T) directorytest.Harness {
		source := directory.NewMemory()
		return directorytest.Harness{
			Open: func() directorytest.Source { return source },
			Lose: func() error { source = directory.NewMemory(); return nil },
		}
	})
}
