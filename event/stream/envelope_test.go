package stream_test

import (
	"encoding/json"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
)

// sent returns what a queue makes of events.
func sent(t *testing.T, cfg stream.Config, events ...event.Event) (all []stream.Envelope) {
	t.Helper()
	b := &broker{}
	cfg.Sink = b
	q := start(t, cfg)
	for _, e := range events {
		q.Observe(t.Context(), e)
	}
	require.NoError(t, q.Close(t.Context()))
	return b.all()
}

// at is when what is sent in tests has happened.
var at = time.Date(2026, 11, 23, 1, 2, 3, 4000, time.FixedZone("", 3600))

func TestAnEnvelopeIsACloudEventOfItsTenant(t *testing.T) {
	t.Parallel()
	e := event.Decided{At: at, RefusalID: "3R2FISY5QO7WUCFQ3E2EEUFWSX", Outcome: "limited", Code: "RATE_LIMITED", Tenant: "acme", Cost: 611}
	got := sent(t, stream.Config{Namespace: "shop", Instance: "web 1/a"}, e)
	require.Len(t, got, 1)
	text, err := json.Marshal(got[0])
	require.NoError(t, err)
	require.JSONEq(t, `{
		"specversion": "1.0", "id": "3R2FISY5QO7WUCFQ3E2EEUFWSX", "source": "ratelimit:shop/web%201%2Fa",
		"type": "ratelimit.decision.refused.v1", "subject": "acme", "time": "2026-11-23T00:02:03.000004Z",
		"sequence": "00000000000000000001", "datacontenttype": "application/json",
		"data": {"at": "2026-11-23T01:02:03.000004+01:00", "refusalId": "3R2FISY5QO7WUCFQ3E2EEUFWSX", "outcome": "limited", "code": "RATE_LIMITED",
			"tenant": "acme", "cost": 611, "charged": 0}
	}`, string(text))
	require.Equal(t, "ratelimit.denials", got[0].Topic)
	require.Equal(t, "acme", got[0].Key())

	var again stream.Envelope
	require.NoError(t, json.Unmarshal(text, &again))
	again.Topic = got[0].Topic
	require.True(t, again.Time.Equal(got[0].Time))
	again.Time = got[0].Time
	require.Equal(t, got[0], again)

	var third stream.Envelope
	for name, value := range got[0].Attributes() {
		require.NoError(t, third.SetAttribute(name, value))
	}
	third.Time, third.Data, third.Topic = again.Time, again.Data, again.Topic
	require.Equal(t, again, third)
}

func TestEachEventGoesToItsTopicAndThoseOfNoTopicStay(t *testing.T) {
	t.Parallel()
	budget := event.Budget{Tenant: "acme"}
	want := []struct {
		event             event.Event
		name, topic, whom string
	}{
		{event.Decided{RefusalID: "A"}, "ratelimit.decision.refused.v1", "ratelimit.denials", ""},
		{event.Decided{Code: "RATE_LIMITED", Tenant: "acme"}, "ratelimit.decision.would_refuse.v1", "ratelimit.denials", "acme"},
		{event.WouldRefuse{Budget: budget}, "ratelimit.limit.would_refuse.v1", "ratelimit.denials", "acme"},
		{event.RefusedRepeatedly{Tenant: "acme"}, "ratelimit.tenant.refused_repeatedly.v1", "ratelimit.denials", "acme"},
		{event.CandidateDiffers{Tenant: "acme"}, "ratelimit.candidate.differs.v1", "ratelimit.denials", "acme"},
		{event.RefusedAtDoor{}, "ratelimit.door.refused.v1", "ratelimit.denials", ""},
		{event.ThresholdCrossed{Budget: budget}, "ratelimit.threshold.crossed.v1", "ratelimit.thresholds", "acme"},
		{event.LimitReached{Budget: budget}, "ratelimit.limit.reached.v1", "ratelimit.thresholds", "acme"},
		{event.PolicyApplied{}, "ratelimit.policy.applied.v1", "ratelimit.policy.updates", ""},
		{event.PolicyRefused{}, "ratelimit.policy.refused.v1", "ratelimit.policy.updates", ""},
		{event.PolicyState{}, "ratelimit.policy.state.v1", "ratelimit.policy.updates", ""},
		{event.ModeSwitched{}, "ratelimit.mode.switched.v1", "ratelimit.policy.updates", ""},
	}
	events := []event.Event{event.Decided{Outcome: "admitted"}, event.StoreAway{}, event.StoreBack{}, event.BreakerChanged{}}
	for _, w := range want {
		events = append(events, w.event)
	}
	got := sent(t, stream.Config{}, events...)
	require.Len(t, got, len(want))
	ids := map[string]bool{}
	for i, w := range want {
		require.Equal(t, w.name, got[i].Type)
		require.Equal(t, w.topic, got[i].Topic)
		require.Equal(t, w.whom, got[i].Subject)
		require.NotEmpty(t, got[i].Key(), "there is always something to keep in order")
		ids[got[i].ID] = true
	}
	require.Len(t, ids, len(want), "each has an id of its own")
}

func TestAnotherRunOfAnInstanceHasOtherIDs(t *testing.T) {
	t.Parallel()
	cfg := stream.Config{Instance: "web-1"}
	first, second := sent(t, cfg, event.LimitReached{}), sent(t, cfg, event.LimitReached{})
	require.Equal(t, first[0].Source, second[0].Source)
	require.NotEqual(t, first[0].ID, second[0].ID)
}

func TestTheNameOfATenantBreaksNoHeader(t *testing.T) {
	t.Parallel()
	got := sent(t, stream.Config{},
		event.LimitReached{Budget: event.Budget{Tenant: "a\r\nce-id: x"}}, event.LimitReached{Budget: event.Budget{Tenant: `a\r\nce-id: x`}},
		event.LimitReached{Budget: event.Budget{Tenant: "\xff"}}, event.LimitReached{Budget: event.Budget{Tenant: "Zoë & “Söhne”"}})
	require.Equal(t, `a\r\nce-id: x`, got[0].Subject)
	require.Equal(t, `a\\r\\nce-id: x`, got[1].Subject, "two names stay two")
	require.Equal(t, `\xff`, got[2].Subject)
	require.Equal(t, "Zoë & “Söhne”", got[3].Subject)
}

func TestWhatIsNoJSONIsDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &broker{}
		q := start(t, stream.Config{Sink: b})
		q.Observe(t.Context(), event.ThresholdCrossed{Share: math.NaN()})
		q.Observe(t.Context(), event.ThresholdCrossed{Share: 1})
		require.NoError(t, q.Close(t.Context()))
		require.Len(t, b.all(), 1)
		require.EqualValues(t, 1, q.Dropped())
	})
}

func TestAConsumerIsToldWhatItCannotRead(t *testing.T) {
	t.Parallel()
	var e stream.Envelope
	require.Error(t, e.SetAttribute("specversion", "2.0"))
	require.Error(t, e.SetAttribute("time", "yesterday"))
	require.Error(t, e.SetAttribute("sequence", "-1"))
	require.NoError(t, e.SetAttribute("traceparent", "00-…"))
	require.Error(t, json.Unmarshal([]byte(`{"id": 1}`), &e))
	require.Error(t, json.Unmarshal([]byte(`{"id": "1"}`), &e), "it has no version")
	require.Zero(t, e)
}
