package store

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/webhook"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/webhook/delivery"
)

// ErrMoved says that somebody else has read on in a stream.
var ErrMoved = errors.New("store: somebody else has read on in the stream")

// Arrival is an event of a stream, on its way to the endpoints that want it.
type Arrival struct {
	// Subject is the tenant as events call it, and Type what the event is.
	Subject, Type string
	// Message makes the message, where somebody wants it. It is false for an event that nobody is given.
	Message func() (webhook.Message, bool)
}

// Intake is what became of events.
type Intake struct {
	// Put is how many messages wait because of them, and Full how many found no room.
	Put, Full int
}

// Position returns how far a stream was read, empty if nobody reads it.
func (v *View) Position(stream string) (string, error) {
	found, err := one(v, func(row scanner, at *string) error { return row.Scan(at) }, "SELECT position FROM webhook_cursor WHERE stream = $1", stream)
	if err != nil || found == nil {
		return "", err
	}
	return *found, nil
}

// TakeEvents puts events of a stream before the endpoints that want them, and notes that the stream was read from one position to another: it was empty if nobody did. Both are
// one change, so that of several who have read the same one puts it, and the others are told [ErrMoved].
func (d Deliveries) TakeEvents(ctx context.Context, stream, from, to string, events []Arrival) (in Intake, _ error) {
	err := d.change(ctx, func(tx *Tx) error {
		in = Intake{}
		there, err := tx.Position(stream)
		if err != nil {
			return err
		}
		if there != from {
			return ErrMoved
		}
		if err := tx.intake(events, &in); err != nil {
			return err
		}
		return tx.exec("INSERT INTO webhook_cursor (stream, position) VALUES ($1, $2) ON CONFLICT (stream) DO UPDATE SET position = excluded.position", stream, to)
	})
	if err != nil {
		return Intake{}, err
	}
	return in, nil
}

// LeaveStreams forgets how far streams were read, unless an endpoint gets events: who registers the first one gets what comes then, and not what was before.
func (d Deliveries) LeaveStreams(ctx context.Context) error {
	return d.change(ctx, func(tx *Tx) error {
		if some, err := tx.HasWebhooks(); some || err != nil {
			return err
		}
		return tx.exec("DELETE FROM webhook_cursor")
	})
}

// wants is an endpoint, and what it wants.
type wants struct {
	id    string
	types []string
}

// intake puts events before the endpoints that want them.
func (tx *Tx) intake(events []Arrival, in *Intake) error {
	room, known := tx.newRoom(), map[string][]wants{}
	for i := range events {
		e := &events[i]
		endpoints, ok := known[e.Subject]
		if !ok {
			var err error
			endpoints, err = many(&tx.View, func(row scanner, w *wants) error { return row.Scan(&w.id, names{&w.types}) },
				"SELECT id, types FROM webhook WHERE subject = $1 AND disabled = '' ORDER BY id", e.Subject)
			if err != nil {
				return err
			}
			known[e.Subject] = endpoints
		}
		endpoints = slices.DeleteFunc(slices.Clone(endpoints), func(w wants) bool { return !slices.Contains(w.types, e.Type) })
		if len(endpoints) == 0 {
			continue
		}
		message, ok := e.Message()
		if !ok {
			continue
		}
		// What came first is brought first.
		due := tx.now.Add(time.Duration(i-len(events)) * time.Microsecond)
		for _, endpoint := range endpoints {
			err := room.put(&delivery.Record{Endpoint: endpoint.id, Delivery: webhook.Begin(message, due)})
			switch {
			case errors.Is(err, delivery.ErrFull):
				in.Full++
			case err != nil:
				return err
			default:
				in.Put++
			}
		}
	}
	return nil
}
