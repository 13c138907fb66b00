package usagetest_test

import (
	"context"
	"testing"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/usage"
	"github.com/gqlgen-ratelimit/ratelimit/usage/usagetest"
)

func TestTheSourceInMemoryKeepsTheContract(t *testing.T) {
	t.Parallel()
	usagetest.RunSource(t, func(*testing.T) usagetest.Scene {
		m := usagetest.NewMemory(nil)
		return usagetest.Scene{
			Source: m, Store: m,
			Tell: func(_ context.Context, told time.Time, instance, boot string, batch usage.Batch) error {
				m.Tell(told, instance, boot, batch)
				return nil
			},
		}
	})
}
