// Package delivery brings messages to many endpoints, again and again until each is delivered or dead (package webhook). A slow endpoint holds up no other.
//
// Messages wait in [Deliveries], such as a table. A [Worker] brings them.
package delivery

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/webhook"
)

// Record is a delivery to an endpoint.
type Record struct {
	// Endpoint is the id of the endpoint.
	Endpoint string
	// Delivery is the message and where it stands. Its id is unique for its endpoint.
	Delivery webhook.Delivery
	// Lease is that of the worker who makes the attempt. It is given by Due.
	Lease uint64
}

// Deliveries keep records. They are safe for concurrent use.
type Deliveries interface {
	// Due leases up to limit records that wait and are due, the oldest of each endpoint first, so that no endpoint has more than perEndpoint under lease. What is not
	// settled when its lease ends is due again.
	Due(ctx context.Context, now time.Time, lease time.Duration, limit, perEndpoint int) ([]Record, error)
	// Done stores what an attempt came to. The error is [ErrLease] if the lease is not that of the record any more, and nothing is stored.
	Done(ctx context.Context, r Record) error
}

var (
	// ErrFull says that there is no room for a further record of the endpoint.
	ErrFull = errors.New("delivery: there is no room for a further message to this endpoint")
	// ErrLease says that a lease has ended, and somebody else may have the record.
	ErrLease = errors.New("delivery: the lease has ended")
	// ErrLater says that nobody knows now what an endpoint is, such as because a database is away: the attempt is not made and counts for nothing. The record is due again
	// when its lease ends.
	ErrLater = errors.New("delivery: the endpoint is not known now")
	// ErrNotDead says that an endpoint has no dead record of that id.
	ErrNotDead = errors.New("delivery: the endpoint has no dead message of this id")
)

// MessageID returns the webhook-id of an event: the same each time, and another for each source and id, whatever characters these have.
func MessageID(e *stream.Envelope) string {
	const bytes = 16
	sum := sha256.Sum256([]byte(e.Source + "\x00" + e.ID))
	return "msg_" + hex.EncodeToString(sum[:bytes])
}
