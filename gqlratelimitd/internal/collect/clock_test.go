package collect_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/collect"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
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

// passes are up to when was read, and searched.
func (s *scene) passes() (told, searched time.Time) {
	s.Helper()
	require.NoError(s, s.db.Read(context.Background(), func(v *store.View) error {
		for pass, into := range map[string]*time.Time{"told": &told, "search": &searched} {
			minute, err := v.UsagePass(pass)
			if err != nil {
				return err
			}
			*into = time.Unix(minute*60, 0).UTC()
		}
		return nil
	}))
	return told, searched
}

func TestAStoreWhoseClockWasAheadForAMomentIsReadOnceItIsRight(t *testing.T) {
	t.Parallel()
	for _, by := range []time.Duration{time.Hour, 2 * 24 * time.Hour, 4 * 24 * time.Hour, 366 * 24 * time.Hour} {
		both(t, func(s *scene) {
			ctx, from := s.Context(), &skewed{Source: s.budget}
			r := collect.NewRound(s.collector(from), nil)
			require.NoError(s, r.Keep(ctx))
			s.take("acme", 5)
			s.tell("acme")
			s.clock.advance(2 * time.Minute)
			require.NoError(s, r.ReadMinutes(ctx))
			require.NoError(s, r.Search(ctx))
			from.by = by
			// Where clocks differ by more than days nobody believes it, and otherwise it is read up to then.
			for _, step := range []func(context.Context) error{r.ReadMinutes, r.Search} {
				if err := step(ctx); by > 3*24*time.Hour {
					require.ErrorContains(s, err, "clocks")
				} else {
					require.NoError(s, err)
				}
			}
			from.by = 0
			s.take("globex", 7)
			s.tell("globex")
			s.clock.advance(2 * time.Minute)
			require.NoError(s, r.ReadMinutes(ctx))
			require.Equal(s, map[string]int64{"acme": 5, "globex": 7}, s.nets())
			// Another daemon takes over, and it is frozen by what stands in the database.
			r = collect.NewRound(s.collector(from), nil)
			require.NoError(s, r.Keep(ctx))
			require.NoError(s, r.ReadMinutes(ctx))
			require.NoError(s, r.Search(ctx))
			require.NoError(s, r.ReadMinutes(ctx))
			told, searched := s.passes()
			require.WithinDuration(s, s.clock.now(), told, 3*time.Minute, "%v", by)
			require.WithinDuration(s, s.clock.now(), searched, 3*time.Minute, "%v", by)
		})
	}
}
