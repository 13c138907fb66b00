// Package audittest is the contract of what an audit log is kept in, and a log in memory for tests. A log of one's own passes
// when
//
//	audittest.Run(t, func(t *testing.T) audit.Log { … })
//
// passes.
package audittest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
)

// Run checks a log against the contract. It calls open for each test, for an empty log.
func Run(t *testing.T, open func(*testing.T) audit.Log) {
	t.Helper()
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			test.check(&scene{T: t, log: open(t), ctx: t.Context()})
		})
	}
}

// Entry returns an entry that is different for each number, at a time of its own.
func Entry(n int) audit.Entry {
	return audit.Entry{
		Time:   time.Date(2026, 11, 22, 20, 0, n, 123456789, time.UTC),
		Actor:  audit.Actor{Subject: "ada", Issuer: "https://login.example.org", Method: "oidc", Address: "192.0.2.1"},
		Action: "override.set", Target: fmt.Sprintf("tenant-%d second", n), Tenant: fmt.Sprintf("tenant-%d", n),
		RevisionBefore: uint64(n), RevisionAfter: uint64(n) + 1,
		After: fmt.Appendf(nil, `{"factor": %d}`, n), Reason: "an import",
	}
}

// tests are the rules of the contract.
var tests = []struct {
	rule  string
	check func(*scene)
}{
	{"an empty log has nothing", (*scene).empty},
	{"rows are their exact bytes, in order", (*scene).exactBytes},
	{"each row follows from the one before", (*scene).chain},
	{"what is not the next row is refused", (*scene).noFork},
	{"a change that fails leaves nothing", (*scene).nothingIsLeft},
	{"concurrent changes do not fork the log", (*scene).concurrent},
	{"each mutant is found, with its number", (*scene).mutants},
	{"a tail that was cut off is found by a known row", (*scene).tail},
}

// scene is a log and what is done to it. Its methods fail the test on an error.
type scene struct {
	*testing.T

	log audit.Log
	ctx context.Context
}

// ok fails the test on an error.
func (s *scene) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// change makes a change that succeeds.
func (s *scene) change(do func(audit.Storage) error) {
	s.Helper()
	s.ok(s.log.Change(s.ctx, func(_ context.Context, storage audit.Storage) error { return do(storage) }))
}

// refused makes a change that fails.
func (s *scene) refused(what string, do func(audit.Storage) error) {
	s.Helper()
	if s.log.Change(s.ctx, func(_ context.Context, storage audit.Storage) error { return do(storage) }) == nil {
		s.Fatalf("%s was not refused", what)
	}
}

// add appends the entries with these numbers, each in a change.
func (s *scene) add(from, to int) {
	s.Helper()
	for n := from; n < to; n++ {
		s.change(func(storage audit.Storage) error {
			e, err := audit.Append(s.ctx, storage, Entry(n))
			if err == nil && e.Sequence != int64(n) {
				err = fmt.Errorf("entry %d has the sequence %d", n, e.Sequence)
			}
			return err
		})
	}
}

// has compares the size of the log.
func (s *scene) has(size int64) {
	s.Helper()
	s.change(func(storage audit.Storage) error {
		got, err := storage.Size(s.ctx)
		if err == nil && got != size {
			err = fmt.Errorf("the size is %d, want %d", got, size)
		}
		return err
	})
}

// rows returns all rows of the log.
func (s *scene) rows() (rows []audit.Row) {
	s.Helper()
	s.change(func(storage audit.Storage) (err error) {
		rows, err = storage.Rows(s.ctx, 0, 1000)
		return err
	})
	return rows
}

// follows holds that the log has so many rows, of which each follows from the one before.
func (s *scene) follows(size int64) {
	s.Helper()
	s.change(func(storage audit.Storage) error {
		report, err := audit.VerifyLog(s.ctx, storage, nil)
		if err == nil && report.Rows != size {
			err = fmt.Errorf("%d rows follow from each other, want %d", report.Rows, size)
		}
		return err
	})
}

func (s *scene) empty() {
	s.has(0)
	if rows := s.rows(); len(rows) > 0 {
		s.Fatalf("%d rows", len(rows))
	}
}

