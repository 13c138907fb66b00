package announce

import (
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
)

// maxData is how many bytes the data of an event has. A longer record leaves what was before and after out; without them every one is shorter.
const maxData = 32 << 10

// SourceOf returns the source of events of the audit log of a namespace. An empty one means main.
func SourceOf(namespace string) string {
	if namespace == "" {
		namespace = "main"
	}
	return "ratelimit:" + url.PathEscape(namespace) + "/audit"
}

// envelopeOf returns the event of a row. The error is that of a record which is none, and repeats nothing of it.
func (a *Announcer) envelopeOf(row audit.Row) (stream.Envelope, error) {
	record := row.Record
	// A newer daemon may have written fields that this one does not know: they go on as they are.
	var e audit.Entry
	if json.Unmarshal(record, &e) != nil {
		return stream.Envelope{}, fmt.Errorf("announce: the record of an entry is no JSON")
	}
	name := types[access.Action(e.Action)]
	if name == "" {
		name = otherType
	}
	data, err := dataOf(record, e)
	return stream.Envelope{
		// The hash of the row is in it, so that an entry of a database which was restored, and has gone on otherwise, is another event.
		ID:     fmt.Sprintf("%d-%s", e.Sequence, row.Hash),
		Source: a.cfg.Source, Type: name, Subject: stream.Subject(e.Tenant), Time: e.Time, Sequence: uint64(e.Sequence) + 1,
		Data: data, Topic: a.cfg.Topic,
	}, err
}

// dataOf returns what an event says: the record as it is, or, of one that is too long, without what was before and after.
func dataOf(record []byte, e audit.Entry) (json.RawMessage, error) {
	if len(record) <= maxData {
		return record, nil
	}
	e.Before, e.After = nil, nil
	short, err := e.Record()
	if err != nil {
		return nil, err
	}
	return append(short[:len(short)-1], `,"cut":true}`...), nil
}

// timeOf returns when the entry of a record was made, the zero time if that cannot be read.
func timeOf(record []byte) time.Time {
	var e struct {
		Time time.Time `json:"time"`
	}
	_ = json.Unmarshal(record, &e)
	return e.Time
}
