package delivery

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
	"github.com/gqlgen-ratelimit/ratelimit/event/webhook"
)

// Sink puts events into deliveries. It is a stream.Sink but for order: endpoints get the events of a tenant in any. It is a value, safe for concurrent use if its
// fields are. Both are required.
type Sink struct {
	Deliveries Deliveries
	// Endpoints returns the ids of those that want an event, such as those which its tenant (Subject) has registered. It keeps nothing of it.
	Endpoints func(ctx context.Context, e *stream.Envelope) ([]string, error)
}

var _ stream.Sink = Sink{}

// Send implements stream.Sink. An event for which an endpoint has no room is stream.ErrRefused: it is counted as dropped by the queue, and other endpoints have it. Where
// the deliveries cannot be asked, the rest of the batch is sent again.
func (s Sink) Send(ctx context.Context, batch []stream.Envelope) []error {
	errs := make([]error, len(batch))
	for i := range batch {
		errs[i] = s.put(ctx, &batch[i])
		if errs[i] != nil && !errors.Is(errs[i], stream.ErrTooLarge) && !errors.Is(errs[i], stream.ErrRefused) {
			copy(errs[i:], stream.Failed(len(batch)-i, errs[i]))
			break
		}
	}
	return errs
}

func (s Sink) put(ctx context.Context, e *stream.Envelope) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	endpoints, err := s.Endpoints(ctx, e)
	if err != nil || len(endpoints) == 0 {
		return err
	}
	body, err := json.Marshal(e)
	if err != nil {
		return stream.ErrRefused
	}
	if len(body) > webhook.MaxBody {
		return stream.ErrTooLarge
	}
	m := webhook.Message{ID: MessageID(e), Body: body}
	var refused error
	for _, endpoint := range endpoints {
		err := s.Deliveries.Put(ctx, Record{Endpoint: endpoint, Delivery: webhook.Begin(m, time.Now())})
		switch {
		case errors.Is(err, ErrFull):
			refused = errors.Join(err, stream.ErrRefused)
		case err != nil:
			return err
		}
	}
	return refused
}

// MessageID returns the webhook-id of an event: the same each time, and another for each source and id, whatever characters these have.
func MessageID(e *stream.Envelope) string {
	const bytes = 16
	sum := sha256.Sum256([]byte(e.Source + "\x00" + e.ID))
	return "msg_" + hex.EncodeToString(sum[:bytes])
}
