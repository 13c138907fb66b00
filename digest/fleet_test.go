package digest_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/digest"
	"github.com/gqlgen-ratelimit/ratelimit/event"
)

func TestFleetsAddUpWhateverInstancesSay(t *testing.T) {
	t.Parallel()
	one, two := collector(t, digest.Config{}), collector(t, digest.Config{})
	for i := range 100 {
		v := asked("acme")
		v.User, v.Candidate, v.CandidateRefuses = fmt.Sprint("u", i), "try", i < 10
		one.Count(v)
		two.Count(v)
	}
	two.Count(denied("globex"))
	digests := []digest.Digest{one.Collect(noon).Digest, two.Collect(noon.Add(-time.Second)).Digest}
	f := digest.Merge(digests)
	require.Equal(t, digest.Counts{Decisions: 201, Refused: 1, Tried: 200, NewlyRefused: 20, Cost: 603, Charged: 600}, f.Recent)
	require.Equal(t, []string{"acme", "globex"}, []string{f.Tenants[0].Name, f.Tenants[1].Name})
	require.InDelta(t, 100, f.Groups.Users.Seen.Count(), 0, "the same users at both")
	require.InDelta(t, 0.1, f.Groups.Users.NewlyRefusedShare(), 1e-9)
	require.Equal(t, noon.Add(-time.Second), f.From)
	require.Equal(t, "try", f.Candidate)

	digests = append(digests, digest.Digest{Candidate: "other", Recent: digest.Counts{Decisions: math.MaxInt64, Tried: math.MaxInt64, Refused: -7}})
	f = digest.Merge(digests)
	require.Equal(t, int64(math.MaxInt64), f.Recent.Decisions)
	require.Equal(t, int64(200), f.Recent.Tried, "another candidate is another question")
	require.Equal(t, int64(1), f.Recent.Refused)
	require.Equal(t, digest.Fleet{}, digest.Merge(nil))
}

func TestAllTellsEachObserverThatCounts(t *testing.T) {
	t.Parallel()
	one, two := collector(t, digest.Config{}), collector(t, digest.Config{})
	quiet := event.Func(func(context.Context, event.Event) {})
	require.Nil(t, event.CounterOf(event.All(quiet)))
	require.Nil(t, event.CounterOf(nil))
	event.CounterOf(event.All(quiet, one)).Count(asked("acme"))
	event.CounterOf(event.All(event.All(one, quiet), two)).Count(asked("acme"))
	require.Equal(t, int64(2), one.Collect(noon).Digest.Total.Decisions)
	require.Equal(t, int64(1), two.Collect(noon).Digest.Total.Decisions)
}
