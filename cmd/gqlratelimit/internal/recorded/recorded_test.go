package recorded_test

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/recorded"
	"github.com/gqlgen-ratelimit/ratelimit/observe/report"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
	"github.com/gqlgen-ratelimit/ratelimit/tiers/simulate"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func each(samples ...report.Sample) iter.Seq2[report.Activity, error] {
	return func(yield func(report.Activity, error) bool) {
		for _, sample := range samples {
			if !yield(report.Activity{Sample: &sample}, nil) {
				return
			}
		}
	}
}

// sampled is everything of a second.
func sampled(records ...report.Record) report.Sample {
	return report.Sample{
		From: noon, To: noon.Add(900 * time.Millisecond), Below: recorded.Everybody,
		Parameters: []string{"header:X-Lang"}, Records: records,
	}
}

func operations(t *testing.T, s *recorded.Sample) (all []recorded.Operation) {
	t.Helper()
	for op := range s.Operations() {
		all = append(all, op)
	}
	return all
}

func TestOperationsInOrder(t *testing.T) {
	t.Parallel()
	key := []byte("a key of sixteen bytes")
	s, err := recorded.Read(t.Context(), each(sampled(
		report.Record{
			Tenant: "acme", User: "mira", Fields: []string{"Query.a", "Query.b"}, Cost: 9, N: 1,
			Parts: []report.Part{{N: 2}, {N: 1}}, Carried: map[string]string{"header:X-Lang": report.HashValue(key, "header:X-Lang", "de")},
		},
		report.Record{Tenant: "acme", Cost: 1, N: 3},
	)), key, 100)
	require.NoError(t, err)
	require.Equal(t, tiers.Recorded{Parts: true, Parameters: []string{"header:X-Lang"}, Users: true}, s.Recorded())
	require.InDelta(t, 1, s.Share(), 0)
	all := operations(t, s)
	require.Len(t, all, 4)
	require.Equal(t, &simulate.Record{
		Tenant: "acme", User: "mira", Operations: []string{"Query.a", "Query.b"}, Points: 9, Parts: []simulate.Part{{Calls: 2}, {Calls: 1}},
		Parameters: map[string]string{"header:X-Lang": s.Value("header:X-Lang", "de")}, Units: all[0].Record.Units,
	}, all[0].Record)
	require.Equal(t, noon.Add(900*time.Millisecond), all[3].At.UTC())
}

func TestRecordedIsWhatAllSamplesHave(t *testing.T) {
	t.Parallel()
	old := sampled(report.Record{Tenant: "acme", User: report.HashUser(nil, "acme", "mira"), N: 1})
	other := sampled(report.Record{Tenant: "acme", N: 1})
	other.Parameters = []string{"claim:plan", "header:X-Lang"}
	s, err := recorded.Read(t.Context(), each(other, old), nil, 100)
	require.NoError(t, err)
	require.Equal(t, tiers.Recorded{Parts: true, Parameters: []string{"header:X-Lang"}}, s.Recorded())
	old.Parameters = nil
	s, err = recorded.Read(t.Context(), each(other, old), nil, 100)
	require.NoError(t, err)
	require.Empty(t, s.Recorded().Parameters)
}

// TestReadForeignSamples has samples that no instance writes.
func TestReadForeignSamples(t *testing.T) {
	t.Parallel()
	many := map[string]string{}
	for i := range 1000 {
		many[fmt.Sprint("header:X", i)] = "x"
	}
	fields := []string{"Query.a", "Query.b"}
	c := sampled(
		report.Record{Tenant: "calls", Fields: fields, N: 1, Parts: []report.Part{{N: 1 << 62}, {N: 1 << 62}}},
		report.Record{Tenant: "sum", Fields: fields, N: 1, Parts: []report.Part{{N: report.MaxCalls}, {N: 1}}},
		report.Record{Tenant: "negative", Fields: fields, N: 1, Parts: []report.Part{{N: -1}, {}}},
		report.Record{Tenant: "fewer", Fields: fields, N: 1, Parts: []report.Part{{N: 1}}},
		report.Record{Tenant: "carries", N: 1, Carried: many},
		report.Record{Tenant: "flood", N: 1 << 62},
	)
	for i := range 1000 {
		c.Parameters = append(c.Parameters, fmt.Sprint("header:X", i))
	}
	s, err := recorded.Read(t.Context(), each(c, sampled(), report.Sample{Below: recorded.Everybody}), nil, 1000)
	require.NoError(t, err)
	require.Equal(t, 1, s.Unreadable)
	require.Equal(t, 1, s.LeftOut)
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
	_, err = recorded.Read(ended, each(c), nil, 1000)
	require.ErrorIs(t, err, context.Canceled)
}

func compiled(t *testing.T) *tiers.Snapshot {
	t.Helper()
	s, err := tiers.Load([]byte("version: 1\ndefault: free\ntiers: {free: {limits: {minute: {capacity: 10, per: minute}}}}\n"), 1)
	require.NoError(t, err)
	return s
}

func TestAnotherKeyIsNoticed(t *testing.T) {
	t.Parallel()
	c := sampled(report.Record{Tenant: "acme", N: 1})
	c.Key = report.HashKey([]byte("a key of sixteen bytes"))
	_, err := recorded.Read(t.Context(), each(c), []byte("a key of sixteen bytes"), 100)
	require.NoError(t, err)
	_, err = recorded.Read(t.Context(), each(c), nil, 100)
	require.ErrorIs(t, err, recorded.ErrKey)
}
