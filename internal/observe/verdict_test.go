package observe_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
	"github.com/gqlgen-ratelimit/ratelimit/internal/observe"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// tally is an observer that counts.
type tally struct{ verdicts []event.Verdict }

func (*tally) Observe(context.Context, event.Event) {}

func (t *tally) Count(v event.Verdict) { t.verdicts = append(t.verdicts, v) }

// panicking is one that fails.
type panicking struct{ tally }

func (*panicking) Count(event.Verdict) { panic("broken") }

func decided(t *testing.T, observer event.Observer, d *decision.Decision) {
	t.Helper()
	r, err := observe.New(observe.Config{Observer: observer, Logger: slog.New(slog.DiscardHandler), Facts: 1 << 11, Refusals: -1, RepeatedRefusals: -1}, nil)
	require.NoError(t, err)
	r.Decided(t.Context(), noop.Span{}, d)
}

func TestAnObserverThatCountsIsToldOfEveryDecision(t *testing.T) {
	t.Parallel()
	d := &decision.Decision{
		Outcome: decision.Shadowed, Tier: "pro", Points: 7, Charged: 5, Rules: &tiers.Rules{}, Hide: tiers.Hide{Owners: true},
		Subject: tiers.Subject{Tenant: "acme", Team: "blue", User: "mira", Tier: "free"}, RootFields: []string{"Query.a"},
		Selected: &tiers.Selection{Document: "doc"}, WouldRefuse: &decision.Refusal{Outcome: decision.TooExpensive},
		Candidate: &decision.Candidate{ID: "next", Outcome: decision.Limited},
	}
	for _, unit := range []bucket.Unit{bucket.Points, "a", "b", "c", "d", "e"} {
		d.Asked = append(d.Asked, bucket.Amount{Unit: unit, N: 2})
	}
	to := &tally{}
	decided(t, to, d)
	require.Len(t, to.verdicts, 1)
	v := to.verdicts[0]
	require.WithinDuration(t, time.Now(), v.At, time.Minute)
	require.Nil(t, v.Detail.Parts(), "nobody knows its calls")
	require.Nil(t, v.Detail.Carried(), "the policy looks at nothing")
	v.At, v.Detail = time.Time{}, nil
	require.Equal(t, event.Verdict{
		Tenant: "acme", Team: "blue", User: "mira", SubjectTier: "free", Tier: "pro", Outcome: "shadowed", WouldRefuse: true, Because: "too_expensive",
		Candidate: "next", CandidateRefuses: true, HideOwners: true, RootFields: []string{"Query.a"}, Document: "doc", Cost: 7, Charged: 5,
		Units: [event.MaxUnits]event.Amount{{Unit: "a", N: 2}, {Unit: "b", N: 2}, {Unit: "c", N: 2}, {Unit: "d", N: 2}},
	}, v)

	d.Refusal = &decision.Refusal{Outcome: decision.Limited, Limit: &bucket.Limit{Name: "minute"}, Owner: bucket.Owner{Level: bucket.User, Name: "mira"}}
	d.Candidate = nil
	decided(t, event.All(to), d)
	require.True(t, to.verdicts[1].Refused)
	require.False(t, to.verdicts[1].WouldRefuse, "it did not run")
	require.Empty(t, to.verdicts[1].Candidate)
	require.Equal(t, []string{"limited", "user", "minute"}, []string{to.verdicts[1].Because, to.verdicts[1].Level, to.verdicts[1].Limit})
	decided(t, &panicking{}, d)
}

func TestADetailCountsTheCallsOfEachRootField(t *testing.T) {
	t.Parallel()
	d := &decision.Decision{
		Outcome: decision.Admitted, Rules: &tiers.Rules{}, Points: 13, RootFields: []string{"Query.a", "Query.b", "Query.left", "Query.rateLimit"},
		Selected: &tiers.Selection{
			Calls: tiers.Counted{"Query.b", "Query.a", "Query.rateLimit", "Query.a"},
		},
	}
	to := &tally{}
	decided(t, to, d)
	require.Equal(t, []event.Part{{Calls: 2}, {Calls: 1}, {}, {Calls: 1}}, to.verdicts[0].Detail.Parts())
	d.RootFields, d.Selected.Calls = []string{"Query.a"}, tiers.Counted{"Query.a"}
	decided(t, to, d)
	require.Nil(t, to.verdicts[1].Detail.Parts(), "one call is the whole")
	d.Selected.Calls = tiers.Counted{}
	decided(t, to, d)
	require.Equal(t, []event.Part{{}}, to.verdicts[2].Detail.Parts(), "its only field is left out")
	d.Selected = nil
	decided(t, to, d)
	require.Nil(t, to.verdicts[3].Detail)
}

func TestADecisionThatNobodyCountsAllocatesNothingMoreNorDoesOneThatIsCounted(t *testing.T) {
	d := &decision.Decision{Outcome: decision.Admitted, Rules: &tiers.Rules{}, Subject: tiers.Subject{Tenant: "acme"}}
	allocations := func(observer event.Observer) float64 {
		r, err := observe.New(observe.Config{Observer: observer, Logger: slog.New(slog.DiscardHandler), Facts: 1 << 11, Refusals: -1, RepeatedRefusals: -1}, nil)
		require.NoError(t, err)
		return testing.AllocsPerRun(100, func() { r.Decided(t.Context(), noop.Span{}, d) })
	}
	quietly := event.Func(func(context.Context, event.Event) {})
	none := allocations(quietly)
	require.InDelta(t, none, allocations(event.All(quietly)), 0)
	require.InDelta(t, none, allocations(event.All(quietly, counting{})), 0)
}

// counting keeps nothing.
type counting struct{}

func (counting) Observe(context.Context, event.Event) {}

func (counting) Count(event.Verdict) {}

func TestAnEventThatWaitsHoldsNeitherTheDocumentNorTheHeadersOfItsRequest(t *testing.T) {
	t.Parallel()
	request := strings.Repeat("x", 1<<16)
	within := func(text string) bool {
		first, p := uintptr(unsafe.Pointer(unsafe.StringData(request))), uintptr(unsafe.Pointer(unsafe.StringData(text)))
		return p >= first && p < first+uintptr(len(request))
	}
	require.True(t, within(request[7:9]))
	var told []event.Decided
	r, err := observe.New(observe.Config{
		Observer:   event.Func(func(_ context.Context, e event.Event) { told = append(told, e.(event.Decided)) }),
		Admissions: 1, Logger: slog.New(slog.DiscardHandler), Facts: 1 << 11, RepeatedRefusals: -1,
	}, nil)
	require.NoError(t, err)
	for _, long := range []int{10, 1000} {
		name := request[:long]
		r.Decided(t.Context(), noop.Span{}, &decision.Decision{
			Outcome: decision.Admitted, Rules: &tiers.Rules{}, Name: name, Subject: tiers.Subject{Tenant: name, Team: name, User: name, Tier: name},
		})
	}
	require.Len(t, told, 2)
	for _, e := range told {
		for _, text := range []string{e.Operation, e.Tenant, e.Team, e.User, e.SubjectTier} {
			require.NotEmpty(t, text)
			require.False(t, within(text))
		}
	}
}
