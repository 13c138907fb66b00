package sample_test

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/digest"
	"github.com/gqlgen-ratelimit/ratelimit/digest/sample"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
	"github.com/gqlgen-ratelimit/ratelimit/tiers/simulate"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func each(chunks ...digest.Chunk) iter.Seq2[digest.Chunk, error] {
	return func(yield func(digest.Chunk, error) bool) {
		for _, chunk := range chunks {
			if !yield(chunk, nil) {
				return
			}
		}
	}
}

// chunk is everything of a second.
func chunk(records ...digest.Record) digest.Chunk {
	return digest.Chunk{
		Version: digest.Version, From: noon, To: noon.Add(900 * time.Millisecond), Below: sample.Everybody, Detailed: true,
		Parameters: []string{"header:X-Lang"}, Records: records,
	}
}

func operations(t *testing.T, s *sample.Sample) (all []sample.Operation) {
	t.Helper()
	for op := range s.Operations() {
		all = append(all, op)
	}
	return all
}

func TestASampleHasWhatWasRecordedInItsOrder(t *testing.T) {
	t.Parallel()
	key := []byte("a key of sixteen bytes")
	s, err := sample.Read(t.Context(), each(chunk(
		digest.Record{
			Tenant: "acme", User: "mira", Fields: []string{"Query.a", "Query.b"}, Cost: 9, N: 1,
			Parts: []digest.Part{{N: 2}, {N: 1}}, Carried: map[string]string{"header:X-Lang": digest.HashValue(key, "header:X-Lang", "de")},
		},
		digest.Record{Tenant: "acme", Cost: 1, N: 3, Refused: 1},
	)), key, 100)
	require.NoError(t, err)
	require.Equal(t, tiers.Recorded{Parts: true, Parameters: []string{"header:X-Lang"}, Users: true}, s.Recorded())
	require.InDelta(t, 1, s.Share(), 0)
	require.True(t, s.Whole())
	all := operations(t, s)
	require.Len(t, all, 4)
	require.Equal(t, &simulate.Record{
		Tenant: "acme", User: "mira", Operations: []string{"Query.a", "Query.b"}, Points: 9, Parts: []simulate.Part{{Calls: 2}, {Calls: 1}},
		Parameters: map[string]string{"header:X-Lang": s.Value("header:X-Lang", "de")}, Units: all[0].Record.Units,
	}, all[0].Record)
	require.Equal(t, []bool{false, false, false, true}, []bool{all[0].Refused, all[1].Refused, all[2].Refused, all[3].Refused})
	require.Equal(t, noon.Add(900*time.Millisecond), all[3].At.UTC())
}

func TestWhatOneChunkDoesNotHaveIsNotRecorded(t *testing.T) {
	t.Parallel()
	old := chunk(digest.Record{Tenant: "acme", User: digest.HashUser(nil, "acme", "mira"), N: 1})
	old.Detailed = false
	other := chunk(digest.Record{Tenant: "acme", N: 1})
	other.Parameters = []string{"claim:plan", "header:X-Lang"}
	s, err := sample.Read(t.Context(), each(other, old), nil, 100)
	require.NoError(t, err)
	require.Equal(t, tiers.Recorded{Parameters: []string{"header:X-Lang"}}, s.Recorded())
	old.Parameters = nil
	s, err = sample.Read(t.Context(), each(other, old), nil, 100)
	require.NoError(t, err)
	require.Empty(t, s.Recorded().Parameters)
}

// TestWhoWritesIntoTheRedisCostsAReplayNoMoreThanOthers has chunks that no instance writes.
func TestWhoWritesIntoTheRedisCostsAReplayNoMoreThanOthers(t *testing.T) {
	t.Parallel()
	many := map[string]string{}
	for i := range 1000 {
		many[fmt.Sprint("header:X", i)] = "x"
	}
	fields := []string{"Query.a", "Query.b"}
	c := chunk(
		digest.Record{Tenant: "calls", Fields: fields, N: 1, Parts: []digest.Part{{N: 1 << 62}, {N: 1 << 62}}},
		digest.Record{Tenant: "sum", Fields: fields, N: 1, Parts: []digest.Part{{N: digest.MaxCalls}, {N: 1}}},
		digest.Record{Tenant: "negative", Fields: fields, N: 1, Parts: []digest.Part{{N: -1}, {}}},
		digest.Record{Tenant: "fewer", Fields: fields, N: 1, Parts: []digest.Part{{N: 1}}},
		digest.Record{Tenant: "carries", N: 1, Carried: many},
		digest.Record{Tenant: "flood", N: 1 << 62},
	)
	for i := range 1000 {
		c.Parameters = append(c.Parameters, fmt.Sprint("header:X", i))
	}
	s, err := sample.Read(t.Context(), each(c, chunk(), digest.Chunk{Below: sample.Everybody}), nil, 1000)
	require.NoError(t, err)
	require.Equal(t, 1, s.Unreadable)
	require.Equal(t, 1, s.LeftOut)
	require.False(t, s.Whole())
	require.Equal(t, []string{"header:X-Lang"}, s.Recorded().Parameters)
	all := operations(t, s)
	require.Len(t, all, 5)
	replay, err := simulate.NewReplay(compiled(t), simulate.ReplayConfig{Value: s.Value})
	require.NoError(t, err)
	for _, op := range all {
		require.Nil(t, op.Record.Parts, op.Record.Tenant)
		require.Nil(t, op.Record.Parameters)
		require.Equal(t, op.Record.Tenant != "carries", op.Mixed)
		op.Record.At = op.At
		_, err := replay.Judge(t.Context(), op.Record)
		require.NoError(t, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = sample.Read(ended, each(c), nil, 1000)
	require.ErrorIs(t, err, context.Canceled)
}

func compiled(t *testing.T) *tiers.Snapshot {
	t.Helper()
	s, err := tiers.Load([]byte("version: 1\ndefault: free\ntiers: {free: {limits: {minute: {capacity: 10, per: minute}}}}\n"), 1)
	require.NoError(t, err)
	return s
}

func TestAnotherKeyIsNoticedAlsoWhereEverybodyIsRecorded(t *testing.T) {
	t.Parallel()
	c := chunk(digest.Record{Tenant: "acme", N: 1})
	c.Key = digest.HashKey([]byte("a key of sixteen bytes"))
	_, err := sample.Read(t.Context(), each(c), []byte("a key of sixteen bytes"), 100)
	require.NoError(t, err)
	_, err = sample.Read(t.Context(), each(c), nil, 100)
	require.ErrorIs(t, err, sample.ErrKey)
}
