package usagetest_test

import (
	"context"
	"testing"

	"github.com/gqlgen-ratelimit/ratelimit/usage"
	"github.com/gqlgen-ratelimit/ratelimit/usage/usagetest"
)

func TestTheSourceInMemoryKeepsTheContract(t *testing.T) {
	t.Parallel()
	usagetest.RunSource(t, func(*testing.T) usagetest.Scene {
		m := usagetest.NewMemory(nil)
		return usagetest.Scene{
			Source: m, Store: m,
			Refuse: func(_ context.Context, run string, refused []usage.Refused) error {
				m.Refuse(run, refused...)
				return nil
			},
		}
	})
}
