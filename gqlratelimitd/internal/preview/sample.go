package preview

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/digest"
	"github.com/gqlgen-ratelimit/ratelimit/tiers/simulate"
)

// ErrKey says that records are of tenants who would not have been recorded under the key: the instances have another one.
var ErrKey = errors.New("preview: the key of the digests is not the one of the instances: write theirs into Config.Key")

// everybody is the bound of a sample that all tenants are in.
const everybody = math.MaxUint64

// sample is everything that some tenants have asked for.
type sample struct {
	key     []byte
	most    int
	below   uint64
	tenants map[string]*tenant
	// held is how many operations and tenants there are.
	held               int
	from, to           time.Time
	chunks, unreadable int
	alone              int
}

// tenant is what one tenant has asked for.
type tenant struct {
	hash  uint64
	kinds []kind
	n     int
	// alone says that it has asked for more than fits beside others.
	alone bool
}

// kind are operations that were alike, over a second.
type kind struct {
	record   simulate.Record
	from, to time.Time
	n        int
	refused  int64
	mixed    bool
}

// read reads what there is. What cannot be read is counted.
func read(ctx context.Context, chunks iter.Seq2[digest.Chunk, error], key []byte, most int) (*sample, error) {
	s := &sample{key: key, most: most, below: everybody, tenants: make(map[string]*tenant)}
	for chunk, err := range chunks {
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, digest.ErrUnreadable):
			s.unreadable++
			continue
		case err != nil:
			return nil, err
		case chunk.From.UnixMilli() <= 0 || chunk.To.Before(chunk.From):
			s.unreadable++
			continue
		}
		if err := s.add(&chunk); err != nil {
			return nil, err
		}
	}
	// Chunks that came last may have had fewer tenants than those before.
	s.narrow(s.below)
	return s, nil
}

func (s *sample) add(chunk *digest.Chunk) error {
	s.chunks++
	s.below = min(s.below, chunk.Below)
	if s.from.IsZero() || chunk.From.Before(s.from) {
		s.from = chunk.From
	}
	if chunk.To.After(s.to) {
		s.to = chunk.To
	}
	for i := range chunk.Records {
		record := &chunk.Records[i]
		name := unwritten(record.Tenant)
		if name == "" || record.N <= 0 || record.Cost < 0 {
			continue
		}
		hash := digest.HashTenant(s.key, name)
		if !chunk.Has(hash) {
			return ErrKey
		}
		if s.has(hash) {
			s.put(name, hash, chunk, record)
		}
		if s.held > s.most {
			s.shrink()
		}
	}
	return nil
}

func (s *sample) has(hash uint64) bool { return hash < s.below || s.below == everybody }

func (s *sample) put(name string, hash uint64, chunk *digest.Chunk, record *digest.Record) {
	t := s.tenants[name]
	if t == nil {
		t = &tenant{hash: hash}
		s.tenants[name] = t
		s.held++
	}
	if t.alone {
		return
	}
	n := int(min(record.N, int64(s.most)+1))
	if t.n+n > s.most/2 {
		s.held -= t.n
		s.alone++
		t.kinds, t.n, t.alone = nil, 0, true
		return
	}
	t.n += n
	s.held += n
	units := make(map[bucket.Unit]int64, len(record.Units))
	for _, amount := range record.Units {
		units[bucket.Unit(amount.Unit)] = amount.N
	}
	t.kinds = append(t.kinds, kind{
		record: simulate.Record{
			Tenant: name, Team: unwritten(record.Team), User: unwritten(record.User), Tier: unwritten(record.Tier),
			Operations: record.Fields, Document: record.Document, Units: units, Points: record.Cost,
		},
		from: chunk.From, to: chunk.To, n: n, refused: max(0, record.Refused), mixed: record.Mixed,
	})
}

// shrink leaves out the tenants with the largest hashes until a quarter is free again.
func (s *sample) shrink() {
	held := s.held
	hashes := make([]uint64, 0, len(s.tenants))
	of := make(map[uint64]int, len(s.tenants))
	for _, t := range s.tenants {
		hashes = append(hashes, t.hash)
		of[t.hash] += t.n + 1
	}
	slices.SortFunc(hashes, func(a, b uint64) int { return cmp.Compare(b, a) })
	bound := s.below
	for _, hash := range hashes {
		if held <= s.most-s.most/4 {
			break
		}
		held -= of[hash]
		of[hash], bound = 0, hash
	}
	s.narrow(bound)
}

// narrow leaves out the tenants that are not below a bound.
func (s *sample) narrow(bound uint64) {
	s.below = bound
	for name, t := range s.tenants {
		if !s.has(t.hash) {
			s.held -= t.n + 1
			if t.alone {
				s.alone--
			}
			delete(s.tenants, name)
		}
	}
}

// operation is one operation of a kind.
type operation struct {
	at   int64
	kind *kind
	// live says that it was refused when it ran: those of a kind that were are its last ones.
	live bool
}

// operations returns all of them by time, those of a kind spread over its second. Of those of one moment none is known to be the first.
func (s *sample) operations() []operation {
	all := make([]operation, 0, s.held)
	names := make([]string, 0, len(s.tenants))
	for name := range s.tenants {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		t := s.tenants[name]
		for i := range t.kinds {
			k := &t.kinds[i]
			from, length := k.from.UnixMilli(), k.to.Sub(k.from).Milliseconds()
			for j := range k.n {
				at := from + int64(float64(length)*float64(j)/float64(max(1, k.n-1)))
				all = append(all, operation{at, k, int64(k.n-j) <= k.refused})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b operation) int { return cmp.Compare(a.at, b.at) })
	return all
}

// unwritten returns a name as it was before a digest has escaped it.
func unwritten(name string) string {
	if !strings.Contains(name, `\`) {
		return name
	}
	if plain, err := strconv.Unquote(`"` + name + `"`); err == nil {
		return plain
	}
	return name
}
