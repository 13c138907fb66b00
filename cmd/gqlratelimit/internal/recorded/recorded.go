// Package recorded takes the samples that instances have written for a simulation. Of some tenants, drawn by a hash of their names, it has everything.
package recorded

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
	"github.com/gqlgen-ratelimit/ratelimit/observe/report"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
	"github.com/gqlgen-ratelimit/ratelimit/tiers/simulate"
)

// ErrKey says that records are of tenants who would not have been recorded under the key: the instances have another one.
var ErrKey = errors.New("recorded: the key is not the one of the instances: give theirs, which is in report.Config.Key")

// Everybody is the bound of a sample that all tenants are in.
const Everybody = math.MaxUint64

// Sample is everything that some tenants have asked for. It is made by [Read], for one goroutine.
type Sample struct {
	// From and To are the times of the first and the last operation that was recorded, zero if none was.
	From, To time.Time
	// Samples is how many were read, and Unreadable how many could not be.
	Samples, Unreadable int
	// Below is the bound of the hashes of tenants in it, Everybody if all are.
	Below uint64
	// LeftOut is how many tenants below the bound are not in it because one of them has asked for more than fits.
	LeftOut int

	key     []byte
	most    int
	tenants map[string]*tenant
	// held is how many operations and tenants there are.
	held int
	// parameters are those of which all samples have the values. hashed says that a name of a user is a hash.
	hashed     bool
	parameters []string
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
	mixed    bool
}

// Read reads the samples of activities, [report.Reader.Activities] for example, and keeps as many operations and tenants as are asked for: with more,
// fewer tenants are in it. It counts what cannot be read. The key is [report.Config.Key]. The error is [ErrKey], that of the context, or the first
// of the sequence that is not [report.ErrUnreadable].
func Read(ctx context.Context, activities iter.Seq2[report.Activity, error], key []byte, most int) (*Sample, error) {
	s := &Sample{key: key, most: most, Below: Everybody, tenants: make(map[string]*tenant)}
	for activity, err := range activities {
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, report.ErrUnreadable):
			s.Unreadable++
			continue
		case err != nil:
			return nil, err
		case activity.Sample == nil:
			continue
		case activity.Sample.From.UnixMilli() <= 0 || activity.Sample.To.Before(activity.Sample.From):
			s.Unreadable++
			continue
		}
		if err := s.add(activity.Sample); err != nil {
			return nil, err
		}
	}
	// Samples that came last may have had fewer tenants than those before.
	s.narrow(s.Below)
	return s, nil
}

// Share is which share of all tenants it is about, from 0 to 1, 0 if nothing was recorded.
func (s *Sample) Share() float64 {
	if s.Samples == 0 {
		return 0
	}
	return float64(s.Below) / Everybody
}

// Recorded says what the records have beside prices.
func (s *Sample) Recorded() tiers.Recorded {
	return tiers.Recorded{Parts: true, Parameters: slices.Clone(s.parameters), Users: !s.hashed}
}

// Value returns what stands in the records for a value of a parameter: [simulate.ReplayConfig.Value].
func (s *Sample) Value(parameter, value string) string {
	return report.HashValue(s.key, parameter, value)
}

func (s *Sample) add(sample *report.Sample) error {
	if sample.Key != "" && sample.Key != report.HashKey(s.key) {
		return ErrKey
	}
	s.Samples++
	s.Below = min(s.Below, sample.Below)
	if s.From.IsZero() || sample.From.Before(s.From) {
		s.From = sample.From
	}
	if sample.To.After(s.To) {
		s.To = sample.To
	}
	if parameters := sample.Parameters[:min(len(sample.Parameters), maxParameters)]; s.Samples == 1 {
		for _, name := range parameters {
			s.parameters = append(s.parameters, unwritten(name))
		}
	} else {
		s.parameters = slices.DeleteFunc(s.parameters, func(name string) bool {
			return !slices.ContainsFunc(parameters, func(p string) bool { return unwritten(p) == name })
		})
	}
	for i := range sample.Records {
		record := &sample.Records[i]
		name := unwritten(record.Tenant)
		if name == "" || record.N <= 0 || record.Cost < 0 {
			continue
		}
		hash := report.HashTenant(s.key, name)
		if !sample.Has(hash) {
			return ErrKey
		}
		if s.has(hash) {
			s.put(name, hash, sample, record)
		}
		if s.held > s.most {
			s.shrink()
		}
	}
	return nil
}

