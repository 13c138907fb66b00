package graph

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/graph/internal/model"
)

func TestABudgetSaysWhoHoldsHowMuchOfItUntilWhen(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)
	b := budgetOf(&control.Budget{
		Limit: bucket.Limit{Name: "hour", Capacity: 900}, Used: 100, Remaining: 500, Held: 300, Holders: 2,
		HeldBy: []bucket.LeasedPart{
			{Holder: "a1", Capacity: 400, Level: 200, Refill: 0.5, Ends: at, EndsIn: time.Second}, {Holder: "b2", Level: 100, Ends: at, EndsIn: -time.Second},
		},
	})
	require.Equal(t, []int64{100, 500, 300, 2}, []int64{b.Used, b.Remaining, b.Held, int64(b.Holders)})
	require.Equal(t, []*model.LeasedPart{
		{Holder: "a1", Capacity: 400, RefillPerSecond: 0.5, Held: 200, Ends: at}, {Holder: "b2", Held: 100, Ends: at, Ended: true},
	}, b.HeldBy)
}
