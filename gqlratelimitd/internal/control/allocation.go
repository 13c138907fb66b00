package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// parseRecord reads what an operator writes about a tenant.
func parseRecord(document []byte) (*tiers.RecordDocument, error) {
	if _, err := tiers.ParseRecord(document); err != nil {
		return nil, &InvalidError{Field: "document", Err: err}
	}
	var d tiers.RecordDocument
	decoder := json.NewDecoder(bytes.NewReader(document))
	if err := decoder.Decode(&d); err != nil && !errors.Is(err, io.EOF) {
		return nil, &InvalidError{Field: "document", Err: err}
	}
	return &d, nil
}

// recordOf returns what instances are given of a tenant.
func recordOf(t *store.Tenant) (*tiers.Record, error) {
	var d tiers.RecordDocument
	if t.Document != nil {
		parsed, err := parseRecord(t.Document)
		if err != nil {
			return nil, err
		}
		d = *parsed
	}
	if t.Allocations != nil {
		d.Allocations = &tiers.Allocations{}
		if err := json.Unmarshal(t.Allocations, d.Allocations); err != nil {
			return nil, &InvalidError{Field: "allocations", Err: err}
		}
	}
	text, err := json.Marshal(d)
	if err != nil {
		return nil, &InvalidError{Field: "document", Err: err}
	}
	record, err := tiers.ParseRecord(text)
	if err != nil {
		return nil, &InvalidError{Field: "document", Err: err}
	}
	return record, nil
}

// owners are what teams, or users, are given.
type owners = map[string]map[string]*tiers.Limit

func empty(a *tiers.Allocations) bool { return a == nil || len(a.Teams)+len(a.Users) == 0 }

// checkAllocations returns what stands in allocations that an organisation does not decide.
func checkAllocations(a *tiers.Allocations) error {
	if a == nil {
		return nil
	}
	for what, owners := range map[string]owners{"teams": a.Teams, "users": a.Users} {
		for owner, limits := range owners {
			field := fmt.Sprintf("allocations.%s.%.64q", what, owner)
			if err := checkName(field, owner, tiers.MaxLongName); err != nil {
				return err
			}
			for name, l := range limits {
				if l == nil || l.Capacity <= 0 {
					return invalid(field, "limit %.64q has no capacity; leave it out", name)
				}
				if l.Mode != "" || l.EnforceFrom != "" || l.FailMode != "" || l.Soft || l.By != "" || l.Across {
					return invalid(field, "limit %.64q has more than unit, capacity, refill, per, window, anchor and zone: the rest is not the organisation's", name)
				}
			}
		}
	}
	return nil
}

// span is what amounts are added up by: of one unit over one time.
type span struct {
	unit   bucket.Unit
	length time.Duration
}

// amount is the capacity of a limit, and what comes back over its time.
type amount struct{ capacity, refill int64 }

func (a amount) plus(b amount) amount {
	return amount{min(a.capacity, math.MaxInt64-b.capacity) + b.capacity, min(a.refill, math.MaxInt64-b.refill) + b.refill}
}

func (a amount) least(b amount) amount {
	return amount{min(a.capacity, b.capacity), min(a.refill, b.refill)}
}

// quota is what a tenant has to give.
type quota struct {
	// problem says why nobody knows.
	problem string
	// unbounded says that the tenant has no limits, or that those of teams and users have no effect.
	unbounded bool
	has       map[span]amount
}

