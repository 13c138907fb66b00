// Package directorytest has the contract of the sources of package directory as tests: what a directory relies on,
// and what those who write records do.
package directorytest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/gqlgen-ratelimit/ratelimit/policy/directory"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Source is what is tested: a source that can be written.
type Source interface {
	directory.Source
	directory.Writer
}

// Harness is a source without records, and what can happen to it.
type Harness struct {
	// Open returns another client of the same records. It is required.
	Open func() Source
	// Lose makes the source forget everything. It is required.
	Lose func() error
}

// Run checks a source against the contract. It calls open for each test, and once before.
func Run(t *testing.T, open func(*testing.T) Harness) {
	t.Helper()
	_, hints := open(t).Open().(directory.Hinter)
	for _, test := range tests {
		if test.hints && !hints {
			continue
		}
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			test.check(&scene{T: t, Harness: h, Source: h.Open(), ctx: t.Context()})
		})
	}
}

type scene struct {
	*testing.T
	Harness
	Source

	ctx context.Context
}

type test struct {
	rule  string
	check func(*scene)
	// hints says that the rule is about sources that have some.
	hints bool
}

var (
	pro  = []byte(`{"tier":"pro"}`)
	free = []byte(`{"tier":"free"}`)
)

var tests = append(sourceTests, hintTests...)

