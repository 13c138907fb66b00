package simulate

import (
	"encoding/json"
	"io"
	"sync"
)

// Writer writes records as JSON lines, for [Read]. It is safe for concurrent use, and
// writes each line in one call.
type Writer struct {
	mu sync.Mutex
	w  io.Writer
}

// NewWriter returns a writer to w, which it does not buffer or close.
func NewWriter(w io.Writer) *Writer {
	return &Writer{w: w}
}

// Write writes one record. It returns the error of the writer beneath, or that of a record which
// [Run] or [Read] would refuse: such a record is left out, or it would end every replay.
func (w *Writer) Write(record Record) error {
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
