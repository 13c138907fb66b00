package control_test

import (
	"context"
	"errors"
	"iter"
	"math"
	"strings"
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

// figure is a preview that says always the same.
type figure struct {
	report previewreport.Report
	err    error
}

func (f figure) Preview(context.Context, preview.Config) (*previewreport.Report, error) {
	r := f.report
	return &r, f.err
}

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

func TestRecordedTrafficSaysWhetherItTakesASecondPerson(t *testing.T) {
	t.Parallel()
	with := func(change func(*previewreport.Report)) figure {
		r := seen(0, 0, 1)
		change(&r)
		return figure{report: r}
	}
	for name, c := range map[string]struct {
		figure
		needed, previewed bool
	}{
		"nobody":                {figure{report: seen(0, 0, 1)}, false, true},
		"few":                   {figure{report: seen(10, 0.05, 1)}, false, true},
		"much of one":           {figure{report: seen(1, 0.06, 1)}, true, true},
		"many":                  {figure{report: seen(11, 0.01, 1)}, true, true},
		"few of a tenth of all": {figure{report: seen(2, 0.01, 0.1)}, true, true},
		"nothing was recorded":  {figure{}, true, false},
		"a short time":          {with(func(r *previewreport.Report) { r.From = r.To.Add(-59 * time.Second) }), true, false},
		"less than an hour":     {with(func(r *previewreport.Report) { r.From = r.To.Add(-59 * time.Minute) }), true, false},
		"unreadable":            {with(func(r *previewreport.Report) { r.Unreadable = 1 }), true, false},
		"somebody is left out":  {with(func(r *previewreport.Report) { r.LeftOut = 1 }), true, false},
		"not judged":            {with(func(r *previewreport.Report) { r.NotJudged = []string{"custom"} }), true, false},
		"no number":             {figure{report: seen(0, math.NaN(), 1)}, true, false},
		"more than all":         {figure{report: seen(0, 2, 1)}, true, false},
		"a share of nothing":    {figure{report: seen(0, 0, 0)}, true, false},
		"another key":           {figure{err: preview.ErrKey}, true, false},
		"it failed":             {figure{err: errors.New("redis is away")}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := twoPersons(t, c.figure)
			// What lowers nothing takes nobody else, whatever the figure.
			s.publish(more, 1)
			// The second person reads which it was.
			reach := s.propose(document, 2).Reach
			require.Equal(t, c.previewed, reach.Previewed, reach.Problem)
			require.Equal(t, c.previewed, reach.Problem == "")
			asked, err := s.Preview(s.ctx(), publisher, control.PreviewInput{Document: []byte(document)})
			if name == "it failed" {
				require.ErrorIs(t, err, control.ErrPreview)
			} else {
				require.NoError(t, err)
				require.Equal(t, c.needed, asked.SecondPerson)
				require.Equal(t, *reach, asked.Reach)
			}
			_, err = s.tryPublish(publisher, document, 2)
			require.Equal(t, c.needed, errors.Is(err, control.ErrSecondPerson), "%v", err)
		})
	}
}

// TestTrafficOfAnHourVouchesForWhatIsCountedInAnHourAtTheMost lowers limits one by one under a preview of an hour that says that nobody is refused.
func TestTrafficOfAnHourVouchesForWhatIsCountedInAnHourAtTheMost(t *testing.T) {
	t.Parallel()
	const with = document + `tenants: {acme: {limits: {day: {capacity: 20, per: day}}}, globex: {users: {byName: {zoe: {limits: {minute: {capacity: 9, per: minute}}}}}}}
`
	for name, c := range map[string]struct {
		old, next string
		previewed bool
	}{
		"a minute":              {"1000,", "10,", true},
		"a minute of users":     {"capacity: 100,", "capacity: 10,", true},
		"a maximum cost":        {"  free:\n", "  free:\n    maxCost: 10\n", true},
		"a month":               {"100000,", "100,", false},
		"both":                  {"1000,", "10,", true},
		"an operation":          {"capacity: 10,", "capacity: 1,", false},
		"a mode":                {"default: free", "default: free\nmode: warn", false},
		"the day of a tenant":   {"capacity: 20,", "capacity: 2,", false},
		"a user by name":        {"capacity: 9,", "capacity: 8,", false},
		"another tier's minute": {"5000,", "50,", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, control.Config{SecondPerson: access.SecondPerson{MaxShare: 0.05}, Preview: figure{report: seen(0, 0, 1)}})
			s.publish(with, 0)
			next := strings.Replace(with, c.old, c.next, 1)
			require.NotEqual(t, with, next)
			got, err := s.Preview(s.ctx(), publisher, control.PreviewInput{Document: []byte(next)})
			require.NoError(t, err)
			require.Equal(t, c.previewed, got.Reach.Previewed, "%+v", got.Reach)
			require.Equal(t, !c.previewed, got.SecondPerson)
		})
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

func TestAPreviewKnowsTheRecordsAndOverridesOfTenants(t *testing.T) {
	t.Parallel()
	s := twoPersons(t, traffic(
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
	require.True(t, got.SecondPerson)
}

func TestOfADocumentOfTwoPoliciesTheNextIsComparedWithTheOneOfNow(t *testing.T) {
	t.Parallel()
	s := twoPersons(t, traffic(digest.Record{Tenant: "acme", Cost: 10, N: 5}))
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
	require.True(t, first.Reach.First)
	require.Contains(t, first.Missing, "no policy was published")
	s.publish(document, 0)
	none, err := s.Preview(s.ctx(), publisher, control.PreviewInput{Document: []byte(less)})
	require.NoError(t, err)
	require.Contains(t, none.Missing, "start it with that of the instances")
	require.Equal(t, []string{"free"}, none.Reach.Lowered.Tiers)
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

func TestOnePreviewIsMadeAtATimeAndKeepsNobodyFromPublishing(t *testing.T) {
	t.Parallel()
	g := gate{make(chan struct{}), make(chan struct{})}
	s := newScene(t, control.Config{SecondPerson: access.SecondPerson{MaxShare: 0.05}, Preview: g})
	s.publish(document, 0)
	asked := make(chan error, 1)
	go func() {
		_, err := s.Preview(s.ctx(), operator, control.PreviewInput{Document: []byte(less)})
		asked <- err
	}()
	<-g.begun
	_, err := s.Preview(s.ctx(), publisher, control.PreviewInput{Document: []byte(less)})
	require.ErrorIs(t, err, control.ErrBusy)
	published := make(chan error, 1)
	go func() {
		_, err := s.tryPublish(publisher, less, 1)
		published <- err
	}()
	<-g.begun
	g.end <- struct{}{}
	g.end <- struct{}{}
	require.NoError(t, <-asked)
	require.NoError(t, <-published)
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
