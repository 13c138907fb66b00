package natsstream_test

import (
	"flag"
	"testing"

	"github.com/gqlgen-ratelimit/ratelimit/internal/brokertest"
)

var requests = flag.Int("requests", 200, "how many requests are timed")

func TestNoRequestWaitsForANATSThatIsFrozen(t *testing.T) {
	t.Parallel()
	h := harness(t)
	working, still := brokertest.Frozen(t, h, *requests)
	t.Logf("requests while the broker works: %v; while it is frozen: %v", working, still)
}

func TestEachRefusalIsInNATSSoon(t *testing.T) {
	t.Parallel()
	h := harness(t)
	t.Log("from a refusal to the acknowledgement: ", brokertest.Delay(t, h, *requests))
}
