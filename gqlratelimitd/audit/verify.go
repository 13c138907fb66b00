package audit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Report is what a log was verified to be.
type Report struct {
	// Rows is how many there are.
	Rows int64
	// Last is the last row. It is what to keep elsewhere, so that a later verification finds rows that were cut off. It means nothing
	// where there are no rows.
	Last Mark
}

// Verify reads an export and returns what it was verified to be. It holds one row at a time. The error is a [*TamperError] that names
// the first row which was removed, changed, inserted or moved.
//
// Known is a row that was kept elsewhere. With it Verify finds that the log ends before that row, and that the log was written anew up
// to it. Nil knows none: rows that were cut off at the end are not found then.
func Verify(export io.Reader, known *Mark) (*Report, error) {
	v := verifier{known: known}
	lines := bufio.NewReaderSize(export, maxLine+1)
	for {
		line, err := lines.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0:
			return v.end()
		case errors.Is(err, io.EOF):
			return nil, v.wrong("is cut: the export ends within its line")
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, v.wrong("has a line that is longer than any of an export")
		case err != nil:
			return nil, fmt.Errorf("audit: read the export: %w", err)
		}
		row, ok := rowOf(line[:len(line)-1])
		if !ok {
			return nil, v.wrong("is not a line of an export")
		}
		if err := v.add(row); err != nil {
			return nil, err
		}
	}
}

// VerifyLog is [Verify] of a log where it is kept.
func VerifyLog(ctx context.Context, r Reader, known *Mark) (*Report, error) {
	v := verifier{known: known}
	if err := each(ctx, r, v.add); err != nil {
		return nil, err
	}
	return v.end()
}

// verifier verifies rows, one after the other.
type verifier struct {
	known *Mark
	// rows is how many were verified, and last the hash of the last one.
	rows int64
	last Hash
}

// wrong is the error of the row that comes next.
func (v *verifier) wrong(problem string) error { return &TamperError{Row: v.rows, Problem: problem} }

// add verifies the next row.
func (v *verifier) add(row Row) error {
	e, err := ParseRecord(row.Record)
	switch {
	case err != nil:
		return v.wrong("was changed: it is " + strings.TrimPrefix(err.Error(), "audit: "))
	case e.Sequence > v.rows:
		return v.wrong(fmt.Sprintf("is missing: row %d stands in its place", e.Sequence))
	case e.Sequence < v.rows:
		return v.wrong(fmt.Sprintf("is another one: row %d was inserted or moved there", e.Sequence))
	case ChainHash(v.last, row.Record) != row.Hash:
		return v.wrong("does not fit its hash and the row before: one of them was changed, removed or inserted")
	case v.known != nil && v.known.Sequence == v.rows && v.known.Hash != row.Hash:
		return v.wrong("is not the one that is known: the log was written anew, from this row or an earlier one on")
	}
	v.rows, v.last = v.rows+1, row.Hash
	return nil
}

// end says what was verified, after the last row.
func (v *verifier) end() (*Report, error) {
	if v.known != nil && v.known.Sequence >= v.rows {
		return nil, v.wrong(fmt.Sprintf("is missing: the log ends before it, and row %d is known", v.known.Sequence))
	}
	return &Report{Rows: v.rows, Last: Mark{Sequence: v.rows - 1, Hash: v.last}}, nil
}
