package web

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
)

func TestABudgetSaysWhoHoldsHowMuchOfItUntilWhen(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)
	text, err := json.Marshal(budgetOf(&control.Budget{
		Limit: bucket.Limit{Name: "hour", Unit: bucket.Points, Capacity: 900, Refill: 900, Period: time.Hour}, Used: 100, Remaining: 500, Held: 300, Holders: 2,
		HeldBy: []bucket.LeasedPart{
			{Holder: "a1", Capacity: 400, Level: 200, Refill: 0.5, Ends: at, EndsIn: time.Second}, {Holder: "b2", Level: 100, Ends: at, EndsIn: -time.Second},
		},
	}))
	require.NoError(t, err)
	require.JSONEq(t, `{
		"level": "tenant", "limit": "hour", "unit": "points", "capacity": 900, "used": 100, "remaining": 500, "held": 300, "holders": 2, "period": "hour", "mode": "enforce",
		"heldBy": [
			{"holder": "a1", "capacity": 400, "refillPerSecond": 0.5, "held": 200, "ends": "2026-11-23T08:00:00Z"},
			{"holder": "b2", "held": 100, "ends": "2026-11-23T08:00:00Z", "ended": true}
		]}`, string(text))
}