var sourceTests = []test{
	{rule: "a source in which nothing was ever written says so", check: func(s *scene) {
		_, err := s.Tenant(s.ctx, "acme")
		s.is(err, directory.ErrEmpty)
		_, err = s.Changes(s.ctx, directory.Mark{})
		s.is(err, directory.ErrEmpty)
	}},
	{rule: "a record comes as it was written, whatever bytes its tenant has", check: func(s *scene) {
		for i, tenant := range []string{"acme", "a\x00\xff\n{}:", strings.Repeat("é", tiers.MaxLongName/2)} {
			revision := s.put(tenant, pro, 0)
			s.true(revision == uint64(i+1), "revision %d", revision)
			r, err := s.Open().Tenant(s.ctx, tenant)
			s.ok(err)
			s.true(r != nil && r.Tenant == tenant && string(r.Document) == string(pro) && r.Revision == revision, "got %v", r)
		}
		r, err := s.Tenant(s.ctx, "nobody")
		s.ok(err)
		s.true(r == nil, "got %v", r)
	}},
	{rule: "a record is replaced by who expects its revision, and by nobody else", check: func(s *scene) {
		first := s.put("acme", pro, 0)
		_, err := s.Put(s.ctx, "acme", free, 0)
		s.conflict(err, first)
		second := s.put("acme", free, first)
		_, err = s.Put(s.ctx, "acme", pro, first)
		s.conflict(err, second)
		_, err = s.Put(s.ctx, "other", pro, second)
		s.conflict(err, 0)
	}},
	{rule: "a repeat of what is there changes nothing", check: func(s *scene) {
		first := s.put("acme", pro, 0)
		s.true(s.put("acme", pro, 0) == first, "another revision")
		page, err := s.Changes(s.ctx, s.mark())
		s.ok(err)
		s.true(len(page.Changes) == 0, "got %v", page)
	}},
	{rule: "a record that is removed is gone, and a change", check: func(s *scene) {
		first := s.put("acme", pro, 0)
		mark := s.mark()
		second := s.put("acme", nil, first)
		r, err := s.Tenant(s.ctx, "acme")
		s.ok(err)
		s.true(r == nil, "got %v", r)
		page, err := s.Changes(s.ctx, mark)
		s.ok(err)
		s.true(len(page.Changes) == 1 && page.Changes[0] == directory.Change{Tenant: "acme", Revision: second}, "got %v", page)
		s.put("acme", pro, 0)
	}},
	{rule: "what is no record is not written", check: func(s *scene) {
		for _, bad := range [...]string{"[]", "{", `{"teir": "pro"}`, strings.Repeat(" ", tiers.MaxRecord+1), "{\"tier\":\"\xff\"}"} {
			_, err := s.Put(s.ctx, "acme", []byte(bad), 0)
			s.true(err != nil, "%.20q was written", bad)
		}
		for _, name := range [...]string{"", strings.Repeat("x", tiers.MaxLongName+1)} {
			_, err := s.Put(s.ctx, name, pro, 0)
			s.true(err != nil, "for a tenant of %d bytes", len(name))
		}
	}},
	{rule: "what has changed comes in pages and in order", check: func(s *scene) {
		s.put("first", pro, 0)
		mark := s.mark()
		const more = directory.MaxPage + 5
		for i := range more {
			s.put(fmt.Sprintf("t%d", i), pro, 0)
		}
		last, seen, pages := mark.Revision, make(map[string]bool), 0
		for again := true; again; pages++ {
			page, err := s.Changes(s.ctx, mark)
			s.ok(err)
			s.true(!page.Gap && len(page.Changes) <= directory.MaxPage, "a gap, or %d changes", len(page.Changes))
			for _, c := range page.Changes {
				s.true(c.Revision > last, "%d after %d", c.Revision, last)
				last, seen[c.Tenant] = c.Revision, true
			}
			mark, again = page.Through, page.More
		}
		s.true(len(seen) == more && pages == 2 && mark == s.mark(), "%d tenants in %d pages", len(seen), pages)
	}},
	{rule: "who has read nothing, or of another history, is told of a gap", check: func(s *scene) {
		s.put("acme", pro, 0)
		page, err := s.Changes(s.ctx, directory.Mark{})
		s.ok(err)
		s.true(page.Gap && !page.More && len(page.Changes) == 0 && page.Through.Revision == 1 && page.Through.Origin != "", "got %v", page)
		for _, wrong := range [...]directory.Mark{{Origin: "another", Revision: 1}, {Origin: page.Through.Origin, Revision: 9}} {
			got, err := s.Changes(s.ctx, wrong)
			s.ok(err)
			s.true(got.Gap && got.Through == page.Through, "got %v", got)
		}
	}},
	{rule: "a source that has lost everything begins another history", check: func(s *scene) {
		s.put("acme", pro, 0)
		mark := s.mark()
		s.ok(s.Lose())
		again := s.Open()
		_, err := again.Tenant(s.ctx, "acme")
		s.is(err, directory.ErrEmpty)
		_, err = again.Put(s.ctx, "other", pro, 0)
		s.ok(err)
		page, err := again.Changes(s.ctx, mark)
		s.ok(err)
		s.true(page.Gap && page.Through.Origin != mark.Origin, "got %v", page)
	}},
	{rule: "of many who expect the same one wins, and all changes are there in order", check: func(s *scene) {
		const writers, rounds = 8, 20
		s.put("acme", pro, 0)
		var won [writers]int
		// replaced has the winner of each revision that was replaced.
		var replaced sync.Map
		var group sync.WaitGroup
		for w := range writers {
			client := s.Open()
			group.Go(func() {
				for won[w] < rounds {
					r, err := client.Tenant(s.ctx, "acme")
					if err == nil && r == nil {
						err = errors.New("the record is gone")
					}
					if err == nil {
						_, err = client.Put(s.ctx, "acme", fmt.Appendf(nil, `{"tier":"w%dr%d"}`, w, won[w]), r.Revision)
					}
					switch {
					case err == nil:
						won[w]++
						if other, twice := replaced.LoadOrStore(r.Revision, w); twice {
							s.Errorf("writers %v and %d have both replaced revision %d", other, w, r.Revision)
							return
						}
					case !errors.Is(err, directory.ErrConflict):
						s.Errorf("unexpected error: %v", err)
						return
					}
				}
			})
		}
		group.Wait()
		s.true(s.mark().Revision == 1+writers*rounds, "revision %d: a write was lost, or counted twice", s.mark().Revision)
	}},
	{rule: "questions end with their context", check: func(s *scene) {
		s.put("acme", pro, 0)
		ctx, cancel := context.WithCancel(s.ctx)
		cancel()
		_, err := s.Tenant(ctx, "acme")
		s.true(err != nil, "a record")
		_, err = s.Changes(ctx, directory.Mark{})
		s.true(err != nil, "a page")
	}},
	{rule: "what a source has given is the caller's own", check: func(s *scene) {
		s.put("acme", pro, 0)
		r, err := s.Tenant(s.ctx, "acme")
		s.ok(err)
		clear(r.Document)
		r, err = s.Tenant(s.ctx, "acme")
		s.ok(err)
		s.true(string(r.Document) == string(pro), "got %q", r.Document)
	}},
}

// put writes a record.
func (s *scene) put(tenant string, document []byte, expected uint64) uint64 {
	s.Helper()
	revision, err := s.Put(s.ctx, tenant, document, expected)
	s.ok(err)
	return revision
}

// mark is the newest place in the history.
func (s *scene) mark() directory.Mark {
	s.Helper()
	page, err := s.Changes(s.ctx, directory.Mark{})
	s.ok(err)
	return page.Through
}

func (s *scene) conflict(err error, there uint64) {
	s.Helper()
	var conflict *directory.ConflictError
	s.true(errors.Is(err, directory.ErrConflict) && errors.As(err, &conflict) && conflict.There == there, "the error is %v, want %d to be there", err, there)
}

func (s *scene) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("unexpected error: %v", err)
	}
}

func (s *scene) is(err, target error) {
	s.Helper()
	if !errors.Is(err, target) {
		s.Fatalf("the error is %v, want %v", err, target)
	}
}

func (s *scene) true(holds bool, what string, args ...any) {
	s.Helper()
	if !holds {
		s.Fatalf(what, args...)
	}
}
