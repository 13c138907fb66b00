package delivery_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
	"github.com/gqlgen-ratelimit/ratelimit/event/webhook"
	"github.com/gqlgen-ratelimit/ratelimit/event/webhook/delivery"
)

func TestEventsGoToTheEndpointsOfTheirTenantUnderOneID(t *testing.T) {
	memory := &delivery.Memory{}
	away := errors.New("away")
	sink := delivery.Sink{Deliveries: memory, Endpoints: func(_ context.Context, e *stream.Envelope) ([]string, error) {
		switch e.Subject {
		case "shop":
			return []string{"shop-1", "shop-2"}, nil
		case "away":
			return nil, away
		}
		return nil, nil
	}}
	event := func(id, tenant, data string) stream.Envelope {
		return stream.Envelope{ID: id, Source: "ratelimit:main/web-1", Type: "ratelimit.decision.refused.v1", Subject: tenant, Data: json.RawMessage(data)}
	}
	large := `"` + strings.Repeat("x", webhook.MaxBody) + `"`
	batch := []stream.Envelope{
		event("a.topic.1", "shop", `{}`), event("2", "nobody", `{}`), event("3", "shop", large), event("4", "away", `{}`), event("5", "shop", `{}`),
	}
	errs := sink.Send(t.Context(), batch)
	require.Equal(t, []error{nil, nil, stream.ErrTooLarge, away, away}, errs)
	sink.Send(t.Context(), batch[:1])
	due, err := memory.Due(t.Context(), time.Now(), time.Minute, 10, 10)
	require.NoError(t, err)
	require.Len(t, due, 2)
	require.Equal(t, due[0].Delivery.ID, due[1].Delivery.ID)
	require.NotEqual(t, due[0].Endpoint, due[1].Endpoint)
	var read stream.Envelope
	require.NoError(t, json.Unmarshal(due[0].Delivery.Body, &read))
	require.Equal(t, "a.topic.1", read.ID)
}
