package audit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// exportFormat is the format of an export. Its first line names it and the log.
const exportFormat = "gqlratelimitd-audit-1"

// ErrUnsigned says that a log has no checkpoint yet, and so nothing that an export could be verified against.
var ErrUnsigned = errors.New("audit: the log has no signed checkpoint yet")

// Export writes a log up to its newest checkpoint, in lines of JSON: a line that names the format and the log, then the records as the
// bytes that they are, and each checkpoint after the last entry that it covers. [Verify] reads it. Entries that no checkpoint
// covers are left out: call [Signer.Sign] before.
//
// It reads in pages, and what is appended meanwhile does no harm: the reader need not be one transaction.
func Export(ctx context.Context, r Reader, w io.Writer) error {
	signed, err := r.Newest(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("audit: export: %w", err)
	case len(signed) == 0:
		return ErrUnsigned
	}
	last, err := readCheckpoint(signed)
	if err != nil {
		return err
	}
	e := exporter{r: r, w: bufio.NewWriter(w)}
	e.line(headerOf(last.Name))
	for size := int64(0); err == nil && size <= last.Size; {
		size, err = e.checkpoints(ctx, size, last.Size)
	}
	if err != nil {
		return fmt.Errorf("audit: export: %w", err)
	}
	if err := e.w.Flush(); err != nil {
		return fmt.Errorf("audit: export: %w", err)
	}
	return nil
}

// exporter writes an export.
type exporter struct {
	r Reader
	w *bufio.Writer
	// written is how many entries were written.
	written int64
}

// line writes a line. bufio keeps its error.
func (e *exporter) line(line []byte) {
	_, _ = e.w.Write(line)
	_ = e.w.WriteByte('\n')
}

// checkpoints writes the entries and checkpoints of some sizes from one on, up to a last one, and returns the size that follows.
func (e *exporter) checkpoints(ctx context.Context, from, last int64) (next int64, err error) {
	found, err := e.r.Checkpoints(ctx, from, page)
	if err != nil {
		return 0, err
	}
	if len(found) == 0 {
		return 0, fmt.Errorf("the checkpoints end before the newest one, of %d entries", last)
	}
	sizes := make([]int64, len(found))
	for i, signed := range found {
		c, err := readCheckpoint(signed)
		if err != nil {
			return 0, err
		}
		sizes[i] = c.Size
	}
	// Where more may follow, those of the last size are read again with what follows: there may be another of it.
	end := sizes[len(sizes)-1]
	if len(found) < page || end == from {
		end++
	}
	for i, signed := range found {
		if sizes[i] >= end || sizes[i] > last {
			break
		}
		if err := e.records(ctx, sizes[i]); err != nil {
			return 0, err
		}
		e.line(lineOf(signed))
	}
	return end, nil
}

// records writes entries up to a size.
func (e *exporter) records(ctx context.Context, size int64) error {
	for e.written < size {
		records, err := e.r.Records(ctx, e.written, int(min(page, size-e.written)))
		if err != nil {
			return err
		}
		if len(records) == 0 {
			return &TamperError{From: e.written, To: size, Problem: "they were signed, and are not there"}
		}
		for _, record := range records {
			e.line(record)
			e.written++
		}
	}
	return nil
}

// headerOf returns the first line of the export of a log.
func headerOf(name string) []byte {
	w := writer{}
	w.text("format", exportFormat)
	w.text("log", name)
	return w.end()
}

// checkpointMark is what a line with a checkpoint begins with. A record begins otherwise.
const checkpointMark = `{"checkpoint":`

// lineOf returns the line of a checkpoint.
func lineOf(signed []byte) []byte {
	w := writer{}
	w.text("checkpoint", string(signed))
	return w.end()
}

// readLine reads what lineOf has returned, and nothing else.
func readLine(line []byte) ([]byte, error) {
	var read struct {
		Checkpoint string `json:"checkpoint"`
	}
	if err := json.Unmarshal(line, &read); err != nil || !bytes.Equal(lineOf([]byte(read.Checkpoint)), line) {
		return nil, errNoCheckpoint
	}
	return []byte(read.Checkpoint), nil
}
