package control_test

import (
	"context"
	"iter"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/digest"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/preview"
	"github.com/gqlgen-ratelimit/ratelimit/internal/policydiff"
	"github.com/gqlgen-ratelimit/ratelimit/internal/previewreport"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// seen is what was recorded of a hundred tenants in an hour, of all unless share is less than 1, and newly refused of so many, of none more than largest.
func seen(newly int, largest, share float64) previewreport.Report {
	part := float64(newly) / 100
	high := part
	if share < 1 {
		high = part + 0.05
	}
	to := time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)
	return previewreport.Report{
		From: to.Add(-time.Hour), To: to, Chunks: 1, Share: share, LargestShare: largest,
		Tenants: previewreport.Group{Seen: 100, NewlyRefused: newly, Share: part, Low: part, High: high},
	}
}

// recorded is a preview of what was recorded.
type recorded []digest.Chunk

func (r recorded) Preview(ctx context.Context, cfg preview.Config) (*previewreport.Report, error) {
	return preview.Run(ctx, iter.Seq2[digest.Chunk, error](func(yield func(digest.Chunk, error) bool) {
		for _, chunk := range r {
			if !yield(chunk, nil) {
				return
			}
		}
	}), cfg)
}

// traffic is what tenants have asked for in two minutes.
func traffic(records ...digest.Record) recorded {
	from := time.Date(2026, 11, 22, 2, 0, 0, 0, time.UTC)
	return recorded{
		{Version: 1, From: from, To: from, Below: math.MaxUint64, Records: records},
		{Version: 1, From: from.Add(2 * time.Minute), To: from.Add(2 * time.Minute), Below: math.MaxUint64},
	}
}

// previewing is a scene with a policy and a preview.
func previewing(t *testing.T, p control.Previewer) *scene {
	t.Helper()
	s := newScene(t, control.Config{Preview: p})
	s.publish(document, 0)
	return s
}

func TestAPreviewKnowsTheRecordsAndOverridesOfTenants(t *testing.T) {
	t.Parallel()
	s := previewing(t, traffic(
		digest.Record{Tenant: "plain", Cost: 10, N: 5}, digest.Record{Tenant: "assigned", Cost: 10, N: 5}, digest.Record{Tenant: "raised", Cost: 10, N: 5},
	))
	_, err := s.PutTenant(s.ctx(), by(operator), control.TenantInput{Tenant: "assigned", Document: []byte(`{"tier":"pro"}`)})
	require.NoError(t, err)
	_, err = s.SetOverride(s.ctx(), by(operator), control.OverrideInput{Tenant: "raised", Override: bucket.Override{
		Limit: "minute", Capacity: 50, Refill: 50, Expires: s.now.Add(time.Hour),
	}})
	require.NoError(t, err)
	got, err := s.Preview(s.ctx(), publisher, control.PreviewInput{Document: []byte(less)})
	require.NoError(t, err)
	require.Empty(t, got.Missing)
	require.Equal(t, uint64(1), got.Against)
	require.Len(t, got.Report.Rows, 1, "%+v", got.Report.Rows)
	require.Equal(t, "plain", got.Report.Rows[0].Tenant)
	require.Equal(t, int64(4), got.Report.Rows[0].NewlyRefused)
	require.InDelta(t, 0.8, got.Report.LargestShare, 1e-9)
}

func TestOfADocumentOfTwoPoliciesTheNextIsComparedWithTheOneOfNow(t *testing.T) {
	t.Parallel()
	s := previewing(t, traffic(digest.Record{Tenant: "acme", Cost: 10, N: 5}))
	s.publish(more, 1)
	staged, err := tiers.StageDocument([]byte(document), []byte(less), tiers.Stage{ID: "r1", Seed: "seed"})
	require.NoError(t, err)
	got, err := s.Preview(s.ctx(), publisher, control.PreviewInput{Document: staged})
	require.NoError(t, err)
	require.True(t, got.Staged)
	require.Equal(t, int64(4), got.Report.Total.NewlyRefused)
	diff, err := s.Diff(s.ctx(), publisher, control.DiffInput{Document: staged})
	require.NoError(t, err)
	require.True(t, diff.Staged)
	require.Equal(t, []policydiff.Change{{Tier: "free", What: "tenant limit minute", Old: "1000 points per minute", New: "10 points per minute"}}, diff.Changes)
}

