package throttle_test

import (
	"testing"

	"github.com/gqlgen-ratelimit/ratelimit/throttle"
	"github.com/gqlgen-ratelimit/ratelimit/throttle/throttletest"
)

func TestTheCentreInMemoryKeepsTheContract(t *testing.T) {
	t.Parallel()
	throttletest.Run(t, func(_ *testing.T, clock *throttletest.Clock) throttle.Centre { return throttle.NewMemory(clock.Now) })
}
