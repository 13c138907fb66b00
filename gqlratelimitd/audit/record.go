package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// timeFormat is RFC 3339 in UTC with six digits, whatever they are: a time has one text.
const timeFormat = "2006-01-02T15:04:05.000000Z"

// Record returns the canonical bytes of the entry, which are stored as they are and are the leaf of the log: one line of JSON with the
// fields in the order of [Entry], without spaces, without empty fields, with the time to the microsecond. Characters are escaped where JSON
// asks for it, as \u00xx, and nowhere else. The error is an [*EntryError].
//
// The bytes are written here and not by encoding/json, whose output may differ from one version of Go to the next.
func (e *Entry) Record() ([]byte, error) {
	if e.Sequence < 0 {
		return nil, &EntryError{"sequence", "is negative"}
	}
	if err := e.Check(); err != nil {
		return nil, err
	}
	w := writer{b: make([]byte, 0, 512+len(e.Before)+len(e.After))}
	w.raw("sequence", strconv.FormatInt(e.Sequence, 10))
	w.text("time", e.Time.UTC().Format(timeFormat))
	actor := writer{}
	for _, t := range e.texts() {
		if name, of := cutActor(t.field); of {
			actor.text(name, t.value)
		}
	}
	w.raw("actor", string(actor.end()))
	w.text("action", e.Action)
	w.text("target", e.Target)
	w.text("tenant", e.Tenant)
	w.number("revisionBefore", e.RevisionBefore)
	w.number("revisionAfter", e.RevisionAfter)
	w.value("before", e.Before)
	w.value("after", e.After)
	w.text("reason", e.Reason)
	w.text("ticket", e.Ticket)
	w.text("approval", e.Approval)
	w.text("request", e.Request)
	return w.end(), nil
}

// cutActor returns the name of a field of the actor within the actor.
func cutActor(field string) (string, bool) {
	return strings.CutPrefix(field, "actor.")
}

// ParseRecord reads what [Entry.Record] returns, and nothing else: bytes that would be read as the same entry but are not the canonical
// ones are an error. The entry keeps no part of record. An error repeats nothing of it.
func ParseRecord(record []byte) (*Entry, error) {
	if len(record) > MaxRecord {
		return nil, fmt.Errorf("audit: a record of %d bytes, want at most %d", len(record), MaxRecord)
	}
	var e Entry
	if json.Unmarshal(record, &e) != nil {
		return nil, errNotARecord
	}
	again, err := e.Record()
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(again, record) {
		return nil, errNotCanonical
	}
	return &e, nil
}

var (
	errNotARecord   = fmt.Errorf("audit: not the record of an entry")
	errNotCanonical = fmt.Errorf("audit: not the canonical bytes of an entry")
)

// truncated returns the time as it is stored.
func truncated(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// writer writes an object of JSON.
type writer struct{ b []byte }

// name begins a field.
func (w *writer) name(name string) {
	separator := byte(',')
	if len(w.b) == 0 {
		separator = '{'
	}
	w.b = append(w.b, separator, '"')
	w.b = append(append(w.b, name...), '"', ':')
}

// raw writes a field of which the value is JSON.
func (w *writer) raw(name, value string) {
	w.name(name)
	w.b = append(w.b, value...)
}

// text writes a text that is not empty.
func (w *writer) text(name, value string) {
	if value == "" {
		return
	}
	w.name(name)
	w.b = appendText(w.b, value)
}

// number writes a number that is not zero.
func (w *writer) number(name string, n uint64) {
	if n != 0 {
		w.raw(name, strconv.FormatUint(n, 10))
	}
}

// value writes a value that is valid JSON, without spaces around what it consists of.
func (w *writer) value(name string, value json.RawMessage) {
	if len(value) == 0 {
		return
	}
	w.name(name)
	compact := bytes.NewBuffer(w.b)
	// It was checked to be valid.
	_ = json.Compact(compact, value)
	w.b = compact.Bytes()
}

// end ends the object.
func (w *writer) end() []byte { return append(w.b, '}') }

// appendText appends a text of UTF-8 as JSON.
func appendText(b []byte, s string) []byte {
	const digits = "0123456789abcdef"
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
