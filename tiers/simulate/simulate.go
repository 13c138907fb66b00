// Package simulate replays recorded costs against a policy, so that a team can observe first and enforce later.
package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Run replays recorded costs against a policy and reports, for each tenant, what they were and
// which share of them the policy would refuse.
//
// It answers what would be refused if the policy were enforced: limits and maximum costs in the modes
// shadow and warn count as enforced, those in mode off do not count. Soft limits are charged and refuse
// nothing. Operations that are refused charge nothing, and clients are taken not to repeat them. Every
// bucket is full at first. Records are replayed in the order of their times, whatever their order in the
// sequence, at whole milliseconds.
//
// Quantiles are exact, for which all records are held in memory, some 100 bytes each. The first
// error of the sequence ends the simulation and is returned.
func Run(records iter.Seq2[Record, error], policy *tiers.Snapshot) (Report, error) {
	if policy == nil {
		return Report{}, errNoPolicy
	}
	all, err := inOrder(records)
	if err != nil {
		return Report{}, err
	}
	if len(all) == 0 {
		return newSimulation(policy, nil).report(nil), nil
	}
	var now time.Time
	// No owner may make room for another, or it would be full again.
	store := bucket.NewMemory(bucket.MemoryConfig{
		Clock:      func() time.Time { return now },
		MaxEntries: math.MaxInt,
		MaxBytes:   math.MaxInt,
	})
	s := newSimulation(policy, store)
	for i := range all {
		now = all[i].At
		if err := s.replay(&all[i]); err != nil {
			return Report{}, fmt.Errorf("simulate: %w", err)
		}
	}
	return s.report(all), nil
}

var errNoPolicy = errors.New("simulate: no policy")

// inOrder returns the records by time. What repeats in them is kept once.
func inOrder(records iter.Seq2[Record, error]) ([]Record, error) {
	var all []Record
	repeated := newRepeated()
	for record, err := range records {
		if err == nil {
			err = record.check()
			if err != nil {
				err = fmt.Errorf("simulate: record %d: %w", len(all)+1, err)
			}
		}
		if err != nil {
			return nil, err
		}
		record.Tenant, record.Tier = repeated.text(record.Tenant), repeated.text(record.Tier)
		record.Team, record.User = repeated.text(record.Team), repeated.text(record.User)
		record.Operations = repeated.list(record.Operations)
		all = append(all, record)
	}
	slices.SortStableFunc(all, func(a, b Record) int { return a.At.Compare(b.At) })
	return all, nil
}

// repeated has the strings and lists that records repeat.
type repeated struct {
	texts map[string]string
	lists map[string][]string
}

func newRepeated() *repeated {
	return &repeated{texts: make(map[string]string), lists: make(map[string][]string)}
}

func (r *repeated) text(text string) string {
	if found, ok := r.texts[text]; ok {
		return found
	}
	r.texts[text] = text
	return text
}

// list returns a list of its own: that of a record belongs to whoever yields it.
func (r *repeated) list(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	// No coordinate has a zero byte, so that two lists rarely have one key.
	key := strings.Join(list, "\x00")
	found, taken := r.lists[key]
	if taken && slices.Equal(found, list) {
		return found
	}
	own := make([]string, len(list))
	for i, text := range list {
		own[i] = r.text(text)
	}
	if !taken {
		r.lists[key] = own
	}
	return own
}

// simulation is a replay under way.
type simulation struct {
	policy *tiers.Snapshot
	store  bucket.Store
	// enforced has the limits of the policy with shadow turned into enforce.
	enforced map[*bucket.Limits]*bucket.Limits
	tenants  map[string]*tally
	// room is for the buckets of one record.
	room  [8]bucket.Bucket
	total *tally
}

// tally counts for one tenant, or for all.
type tally struct {
	report TenantReport
	prices []int64
	limits map[limitKey]*LimitReport
}

type limitKey struct {
	owner bucket.Owner
	name  string
}

func newSimulation(policy *tiers.Snapshot, store bucket.Store) *simulation {
	return &simulation{
		policy:   policy,
		store:    store,
		enforced: make(map[*bucket.Limits]*bucket.Limits),
		tenants:  make(map[string]*tally),
		total:    newTally(""),
	}
}

func newTally(tenant string) *tally {
	return &tally{report: TenantReport{Tenant: tenant}, limits: make(map[limitKey]*LimitReport)}
}

