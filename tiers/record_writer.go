package tiers

import (
	"encoding/json"
	"io"
	"sync"
)

// RecordWriter writes records as JSON lines, for [ReadRecords]. It is safe for concurrent use, and
// writes each line in one call.
type RecordWriter struct {
	mu sync.Mutex
	w  io.Writer
}

// NewRecordWriter returns a writer to w, which it does not buffer or close.
func NewRecordWriter(w io.Writer) *RecordWriter {
	return &RecordWriter{w: w}
}

// Write writes one record. It returns the error of the writer beneath, or that of a record which
// [Simulate] or [ReadRecords] would refuse: such a record is left out, or it would end every replay.
func (w *RecordWriter) Write(record Record) error {
	if err := record.check(); err != nil {
		return err
	}
	line, err := json.Marshal(record)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	if len(line) > maxRecordLine {
		return errTooLong
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err = w.w.Write(line)
	return err
}