func (s *Sample) has(hash uint64) bool { return hash < s.Below || s.Below == Everybody }

func (s *Sample) put(name string, hash uint64, sample *report.Sample, record *report.Record) {
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
		s.LeftOut++
		t.kinds, t.n, t.alone = nil, 0, true
		return
	}
	t.n += n
	s.held += n
	s.hashed = s.hashed || strings.HasPrefix(record.User, hashedUser)
	t.kinds = append(t.kinds, newKind(name, sample, record, n))
}

// hashedUser is how the hash of a user begins.
const hashedUser = "h:"

// maxParameters is how many parameters of a sample are looked at.
const maxParameters = 16

func newKind(tenant string, sample *report.Sample, record *report.Record, n int) kind {
	units := make(map[bucket.Unit]int64, len(record.Units))
	for _, amount := range record.Units {
		units[bucket.Unit(amount.Unit)] = amount.N
	}
	k := kind{
		record: simulate.Record{
			Tenant: tenant, Team: unwritten(record.Team), User: unwritten(record.User), Tier: unwritten(record.Tier),
			Operations: record.Fields, Document: record.Document, Units: units, Points: record.Cost,
		},
		from: sample.From, to: sample.To, n: n, mixed: record.Mixed || record.Cut,
	}
	if len(record.Carried) > 0 && len(record.Carried) <= maxParameters {
		k.record.Parameters = make(map[string]string, len(record.Carried))
		for name, value := range record.Carried {
			k.record.Parameters[unwritten(name)] = value
		}
	}
	if record.Parts == nil {
		return k
	}
	calls := int64(0)
	for _, part := range record.Parts {
		if part.N < 0 || part.N > report.MaxCalls {
			calls = math.MaxInt64
			break
		}
		calls += part.N
		k.record.Parts = append(k.record.Parts, simulate.Part{Calls: part.N})
	}
	if calls > report.MaxCalls || len(record.Parts) != len(record.Fields) {
		// Nobody but an attacker writes that.
		k.record.Parts, k.mixed = nil, true
	}
	return k
}

// shrink leaves out the tenants with the largest hashes until a quarter is free again.
func (s *Sample) shrink() {
	held := s.held
	hashes := make([]uint64, 0, len(s.tenants))
	of := make(map[uint64]int, len(s.tenants))
	for _, t := range s.tenants {
		hashes = append(hashes, t.hash)
		of[t.hash] += t.n + 1
	}
	slices.SortFunc(hashes, func(a, b uint64) int { return cmp.Compare(b, a) })
	bound := s.Below
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
func (s *Sample) narrow(bound uint64) {
	s.Below = bound
	for name, t := range s.tenants {
		if !s.has(t.hash) {
			s.held -= t.n + 1
			if t.alone {
				s.LeftOut--
			}
			delete(s.tenants, name)
		}
	}
}

// Operation is one operation.
type Operation struct {
	// At is when it ran. What else is known of it is Record, whose time is not set, and which operations that were alike share.
	At     time.Time
	Record *simulate.Record
	// Mixed says that the record is the mean of several that were not alike, or that more stood in it than fits.
	Mixed bool
}

// operation is one of a kind, at a millisecond.
type operation struct {
	at   int64
	kind *kind
}

// Operations yields all of them by time, those of a kind spread over its second. Of those of one moment none is known to be the first.
func (s *Sample) Operations() iter.Seq[Operation] {
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
				all = append(all, operation{at, k})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b operation) int { return cmp.Compare(a.at, b.at) })
	return func(yield func(Operation) bool) {
		for i := range all {
			op := &all[i]
			if !yield(Operation{time.UnixMilli(op.at), &op.kind.record, op.kind.mixed}) {
				return
			}
		}
	}
}

// unwritten returns a name as it was before a reporter has escaped it.
func unwritten(name string) string {
	if !strings.Contains(name, `\`) {
		return name
	}
	if plain, err := strconv.Unquote(`"` + name + `"`); err == nil {
		return plain
	}
	return name
}