func (s *scene) exactBytes() {
	var want [][]byte
	for n := range 5 {
		e := Entry(n)
		if n == 0 {
			e.Reason = "quotes \" and \\, lines\n, <html>, 日本語, \u2028"
			e.Before = []byte(`{"b":1,"a":[1.0,1e2,"\u00e9"],"b":2}`)
		}
		s.change(func(storage audit.Storage) error {
			stored, err := audit.Append(s.ctx, storage, e)
			s.ok(err)
			record, err := stored.Record()
			want = append(want, record)
			return err
		})
	}
	s.change(func(storage audit.Storage) error {
		for from := range 6 {
			for n := 1; n < 7; n++ {
				rows, err := storage.Rows(s.ctx, int64(from), n)
				s.ok(err)
				var records [][]byte
				for _, row := range rows {
					records = append(records, row.Record)
				}
				if rest := want[from:min(from+n, 5)]; !bytes.Equal(bytes.Join(records, []byte("\n")), bytes.Join(rest, []byte("\n"))) {
					return fmt.Errorf("%d records from %d are %q, want %q", n, from, records, rest)
				}
			}
		}
		return nil
	})
}

func (s *scene) chain() {
	// More than a page.
	const entries = 150
	s.add(0, entries)
	var last audit.Hash
	for n, row := range s.rows() {
		if last = audit.ChainHash(last, row.Record); row.Hash != last {
			s.Fatalf("the hash of row %d is %s, want %s", n, row.Hash, last)
		}
	}
	s.follows(entries)
}

func (s *scene) noFork() {
	s.add(0, 2)
	for _, sequence := range []int64{0, 1, 3} {
		s.refused(fmt.Sprintf("a second row %d of 2", sequence), func(storage audit.Storage) error {
			return storage.Append(s.ctx, sequence, audit.Row{Record: []byte("{}")})
		})
	}
	s.add(2, 4)
	s.follows(4)
}

func (s *scene) nothingIsLeft() {
	s.add(0, 3)
	broken := errors.New("the change failed")
	err := s.log.Change(s.ctx, func(ctx context.Context, storage audit.Storage) error {
		_, err := audit.Append(ctx, storage, Entry(3))
		s.ok(err)
		return broken
	})
	if !errors.Is(err, broken) {
		s.Fatalf("the error is %v", err)
	}
	s.has(3)
	s.add(3, 5)
	s.follows(5)
}

func (s *scene) concurrent() {
	const writers, each = 8, 10
	s.together(writers, func(int) error {
		for n := range each {
			err := s.log.Change(s.ctx, func(ctx context.Context, storage audit.Storage) error {
				_, err := audit.Append(ctx, storage, Entry(n))
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	s.follows(writers * each)
}

func (s *scene) mutants() {
	s.add(0, 7)
	for _, m := range Mutants(s.rows()) {
		log := NewMemory(m.Rows)
		_, err := audit.VerifyLog(s.ctx, log, nil)
		s.names(m, err)
		var export bytes.Buffer
		s.ok(audit.Export(s.ctx, log, &export))
		_, err = audit.Verify(&export, nil)
		s.names(m, err)
	}
}

// names holds that an error names the row of a mutant.
func (s *scene) names(m Mutant, err error) {
	s.Helper()
	var tampered *audit.TamperError
	if !errors.As(err, &tampered) || tampered.Row != m.Row {
		s.Errorf("%s: the error is %v, want one of row %d", m.Name, err, m.Row)
	}
}

func (s *scene) tail() {
	s.add(0, 7)
	rows := s.rows()
	known := audit.Mark{Sequence: 6, Hash: rows[6].Hash}
	for size := range 7 {
		log := NewMemory(rows[:size])
		_, err := audit.VerifyLog(s.ctx, log, nil)
		s.ok(err)
		_, err = audit.VerifyLog(s.ctx, log, &known)
		s.names(Mutant{Name: fmt.Sprintf("cut after %d rows", size), Row: int64(size)}, err)
	}
	s.add(7, 9)
	s.change(func(storage audit.Storage) error {
		_, err := audit.VerifyLog(s.ctx, storage, &known)
		return err
	})
}

// together runs functions at once.
func (s *scene) together(n int, do func(i int) error) {
	s.Helper()
	done := make(chan error, n)
	for i := range n {
		go func() { done <- do(i) }()
	}
	for range n {
		s.ok(<-done)
	}
}
