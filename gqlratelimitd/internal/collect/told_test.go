package collect_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/collect"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
)

func TestWhatIsCollectedIsToldAndSinceWhenAndUpToWhen(t *testing.T) {
	t.Parallel()
	both(t, func(s *scene) {
		began := s.clock.now()
		s.take("acme", 40)(30)
		s.tell("acme")
		s.budget.Tell(s.clock.now(), "api", "0", usage.Batch{
			Decisions: []usage.Decisions{{Tenant: "acme", Minute: began.Truncate(time.Minute), By: usage.ByOperation, Name: "Query.search", Numbers: usage.Numbers{Admitted: 3, Refused: 2, Points: 9}}},
		})
		s.clock.advance(2 * time.Minute)
		s.settle()
		c, err := control.New(control.Config{Store: s.db, Now: s.clock.now})
		require.NoError(s, err)
		actor := access.Actor{Subject: "eve", Method: access.MethodOIDC, Roles: []access.Role{access.Auditor}}
		ask := func(by control.UsageBy) *control.UsageSeries {
			page, err := c.UsageSeries(s.Context(), actor, control.UsageSeriesInput{Tenant: "acme", By: by, Window: control.UsageMinute, From: began, N: 10})
			require.NoError(s, err)
			return page
		}
		units := ask(control.UsageByUnit)
		minute := began.Truncate(time.Minute)
		require.Equal(s, minute.Add(time.Minute), units.Collected.Truncate(time.Minute), "the minute that follows is not told in full")
		require.True(s, units.Since.Before(minute) && !units.Since.Before(minute.Add(-48*time.Hour)), "what the store had kept by then was collected: %v", units.Since)
		require.Len(s, units.Rows, 4)
		points := units.Rows[0]
		require.Equal(s, "points", points.Name)
		require.Equal(s, []int64{40, 10, 30}, []int64{points.Charged, points.GivenBack, points.Net()})
		require.Equal(s, []any{control.KnownAll, false}, []any{points.Known, points.Open})
		require.True(s, units.Rows[2].Open)
		operation := ask(control.UsageByOperation).Rows[0]
		require.Equal(s, []any{"Query.search", int64(3), int64(2), int64(9)}, []any{operation.Name, operation.Admitted, operation.Refused, operation.Points})
	})
}

func TestMinutesOfWhichNobodyKnowsAnyMoreWhoCountedAreCollectedOnceASearchIsDone(t *testing.T) {
	t.Parallel()
	both(t, func(s *scene) {
		ctx, collected := s.Context(), func() int64 { return s.sums("SELECT pass, minute FROM usage_pass")["told"] }
		minute := func() int64 { return s.clock.now().Unix() / 60 }
		s.round()
		r := s.round()
		require.NoError(s, r.Search(ctx))
		require.NoError(s, r.ReadMinutes(ctx))
		before := minute()
		require.LessOrEqual(s, before-collected(), int64(2))
		// Nobody collects for five hours. What was told in the first two is known no more.
		s.take("acme", 7)
		s.tell("acme")
		s.clock.advance(5 * time.Hour)
		for _, r := range []collect.Round{r, s.round()} {
			require.NoError(s, r.ReadMinutes(ctx))
			s.clock.advance(time.Minute)
			require.NoError(s, r.ReadMinutes(ctx))
			require.LessOrEqual(s, collected(), before, "whoever reads that everything is collected has to find it")
			require.Empty(s, s.nets())
		}
		require.NoError(s, r.Search(ctx))
		require.NoError(s, r.ReadMinutes(ctx))
		require.Equal(s, map[string]int64{"acme": 7}, s.nets())
		require.LessOrEqual(s, minute()-collected(), int64(2))
		// A shorter time without anybody takes no search.
		s.clock.advance(2 * time.Hour)
		require.NoError(s, r.ReadMinutes(ctx))
		require.LessOrEqual(s, minute()-collected(), int64(2))
	})
}
