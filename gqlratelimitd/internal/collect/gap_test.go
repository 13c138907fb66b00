package collect_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/collect"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
)

// gap is the one that ends last of all that there are, nil if there is none.
func (s *scene) gap() (found *store.UsageGap) {
	s.Helper()
	require.NoError(s, s.db.Read(s.Context(), func(v *store.View) (err error) {
		found, err = v.LastUsageGap(0, 1<<40)
		return err
	}))
	return found
}

func TestATimeThatNobodyHasCollectedIsNotedWhenItsCountsAreGone(t *testing.T) {
	t.Parallel()
	both(t, func(s *scene) {
		ctx := s.Context()
		r := s.round()
		for range 30 {
			require.NoError(s, r.ReadMinutes(ctx))
			s.clock.advance(time.Minute)
		}
		require.Nil(s, s.gap(), "while it was not searched for the first time there is no gap")
		require.NoError(s, r.Search(ctx))
		require.NoError(s, r.ReadMinutes(ctx))
		last := s.last()
		s.clock.advance(48*time.Hour - time.Minute)
		next := s.round()
		require.NoError(s, next.Search(ctx))
		require.NoError(s, next.ReadMinutes(ctx))
		require.Nil(s, s.gap(), "what was counted is there still, and is found")

		last += 48*60 - 1
		s.clock.advance(50 * time.Hour)
		from := s.counting()
		from.reports = true
		broken := collect.NewRound(s.collector(from), nil)
		require.NoError(s, broken.Keep(ctx))
		for range 3 {
			require.Error(s, broken.ReadMinutes(ctx))
			s.clock.advance(time.Minute)
		}
		require.Equal(s, &store.UsageGap{First: last + 1, Until: last + 2*60 + 3}, s.gap(), "one that grows is one")
		from.reports = false
		require.NoError(s, broken.ReadMinutes(ctx))
		require.NoError(s, broken.Search(ctx))
		require.NoError(s, broken.ReadMinutes(ctx), "what is there still is found")
		require.Equal(s, &store.UsageGap{First: last + 1, Until: last + 2*60 + 4}, s.gap())
		s.clock.advance(time.Hour)
		require.NoError(s, broken.ReadMinutes(ctx))
		require.NoError(s, s.db.Read(ctx, func(v *store.View) error {
			for _, of := range []struct {
				first, until int64
				there        bool
			}{{last, last + 1, false}, {last, last + 2, true}, {last + 2*60 + 3, last + 1000, true}, {last + 2*60 + 4, last + 1000, false}} {
				found, err := v.LastUsageGap(of.first, of.until)
				require.NoError(s, err)
				require.Equal(s, of.there, found != nil, "%+v", of)
			}
			return nil
		}))
	})
}

// last is the last minute that was told in full.
func (s *scene) last() int64 { return s.clock.now().Add(-usage.Grace).Unix()/60 - 1 }
