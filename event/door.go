package event

import (
	"log/slog"
	"time"
)

// RefusedAtDoor says that the front door refused a request, or an operation on a WebSocket, before it had a price. It is
// told of a sample.
type RefusedAtDoor struct {
	// At is when, by the clock of the replica.
	At time.Time `json:"at"`
	// Layer is what refused, as clients are told it, and Code the code of the refusal: empty for a request that could not be
	// read.
	Layer string `json:"layer"`
	Code  string `json:"code,omitempty"`
	// Client is the address that the request came from, or the network that it is in. It is empty where the address is
	// not known.
	Client string `json:"client,omitempty"`
	// Key is a hash of the API key, which this process alone makes. It is empty if there was no key.
	Key string `json:"key,omitempty"`
	// Limit is the limit that refused, and Unit what it counts. They are empty if it was none.
	Limit string `json:"limit,omitempty"`
	Unit  string `json:"unit,omitempty"`
	// Message is what the client was told.
	Message string `json:"message,omitempty"`
	// Mode is enforce, or what the limit does in the place of refusing: warn or shadow.
	Mode string `json:"mode,omitempty"`
	// RetryAfter is when to come again. It is zero if waiting does not help.
	RetryAfter time.Duration `json:"retryAfter,omitempty"`
	// Untold is how many others there were since the last one that was told.
	Untold int64 `json:"untold,omitempty"`
}

// Name returns refused_at_door.
func (RefusedAtDoor) Name() string { return "refused_at_door" }

// LogValue returns all fields but the time.
func (e RefusedAtDoor) LogValue() slog.Value {
	var a attributes
	a.text("layer", e.Layer)
	a.text("code", e.Code)
	a.text("client", e.Client)
	a.text("key", e.Key)
	a.text("limit", e.Limit)
	a.text("unit", e.Unit)
	a.text("message", e.Message)
	a.text("mode", e.Mode)
	a.duration("retryAfter", e.RetryAfter)
	a.number("untold", e.Untold)
	return slog.GroupValue(a...)
}
