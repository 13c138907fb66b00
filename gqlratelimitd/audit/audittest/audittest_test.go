package audittest_test

import (
	"testing"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit/audittest"
)

func TestMemoryKeepsTheContract(t *testing.T) {
	t.Parallel()
	audittest.Run(t, func(*testing.T) audit.Log { return &audittest.Memory{} })
}
