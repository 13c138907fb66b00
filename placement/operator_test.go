package placement_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/placement"
)

// What follows is what operators do who have read one page.

func TestAPinThatIsWrittenIntoTheNextMapIsNotInTheMapsBefore(t *testing.T) {
	t.Parallel()
	s, first, take, _ := charged(t, 60)
	next := s.Map().Next(first.Stores)
	next.Pins["acme"] = "b"
	require.Equal(t, "a", s.Map().Home("acme"), "the map that holds does not change")
	require.Equal(t, "a", next.Before[0].Pins["acme"])
	require.NoError(t, s.Apply(t.Context(), next))
	next.Before = nil
	next.Generation++
	result, err := s.Take(t.Context(), take)
	require.NoError(t, err)
	require.Equal(t, bucket.Limited, result.Verdict, "60 of 100 were spent before it moved")
	require.EqualValues(t, 2, s.Map().Generation, "whoever changes a map that was applied changes nothing")
}

func TestATenantThatIsPinnedToALostStoreServesWhenItIsPinnedElsewhere(t *testing.T) {
	t.Parallel()
	w, m := twoStores()
	s := w.instance(t, m)
	lost := time.UnixMilli(w.now.Load())
	m = m.Next([]placement.Member{{Name: "a", Lost: &lost}, {Name: "b"}})
	require.NoError(t, s.Apply(t.Context(), m))
	take := bucket.Take{Tenant: "acme", Buckets: compile(t, day), Amounts: points(1)}
	_, err := s.Take(t.Context(), take)
	require.ErrorIs(t, err, placement.ErrNowhere)
	m = m.Next(m.Stores)
	m.Pins["acme"] = "b"
	require.NoError(t, s.Apply(t.Context(), m))
	result, err := s.Take(t.Context(), take)
	require.NoError(t, err)
	require.Equal(t, bucket.Limited, result.Verdict, "what was lost with the store is empty")
}

func TestAMapForgetsNoneBeforeItByItself(t *testing.T) {
	t.Parallel()
	m := &placement.Map{Generation: 1, Candidates: 1, Stores: members("a", "b")}
	stores := m.Stores
	for i := range placement.MaxBefore {
		stores = append(stores, placement.Member{Name: fmt.Sprint("c", i)})
		m = m.Next(stores)
		require.NoError(t, m.Check())
	}
	m = m.Next(stores)
	require.ErrorContains(t, m.Check(), "maps before this one: at most", "a tenant that has not come since would begin anew")
	m.Before = m.Before[:placement.MaxBefore]
	require.NoError(t, m.Check())
	same := &placement.Map{Generation: 1, Candidates: 1, Stores: members("a", "b")}
	for range 100 {
		same = same.Next(same.Stores)
	}
	require.Len(t, same.Before, 1, "of maps that say the same one is enough")
}

func TestAnInstanceSaysThatItsMapIsNotTheOneOfTheSameNumber(t *testing.T) {
	t.Parallel()
	w, m := twoStores()
	s := w.instance(t, pinned(m, "b"))
	require.ErrorIs(t, s.Apply(t.Context(), pinned(m, "a")), placement.ErrOther)
	require.ErrorIs(t, s.Apply(t.Context(), pinned(m, "b")), placement.ErrGeneration, "the same map again is another mistake")
	require.Equal(t, "b", s.Map().Home("acme"))
}

func TestAnInstanceThatKnowsAnOlderMapDoesNotDisturbTheOthers(t *testing.T) {
	t.Parallel()
	w, first := twoStores()
	second := pinned(first, "b")
	third := pinned(second, "a")
	young := w.instance(t, third)
	take := bucket.Take{Tenant: "acme", Buckets: compile(t, day), Amounts: points(1)}
	_, err := young.Take(t.Context(), take)
	require.NoError(t, err)
	old := w.instance(t, second)
	left := 0
	w.fault = func(_, call string) fault {
		if call == "leave" {
			left++
		}
		return fine
	}
	for range 20 {
		_, err = old.Take(t.Context(), take)
		require.ErrorIs(t, err, placement.ErrStale)
	}
	require.LessOrEqual(t, left, 1, "it has a tenant leave where it lives no more than once")
	_, err = young.Take(t.Context(), take)
	require.NoError(t, err)
	require.NoError(t, old.Apply(t.Context(), third))
	_, err = old.Take(t.Context(), take)
	require.NoError(t, err)
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

	soon := time.Now().Add(24 * time.Hour)
	require.ErrorContains(t, record.Publish(ctx, m.Next([]placement.Member{{Name: "a", Lost: &soon}, {Name: "b"}}), 5), "lies ahead")

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

func TestAnOverrideGivesBackWhatALostStoreHasTakenAlong(t *testing.T) {
	t.Parallel()
	w, m := twoStores()
	lost := time.UnixMilli(w.now.Load())
	next := m.Next([]placement.Member{{Name: "a", Lost: &lost}, {Name: "b"}})
	next.Pins = map[string]string{"acme": "b"}
	s := w.instance(t, next)
	buckets := compile(t, bucket.Limit{Name: "month", Capacity: 1000, Window: bucket.Window{Kind: bucket.MonthWindow}})
	_, err := s.SetOverride(t.Context(), "acme", bucket.Override{Limit: "month", Capacity: 1700, Reason: "its store was lost", Actor: "jo"})
	require.NoError(t, err)
	for range 2 {
		s := w.instance(t, next)
		result, err := s.Take(t.Context(), bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(350)})
		require.NoError(t, err)
		require.Equal(t, bucket.Admitted, result.Verdict, "whatever instance begins anew")
	}
	result, err := s.Take(t.Context(), bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(1)})
	require.NoError(t, err)
	require.Equal(t, bucket.Limited, result.Verdict)
}
