package collect_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/usage"
)

// skewed is a source whose clock is off.
type skewed struct {
	usage.Source
	by time.Duration
}

func (s *skewed) Now(ctx context.Context) (time.Time, error) {
	now, err := s.Source.Now(ctx)
	return now.Add(s.by), err
}

func TestAStoreWhoseClockWasAheadForAMomentIsReadOnceItIsRight(t *testing.T) {
	t.Parallel()
	for _, by := range []time.Duration{time.Hour, 2 * 24 * time.Hour, 4 * 24 * time.Hour, 366 * 24 * time.Hour, -366 * 24 * time.Hour} {
		both(t, func(s *scene) {
			ctx, from := s.Context(), &skewed{Source: s.budget}
			r := s.leading(from)
			s.take("acme", 5)
			require.NoError(s, r.Collect(ctx))
			from.by = by
			// Where clocks differ by more than days nobody believes it.
			for _, step := range []func(context.Context) error{r.Collect, r.Search, r.Keep} {
				if err := step(ctx); by.Abs() > 3*24*time.Hour {
					require.ErrorContains(s, err, "clocks")
				} else {
					require.NoError(s, err)
				}
			}
			from.by = 0
			s.take("globex", 7)
			s.clock.advance(2 * time.Minute)
			require.NoError(s, r.Collect(ctx))
			require.Equal(s, map[string]int64{"acme": 5, "globex": 7}, s.nets())
			// Another daemon takes over, and goes by what stands in the database.
			r = s.leading(from)
			require.NoError(s, r.Collect(ctx))
			require.Equal(s, s.clock.now().Unix()/60, s.pass().Collected, "%v", by)
		})
	}
}
