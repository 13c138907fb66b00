package tiers

import (
	"encoding/json"
	"io"
	"sync"
)

// RecordWriter writes records as JSON lines, for [ReadRecords]. It is safe for concurrent use, and
// writes each line in one call.
type RecordWriter struct {
	mu      sync.Mutex
	encoder *json.Encoder
}

// NewRecordWriter returns a writer to w, which it does not buffer or close.
func NewRecordWriter(w io.Writer) *RecordWriter {
	return &RecordWriter{encoder: json.NewEncoder(w)}
}

// Write writes one record. It returns the error of the writer beneath, or that of a record which
// [Simulate] would refuse.
func (w *RecordWriter) Write(record Record) error {
	if err := record.check(); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.encoder.Encode(record)
}
