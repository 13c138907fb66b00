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
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

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
	{"entries are their exact bytes, in order", (*scene).exactBytes},
	{"the root is that of the records", (*scene).roots},
	{"hashes come in the order that was asked for", (*scene).order},
	{"what is not the next entry is refused", (*scene).noFork},
	{"checkpoints are kept in the order in which they came", (*scene).checkpoints},
	{"a change that fails leaves nothing", (*scene).nothingIsLeft},
	{"concurrent changes do not fork the log", (*scene).concurrent},
	{"signers that share a log agree", (*scene).signers},
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

// has compares the size of the log and its newest checkpoint.
func (s *scene) has(size int64, newest string) {
	s.Helper()
	s.change(func(storage audit.Storage) error {
		got, err := storage.Size(s.ctx)
		s.ok(err)
		if got != size {
			return fmt.Errorf("the size is %d, want %d", got, size)
		}
		checkpoint, err := storage.Newest(s.ctx)
		if string(checkpoint) != newest {
			return fmt.Errorf("the newest checkpoint is %q, want %q", checkpoint, newest)
		}
		return err
	})
}

func (s *scene) empty() {
	s.has(0, "")
	s.change(func(storage audit.Storage) error {
		records, err := storage.Records(s.ctx, 0, 10)
		s.ok(err)
		checkpoints, err := storage.Checkpoints(s.ctx, 0, 10)
		if len(records)+len(checkpoints) != 0 {
			return fmt.Errorf("%d records and %d checkpoints", len(records), len(checkpoints))
		}
		return err
	})
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
				records, err := storage.Records(s.ctx, int64(from), n)
				s.ok(err)
				if rest := want[from:min(from+n, 5)]; !bytes.Equal(bytes.Join(records, []byte("\n")), bytes.Join(rest, []byte("\n"))) {
					return fmt.Errorf("%d records from %d are %q, want %q", n, from, records, rest)
				}
			}
		}
		return nil
	})
}

func (s *scene) roots() {
	const entries = 40
	s.add(0, entries)
	plain := &Memory{}
	for n := range entries {
		_, err := audit.Append(s.ctx, plain, Entry(n))
		s.ok(err)
	}
	s.change(func(storage audit.Storage) error {
		for size := int64(1); size <= entries; size++ {
			want, err := audit.Root(s.ctx, plain, size)
			s.ok(err)
			root, err := audit.Root(s.ctx, storage, size)
			s.ok(err)
			if root != want {
				return fmt.Errorf("the root of %d entries is %s, want %s", size, root, want)
			}
		}
		return nil
	})
}

func (s *scene) order() {
	s.add(0, 8)
	s.change(func(storage audit.Storage) error {
		hashes, err := storage.Hashes(s.ctx, []int64{5, 0, 3})
		s.ok(err)
		for i, index := range []int64{5, 0, 3} {
			alone, err := storage.Hashes(s.ctx, []int64{index})
			s.ok(err)
			if len(hashes) != 3 || len(alone) != 1 || hashes[i] != alone[0] {
				return fmt.Errorf("the hashes are %s, and alone %s", hashes, alone)
			}
		}
		return nil
	})
	s.refused("a hash that is not there", func(storage audit.Storage) error {
		_, err := storage.Hashes(s.ctx, []int64{0, 1000})
		return err
	})
}

func (s *scene) noFork() {
	s.add(0, 2)
	for _, sequence := range []int64{0, 1, 3} {
		s.refused(fmt.Sprintf("a second entry %d of 2", sequence), func(storage audit.Storage) error {
			return storage.Append(s.ctx, sequence, []byte("{}"), []tlog.Hash{{1}})
		})
	}
	s.add(2, 4)
	s.has(4, "")
}

func (s *scene) checkpoints() {
	s.add(0, 4)
	// Two of one size are kept both: the key may change without an entry.
	for i, size := range []int64{1, 3, 3, 4} {
		s.change(func(storage audit.Storage) error {
			return storage.AppendCheckpoint(s.ctx, size, fmt.Appendf(nil, "%d\n\n— é\n", i))
		})
	}
	s.has(4, "3\n\n— é\n")
	s.change(func(storage audit.Storage) error {
		for _, c := range []struct {
			from int64
			n    int
			want string
		}{{0, 10, "0123"}, {1, 2, "01"}, {2, 10, "123"}, {3, 2, "12"}, {4, 10, "3"}, {5, 10, ""}} {
			found, err := storage.Checkpoints(s.ctx, c.from, c.n)
			s.ok(err)
			var got strings.Builder
			for _, checkpoint := range found {
				got.WriteByte(checkpoint[0])
			}
			if got.String() != c.want {
				return fmt.Errorf("%d checkpoints from size %d are %q, want %q", c.n, c.from, got.String(), c.want)
			}
		}
		return nil
	})
	s.refused("a checkpoint of before", func(storage audit.Storage) error { return storage.AppendCheckpoint(s.ctx, 2, []byte("older")) })
}

func (s *scene) nothingIsLeft() {
	s.add(0, 3)
	broken := errors.New("the change failed")
	err := s.log.Change(s.ctx, func(ctx context.Context, storage audit.Storage) error {
		_, err := audit.Append(ctx, storage, Entry(3))
		s.ok(err)
		s.ok(storage.AppendCheckpoint(ctx, 4, []byte("checkpoint")))
		return broken
	})
	if !errors.Is(err, broken) {
		s.Fatalf("the error is %v", err)
	}
	s.has(3, "")
	s.add(3, 5)
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
	s.has(writers*each, "")
	plain := &Memory{}
	s.change(func(storage audit.Storage) error {
		records, err := storage.Records(s.ctx, 0, writers*each+1)
		s.ok(err)
		for _, record := range records {
			e, err := audit.ParseRecord(record)
			s.ok(err)
			sequence := e.Sequence
			e, err = audit.Append(s.ctx, plain, *e)
			s.ok(err)
			if e.Sequence != sequence {
				return fmt.Errorf("entry %d has the sequence %d", e.Sequence, sequence)
			}
		}
		want, err := audit.Root(s.ctx, plain, writers*each)
		s.ok(err)
		root, err := audit.Root(s.ctx, storage, writers*each)
		if root != want {
			return fmt.Errorf("the root is %s, want %s", root, want)
		}
		return err
	})
}

func (s *scene) signers() {
	const signers, each = 3, 5
	private, public, err := audit.NewKey("log.example.org")
	s.ok(err)
	key, err := audit.ParseKey(private)
	s.ok(err)
	s.together(signers, func(i int) error {
		signer, err := audit.NewSigner(s.log, audit.SignerConfig{Key: key})
		if err != nil {
			return err
		}
		for n := range each {
			err := s.log.Change(s.ctx, func(ctx context.Context, storage audit.Storage) error {
				_, err := audit.Append(ctx, storage, Entry(i*each+n))
				return err
			})
			if err != nil {
				return err
			}
			if _, err := signer.Sign(s.ctx, Entry(n).Time); err != nil {
				return err
			}
		}
		return nil
	})
	s.change(func(storage audit.Storage) error {
		var export bytes.Buffer
		if err := audit.Export(s.ctx, storage, &export); err != nil {
			return err
		}
		report, err := audit.Verify(&export, audit.VerifyConfig{Keys: []string{public}})
		if err == nil && report.Newest.Size != signers*each {
			err = fmt.Errorf("the checkpoints end with %d entries of %d", report.Newest.Size, signers*each)
		}
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
