package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Record returns the bytes of the entry as they are stored: one line of JSON with the fields in the order of [Entry], without spaces and without
// empty fields. The hash of a row is that of these bytes, whatever another version would write. The error is an [*EntryError].
func (e *Entry) Record() ([]byte, error) {
	if e.Sequence < 0 {
		return nil, &EntryError{"sequence", "is negative"}
	}
	if err := e.Check(); err != nil {
		return nil, err
	}
	inUTC := *e
	inUTC.Time = truncated(e.Time)
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(&inUTC); err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// ParseRecord reads what [Entry.Record] returns. Fields that no entry has, and anything behind the record, are an error. The entry keeps no part of
// record. An error repeats nothing of it.
func ParseRecord(record []byte) (*Entry, error) {
	if len(record) > MaxRecord {
		return nil, fmt.Errorf("audit: a record of %d bytes, want at most %d", len(record), MaxRecord)
	}
	var e Entry
	decoder := json.NewDecoder(bytes.NewReader(record))
	decoder.DisallowUnknownFields()
	if decoder.Decode(&e) != nil {
		return nil, errNotARecord
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errNotARecord
	}
	if e.Sequence < 0 {
		return nil, &EntryError{"sequence", "is negative"}
	}
	return &e, e.Check()
}

var errNotARecord = errors.New("audit: not the record of an entry")

// truncated returns the time as it is stored.
func truncated(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }
