package audit

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
)

// Export writes a log as lines of JSON, one for each row: the fields of the record, and behind them hash. [Verify] reads it.
//
// It reads in pages, and rows that are appended meanwhile do no harm: the reader need not be one transaction.
func Export(ctx context.Context, r Reader, w io.Writer) error {
	lines := bufio.NewWriter(w)
	err := each(ctx, r, func(row Row) error {
		_, err := lines.Write(lineOf(row))
		return err
	})
	if err = errors.Join(err, lines.Flush()); err != nil {
		return fmt.Errorf("audit: export: %w", err)
	}
	return nil
}

// hashField stands between the fields of a record and its hash, and hashEnd behind the hash.
const (
	hashField = `,"hash":"`
	hashEnd   = `"}`
	// hashLength is how many bytes the hash takes in a line, with what stands around it.
	hashLength = len(hashField) + 2*len(Hash{}) + len(hashEnd)
	// maxLine is how many bytes a line has.
	maxLine = MaxRecord + hashLength
)

// lineOf returns a row as a line of an export, with its end.
func lineOf(row Row) []byte {
	line := make([]byte, 0, len(row.Record)+hashLength)
	// The last byte of a record closes its object.
	line = append(line, row.Record[:max(0, len(row.Record)-1)]...)
	line = append(line, hashField...)
	line = append(line, row.Hash.String()...)
	return append(line, hashEnd+"\n"...)
}

// rowOf reads a line of an export without its end.
func rowOf(line []byte) (row Row, ok bool) {
	if len(line) < hashLength {
		return Row{}, false
	}
	record, hash := line[:len(line)-hashLength], line[len(line)-hashLength:]
	digits, begins := bytes.CutPrefix(hash, []byte(hashField))
	digits, ends := bytes.CutSuffix(digits, []byte(hashEnd))
	read, err := parseHash(string(digits))
	return Row{Record: append(bytes.Clone(record), '}'), Hash: read}, begins && ends && err == nil
}
