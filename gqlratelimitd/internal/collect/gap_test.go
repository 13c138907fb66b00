package collect_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
)

// gaps are those that the database has.
func (s *scene) gaps() (found []store.UsageGap) {
	s.Helper()
	require.NoError(s, s.db.Read(s.Context(), func(v *store.View) (err error) {
		found, err = v.UsageGaps(0, 1<<40)
		return err
	}))
	return found
}

// pass is of which time counts are collected.
func (s *scene) pass() (is store.UsagePass) {
	s.Helper()
	require.NoError(s, s.db.Read(s.Context(), func(v *store.View) (err error) {
		is, err = v.UsagePass()
		return err
	}))
	return is
}

func TestATimeThatNobodyHasCollectedIsNotedWhenItsCountsAreGone(t *testing.T) {
	t.Parallel()
	both(t, func(s *scene) {
		ctx, minute := s.Context(), func() int64 { return s.clock.now().Unix() / 60 }
		r := s.round()
		require.NoError(s, r.Collect(ctx))
		require.Equal(s, store.UsagePass{Began: minute() - 48*60, Collected: minute()}, s.pass(), "what the store had kept by then is collected")
		s.clock.advance(usage.CountsLife)
		require.NoError(s, s.round().Collect(ctx))
		require.Empty(s, s.gaps(), "what was counted is there still, and is found")
		last := minute()
		s.clock.advance(usage.CountsLife + 2*time.Hour)
		from := s.counting()
		from.gone = true
		broken := s.leading(from)
		require.Error(s, broken.Collect(ctx))
		require.Equal(s, last, s.pass().Collected)
		from.gone, from.found = false, errFault
		require.Error(s, broken.Collect(ctx))
		require.Equal(s, []store.UsageGap{{First: last, Until: last + 2*60}}, s.gaps())
		s.clock.advance(time.Minute)
		require.Error(s, broken.Collect(ctx))
		require.Equal(s, []store.UsageGap{{First: last, Until: last + 2*60 + 1}}, s.gaps(), "one that grows is one")
		from.found = nil
		require.NoError(s, broken.Collect(ctx))
		require.Equal(s, minute(), s.pass().Collected)
		s.clock.advance(time.Hour)
		require.NoError(s, broken.Collect(ctx))
		require.Len(s, s.gaps(), 1)
	})
}
