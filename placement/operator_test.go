package placement_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/placement"
)

// What follows is what operators do who have read one page.

func TestAPinThatIsWrittenIntoTheNextMapIsNotInTheOneThatHolds(t *testing.T) {
	t.Parallel()
	s, first, _, _ := charged(t, 60)
	next := s.Map().Next(first.Stores)
	next.Pins["acme"] = "b"
	require.Equal(t, "a", s.Map().Home("acme"), "the map that holds does not change")
	require.NoError(t, s.Apply(t.Context(), next))
	next.Generation++
	require.EqualValues(t, 2, s.Map().Generation, "whoever changes a map that was applied changes nothing")
}

func TestATenantThatIsPinnedToALostStoreServesWhenItIsPinnedElsewhere(t *testing.T) {
	t.Parallel()
	w, m := twoStores()
	s := w.instance(t, m)
	m = m.Next([]placement.Member{{Name: "a", Lost: true}, {Name: "b"}})
	require.NoError(t, s.Apply(t.Context(), m))
	take := bucket.Take{Tenant: "acme", Buckets: compile(t, day), Amounts: points(1)}
	_, err := s.Take(t.Context(), take)
	require.ErrorIs(t, err, placement.ErrNowhere)
	m = m.Next(m.Stores)
	m.Pins["acme"] = "b"
	require.NoError(t, s.Apply(t.Context(), m))
	result, err := s.Take(t.Context(), take)
	require.NoError(t, err)
	require.Equal(t, bucket.Admitted, result.Verdict)
}

func TestAnInstanceSaysThatItsMapIsNotTheOneOfTheSameNumber(t *testing.T) {
	t.Parallel()
	w, m := twoStores()
	s := w.instance(t, pinned(m, "b"))
	require.ErrorIs(t, s.Apply(t.Context(), pinned(m, "a")), placement.ErrOther)
	require.ErrorIs(t, s.Apply(t.Context(), pinned(m, "b")), placement.ErrGeneration, "the same map again is another mistake")
	require.Equal(t, "b", s.Map().Home("acme"))
}

func TestARecordIsNotPublishedWhereNothingIsThatWasExpected(t *testing.T) {
	t.Parallel()
	client := redistest.Plain(t, redistest.Start(t).Addr)
	record, err := placement.NewRecord(client, "")
	require.NoError(t, err)
	ctx := t.Context()
	m := &placement.Map{Generation: 5, Candidates: 1, Stores: members("a", "b")}
	var conflict *placement.ConflictError
	require.ErrorAs(t, record.Publish(ctx, m, 4), &conflict, "the record was lost")
	require.Zero(t, conflict.There)
	_, err = record.Newest(ctx)
	require.ErrorIs(t, err, placement.ErrEmpty)
	require.NoError(t, record.Publish(ctx, m, 0))

	m.Generation, m.Pins = 6, map[string]string{}
	for i := range placement.MaxPins {
		m.Pins[strings.Repeat("x", 500)+fmt.Sprint(i)] = "a"
	}
	require.ErrorContains(t, record.Publish(ctx, m, 5), "at most 4194304 fit", "nobody could read it")

	key := "rl:main:placement"
	require.NoError(t, client.Del(ctx, key).Err())
	require.NoError(t, client.SetRange(ctx, key, 64<<20, "x").Err())
	_, err = record.Newest(ctx)
	require.ErrorIs(t, err, placement.ErrMap)
	require.ErrorIs(t, record.Publish(ctx, &placement.Map{Generation: 7, Candidates: 1, Stores: members("a")}, 0), placement.ErrMap)
	require.NoError(t, client.Del(ctx, key).Err())
	require.NoError(t, client.HSet(ctx, key, "generation", 1).Err())
	_, err = record.Newest(ctx)
	require.ErrorContains(t, err, "WRONGTYPE")
	require.ErrorContains(t, record.Publish(ctx, &placement.Map{Generation: 7, Candidates: 1, Stores: members("a")}, 0), "WRONGTYPE")
}