// quotaOf returns what a tenant has by a policy and its record. The policy is nil if there is none to judge by.
func quotaOf(policy *tiers.Snapshot, t *store.Tenant) (*quota, error) {
	if policy == nil {
		return &quota{problem: "there is no policy to judge by, and so nothing to allocate"}, nil
	}
	var selected tiers.Selection
	if t.Document != nil {
		record, err := recordOf(&store.Tenant{Document: t.Document})
		if err != nil {
			return nil, err
		}
		selected.Record = record
	}
	rules := policy.Rules(tiers.Subject{Tenant: t.Name}, selected)
	q := &quota{unbounded: rules.Unlimited || rules.Blocked, has: map[span]amount{}}
	for i := range rules.Buckets {
		if rules.Buckets[i].Owner.Level != bucket.Tenant {
			continue
		}
		for _, l := range rules.Buckets[i].Limits.All() {
			if l.Soft || l.Mode == bucket.Off {
				continue
			}
			key, has := spanOf(l.Unit, lengthOf(&l)), amountOf(l.Capacity, l.Refill)
			if there, ok := q.has[key]; ok {
				has = has.least(there)
			}
			q.has[key] = has
		}
	}
	return q, nil
}

func spanOf(unit bucket.Unit, length time.Duration) span {
	if unit == "" {
		unit = bucket.Points
	}
	return span{unit, length}
}

func amountOf(capacity, refill int64) amount {
	if refill == 0 {
		refill = capacity
	}
	return amount{capacity, refill}
}

const day = 24 * time.Hour

// lengthOf is the time of a limit, the longest that the calendar has.
func lengthOf(l *bucket.Limit) time.Duration {
	switch l.Window.Kind {
	case bucket.HourWindow:
		return time.Hour
	case bucket.DayWindow:
		return day
	case bucket.MonthWindow:
		return 31 * day
	case bucket.YearWindow:
		return 366 * day
	default:
		return l.Period
	}
}

// lengthOfPeriod is lengthOf for a limit of a document.
func lengthOfPeriod(p tiers.Period) time.Duration {
	switch p {
	case tiers.Month:
		return 31 * day
	case tiers.Year:
		return 366 * day
	default:
		return time.Duration(p)
	}
}

// exceeded says in what allocations exceed the quota, and nothing if they do not.
func (q *quota) exceeded(a *tiers.Allocations) string {
	if empty(a) || q.unbounded {
		return ""
	}
	if q.problem != "" {
		return q.problem
	}
	for _, level := range []struct {
		what   string
		owners owners
	}{{"teams", a.Teams}, {"users", a.Users}} {
		sums := map[span]amount{}
		for _, owner := range slices.Sorted(maps.Keys(level.owners)) {
			of := q.add(sums, level.owners[owner])
			if of != "" {
				return fmt.Sprintf("%s.%.64q: %s", level.what, owner, of)
			}
		}
		for _, key := range slices.SortedFunc(maps.Keys(sums), func(a, b span) int { return int(a.length - b.length) }) {
			sum, has := sums[key], q.has[key]
			if sum.capacity > has.capacity || sum.refill > has.refill {
				return fmt.Sprintf("%s come to %d %s each %s, of which %d come back; the tenant has %d, of which %d come back",
					level.what, sum.capacity, key.unit, key.length, sum.refill, has.capacity, has.refill)
			}
		}
	}
	return ""
}

// add adds what an owner is given to the sums of what the tenant has over the same time, and says what is too much by itself.
func (q *quota) add(sums map[span]amount, limits map[string]*tiers.Limit) string {
	// Of several limits over the same time the smallest one is what can be used.
	given := map[span]amount{}
	for _, l := range limits {
		key, of := spanOf(bucket.Unit(l.Unit), lengthOfPeriod(l.Per)), amountOf(l.Capacity, l.Refill)
		if there, ok := given[key]; ok {
			of = of.least(there)
		}
		given[key] = of
	}
	for key, of := range given {
		if _, same := q.has[key]; same {
			sums[key] = sums[key].plus(of)
			continue
		}
		counted := false
		for has, most := range q.has {
			if has.unit != key.unit {
				continue
			}
			counted = true
			if has.length > key.length && of.capacity > most.capacity {
				return fmt.Sprintf("%d %s each %s are more than the %d that the tenant has each %s", of.capacity, key.unit, key.length, most.capacity, has.length)
			}
		}
		if !counted {
			return fmt.Sprintf("the tenant has no limit in %.64q", key.unit)
		}
	}
	return ""
}
