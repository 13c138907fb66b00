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
// error of the sequence ends the simulation and is returned. [ReplayConfig.Run] judges otherwise.
func Run(records iter.Seq2[Record, error], policy *tiers.Snapshot) (Report, error) {
	return ReplayConfig{Enforced: true}.Run(records, policy)
}

// Run is [Run] for a replay that is configured.
func (c ReplayConfig) Run(records iter.Seq2[Record, error], policy *tiers.Snapshot) (Report, error) {
	if policy == nil {
		return Report{}, errNoPolicy
	}
	all, err := inOrder(records)
	if err != nil {
		return Report{}, err
	}
	if len(all) == 0 {
		return newSimulation(nil).report(nil), nil
	}
	replay, err := NewReplay(policy, c)
	if err != nil {
		return Report{}, err
	}
	s := newSimulation(replay)
	for i := range all {
		if err := s.replay(&all[i]); err != nil {
			return Report{}, err
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
		record.Operations, record.Document = repeated.list(record.Operations), repeated.text(record.Document)
		record.Units, record.Parameters, record.Parts = maps.Clone(record.Units), maps.Clone(record.Parameters), slices.Clone(record.Parts)
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

// simulation counts what a replay comes to.
type simulation struct {
	judge   *Replay
	tenants map[string]*tally
	total   *tally
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

func newSimulation(judge *Replay) *simulation {
	return &simulation{judge: judge, tenants: make(map[string]*tally), total: newTally("")}
}

func newTally(tenant string) *tally {
	return &tally{report: TenantReport{Tenant: tenant}, limits: make(map[limitKey]*LimitReport)}
}

// replay runs one record and counts what came of it.
func (s *simulation) replay(record *Record) error {
	judgment, err := s.judge.Judge(context.Background(), record)
	if err != nil {
		return err
	}
	t := s.tenants[record.Tenant]
	if t == nil {
		t = newTally(record.Tenant)
		s.tenants[record.Tenant] = t
	}
	t.report.Tier = judgment.Tier
	tallies := [...]*tally{t, s.total}
	for _, t := range tallies {
		t.prices = append(t.prices, record.Points)
		t.report.Operations++
		t.report.Points = min(t.report.Points, math.MaxInt64-record.Points) + record.Points
		t.count(&judgment)
	}
	return nil
}

// count counts a judgment and which limits it is due to.
func (t *tally) count(judgment *Judgment) {
	if judgment.Refused {
		t.report.Refused++
	}
	if judgment.Blocked {
		t.report.Blocked++
	}
	if judgment.TooExpensive {
		t.report.TooExpensive++
	}
	for i := range judgment.Limits {
		state := &judgment.Limits[i]
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