// replay runs one record and counts what came of it.
func (s *simulation) replay(record *Record) error {
	subject := tiers.Subject{Tenant: record.Tenant, Team: record.Team, User: record.User, Tier: record.Tier}
	rules := s.policy.RulesInto(s.room[:], subject, tiers.Selection{Fields: record.Operations})
	t := s.tenants[record.Tenant]
	if t == nil {
		t = newTally(record.Tenant)
		s.tenants[record.Tenant] = t
	}
	t.report.Tier = rules.Tier
	tallies := [...]*tally{t, s.total}
	for _, t := range tallies {
		t.prices = append(t.prices, record.Points)
		t.report.Operations++
		t.report.Points = min(t.report.Points, math.MaxInt64-record.Points) + record.Points
	}
	switch {
	case rules.Blocked:
		for _, t := range tallies {
			t.report.Refused++
			t.report.Blocked++
		}
		return nil
	case tooExpensive(&rules.MaxCost, record.Points):
		for _, t := range tallies {
			t.report.Refused++
			t.report.TooExpensive++
		}
		return nil
	case rules.Unlimited || len(rules.Buckets) == 0:
		return nil
	}
	result, err := s.store.Take(context.Background(), bucket.Take{
		Tenant:  record.Tenant,
		Buckets: s.enforce(rules.Buckets),
		Amounts: bucket.Amounts{{Unit: bucket.Points, N: record.Points}, {Unit: bucket.Requests, N: 1}},
	})
	if err != nil {
		return err
	}
	for _, t := range tallies {
		t.count(&result)
	}
	return nil
}

// count counts a verdict of the store and which limits it is due to.
func (t *tally) count(result *bucket.Result) {
	if result.Verdict != bucket.Admitted {
		t.report.Refused++
	}
	for i := range result.Limits {
		state := &result.Limits[i]
		key := limitKey{owner: state.Owner, name: state.Limit.Name}
		if key.owner.Level != bucket.Operation {
			// There may be as many teams and users as there are records.
			key.owner.Name = ""
		}
		limit := t.limits[key]
		if limit == nil {
			limit = &LimitReport{
				Level: key.owner.Level.String(), Owner: key.owner.Name, Name: state.Limit.Name, Unit: state.Limit.Unit,
			}
			t.limits[key] = limit
		}
		if state.Limit.Soft {
			continue
		}
		if state.Exceeded {
			limit.Refused++
		}
		if state.Never {
			limit.Never++
		}
	}
}

func tooExpensive(most *tiers.MaxCost, points int64) bool {
	_, mode := most.Exceeded(points)
	return mode != bucket.Off
}

// enforce returns the buckets with shadow and warn turned into enforce.
func (s *simulation) enforce(buckets []bucket.Bucket) []bucket.Bucket {
	enforced := make([]bucket.Bucket, len(buckets))
	for i, b := range buckets {
		limits := s.enforced[b.Limits]
		if limits == nil {
			all := b.Limits.All()
			for i := range all {
				if all[i].Mode != bucket.Off {
					all[i].Mode = bucket.Enforce
				}
			}
			// They have compiled before: the mode is no part of what can be wrong.
			limits, _ = bucket.Compile(all...)
			s.enforced[b.Limits] = limits
		}
		enforced[i] = bucket.Bucket{Owner: b.Owner, Limits: limits}
	}
	return enforced
}

// report returns what was counted. The records are in the order of their times.
func (s *simulation) report(records []Record) Report {
	r := Report{Total: s.total.finish()}
	if len(records) > 0 {
		r.From, r.To = records[0].At, records[len(records)-1].At
	}
	for _, t := range s.tenants {
		r.Tenants = append(r.Tenants, t.finish())
	}
	slices.SortFunc(r.Tenants, func(a, b TenantReport) int {
		return cmp.Or(cmp.Compare(b.RefusedShare, a.RefusedShare), cmp.Compare(a.Tenant, b.Tenant))
	})
	return r
}

// finish derives the quantiles and the shares.
func (t *tally) finish() TenantReport {
	r := t.report
	slices.Sort(t.prices)
	r.P50, r.P95, r.P99 = quantile(t.prices, 50), quantile(t.prices, 95), quantile(t.prices, 99)
	r.Max = quantile(t.prices, 100)
	r.RefusedShare = r.share(r.Refused)
	for _, limit := range slices.SortedFunc(maps.Values(t.limits), func(a, b *LimitReport) int {
		return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(b.Level, a.Level),
			cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Name, b.Name))
	}) {
		limit := *limit
		limit.RefusedShare = r.share(limit.Refused)
		r.Limits = append(r.Limits, limit)
	}
	return r
}

// quantile returns the smallest price that is at least as high as the given percentage of all: the
// nearest rank. It returns 0 if there are none.
func quantile(prices []int64, percent int) int64 {
	if len(prices) == 0 {
		return 0
	}
	rank := (len(prices)*percent + 99) / 100
	return prices[max(rank, 1)-1]
}