func TestWithoutRecordsAPreviewSaysWhatToDo(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	first, err := s.Preview(s.ctx(), publisher, control.PreviewInput{Document: []byte(document)})
	require.NoError(t, err)
	require.Contains(t, first.Missing, "no policy was published")
	s.publish(document, 0)
	none, err := s.Preview(s.ctx(), publisher, control.PreviewInput{Document: []byte(less)})
	require.NoError(t, err)
	require.Contains(t, none.Missing, "start it with that of the instances")
	for _, wrong := range []string{"", "version: 2", "{"} {
		_, err = s.Preview(s.ctx(), publisher, control.PreviewInput{Document: []byte(wrong)})
		require.ErrorIs(t, err, control.ErrInvalid)
		_, err = s.Diff(s.ctx(), publisher, control.DiffInput{Document: []byte(wrong)})
		require.ErrorIs(t, err, control.ErrInvalid)
	}
	_, err = s.Preview(s.ctx(), publisher, control.PreviewInput{Document: []byte(less), Rows: control.MaxPreviewRows + 1})
	requireInvalid(t, err, "rows", "0 to 1000")
}

// gate is a preview that lasts until it is let go on.
type gate struct{ begun, end chan struct{} }

func (g gate) Preview(ctx context.Context, _ preview.Config) (*previewreport.Report, error) {
	g.begun <- struct{}{}
	select {
	case <-g.end:
		r := seen(0, 0, 1)
		return &r, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func TestOnePreviewIsMadeAtATime(t *testing.T) {
	t.Parallel()
	g := gate{make(chan struct{}), make(chan struct{})}
	s := newScene(t, control.Config{Preview: g})
	s.publish(document, 0)
	asked := make(chan error, 1)
	go func() {
		_, err := s.Preview(s.ctx(), operator, control.PreviewInput{Document: []byte(less)})
		asked <- err
	}()
	<-g.begun
	_, err := s.Preview(s.ctx(), publisher, control.PreviewInput{Document: []byte(less)})
	require.ErrorIs(t, err, control.ErrBusy)
	g.end <- struct{}{}
	require.NoError(t, <-asked)
	go func() { <-g.begun; g.end <- struct{}{} }()
	_, err = s.Preview(s.ctx(), publisher, control.PreviewInput{Document: []byte(document)})
	require.NoError(t, err, "it is not under way any more")
}

func TestWhoMayNotPreviewIsToldBeforeAnythingIsRead(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	confined := publisher
	confined.Tenants = []string{"acme"}
	for _, who := range []access.Actor{admin("acme"), confined, {}} {
		_, err := s.Preview(s.ctx(), who, control.PreviewInput{Document: []byte("{")})
		require.ErrorIs(t, err, access.ErrDenied)
		_, err = s.Diff(s.ctx(), who, control.DiffInput{Document: []byte("{")})
		require.ErrorIs(t, err, access.ErrDenied)
	}
}

func TestADiffIsWithTheRevisionThatIsNamedOrTheNewest(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	_, err := s.Diff(s.ctx(), publisher, control.DiffInput{Document: []byte(document)})
	require.ErrorIs(t, err, control.ErrNotFound)
	s.publish(less, 0)
	s.publish(document, 1)
	same, err := s.Diff(s.ctx(), auditor, control.DiffInput{Document: []byte(document)})
	require.NoError(t, err)
	require.Empty(t, same.Changes)
	require.Equal(t, uint64(2), same.Against)
	other, err := s.Diff(s.ctx(), auditor, control.DiffInput{Document: []byte(document), Against: 1})
	require.NoError(t, err)
	require.Equal(t, []policydiff.Change{{Tier: "free", What: "tenant limit minute", Old: "10 points per minute", New: "1000 points per minute"}}, other.Changes)
	_, err = s.Diff(s.ctx(), auditor, control.DiffInput{Document: []byte(document), Against: 7})
	require.ErrorIs(t, err, control.ErrNotFound)
}
