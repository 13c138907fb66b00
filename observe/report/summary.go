package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/number"
)

// Summary is what all instances have decided of late.
type Summary struct {
	// Instances are the instances that have written within the last ten seconds and have not ended, by name. A name that stands there twice was
	// given to two instances, or to one that ended without a word and was started again.
	Instances []Instance `json:"instances"`
	// Recent adds up what all instances have counted. It is exact.
	Recent Counts `json:"recent"`
	// Tenants are those that an instance lists, the busiest first. A tenant that is not listed each time has more decisions than stand here.
	// Unlisted is the number of decisions of tenants that were not listed.
	Tenants  []Tenant `json:"tenants,omitempty"`
	Unlisted int64    `json:"unlisted,omitempty"`
	// Operations are the root fields that an instance lists, the busiest first.
	Operations []Operation `json:"operations,omitempty"`
	// Unreadable is how many entries could not be read, or had no room.
	Unreadable int `json:"unreadable,omitempty"`
}

// Instance is one instance in a [Summary].
type Instance struct {
	Name string `json:"instance"`
	// Run tells the runs of a name apart.
	Run string `json:"run"`
	// At is when it has written last, by the clock of the Redis.
	At time.Time `json:"at"`
	// Policy, Feed and Modes are those of its newest [Activity].
	Policy *Policy `json:"policy,omitempty"`
	Feed   *Feed   `json:"feed,omitempty"`
	Modes  *Modes  `json:"modes,omitempty"`
	Recent Counts  `json:"recent"`
	// Dropped is how many events have found no room since it was started.
	Dropped uint64 `json:"dropped,omitempty"`

	// ended says that it has ended, and size how much of a summary it takes.
	ended bool
	size  int
}

const (
	// maxNames is how many tenants, operations and runs of instances a summary has.
	maxNames = 1 << 16
	// maxHeld is how many bytes of JSON the instances of a summary have written last.
	maxHeld = 32 << 20
)

// Summary adds up what instances have written within a time until now, at least ten seconds. It takes any entries, whoever has written them, and
// counts those that it cannot read.
func (r *Reader) Summary(ctx context.Context, within time.Duration) (*Summary, error) {
	sum := summing{tenants: make(map[string]*Tenant), operations: make(map[string]*Counts), runs: make(map[string]*Instance)}
	for a, err := range r.Activities(ctx, max(within, gone)) {
		switch {
		case errors.Is(err, ErrUnreadable):
			sum.unreadable++
		case err != nil:
			return nil, err
		default:
			sum.add(&a)
		}
	}
	now, err := r.now(ctx)
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	return sum.summary(now), nil
}

// summing adds up activities.
type summing struct {
	recent     Counts
	unlisted   int64
	unreadable int
	// held is how many bytes of JSON the runs have.
	held       int
	tenants    map[string]*Tenant
	operations map[string]*Counts
	runs       map[string]*Instance
}

func (s *summing) add(a *Activity) {
	s.recent, s.unlisted = s.recent.Plus(a.Total), number.Sum(s.unlisted, a.Unlisted)
	for _, t := range a.Tenants {
		if sum := entry(s.tenants, t.Name); sum != nil {
			sum.Name, sum.Tier, sum.Counts = t.Name, t.Tier, sum.Plus(t.Counts)
		}
	}
	for _, o := range a.Operations {
		if sum := entry(s.operations, o.Name); sum != nil {
			*sum = sum.Plus(o.Counts)
		}
	}
	run := entry(s.runs, a.Run+" "+a.Instance)
	if run == nil || s.held-run.size+a.size > maxHeld {
		s.unreadable++
		return
	}
	s.held += a.size - run.size
	*run = Instance{
		Name: a.Instance, Run: a.Run, At: a.seen, Policy: a.Policy, Feed: a.Feed, Modes: a.Modes, Recent: run.Recent.Plus(a.Total),
		Dropped: a.Dropped, ended: a.Ended, size: a.size,
	}
}

// entry returns the value of a name, nil if there is no room for another.
func entry[T any](of map[string]*T, name string) *T {
	found := of[name]
	if found == nil && len(of) < maxNames {
		found = new(T)
		of[name] = found
	}
	return found
}

func (s *summing) summary(now time.Time) *Summary {
	sum := &Summary{Instances: []Instance{}, Recent: s.recent, Unlisted: s.unlisted, Unreadable: s.unreadable}
	for _, run := range s.runs {
		if !run.ended && now.Sub(run.At) <= gone {
			sum.Instances = append(sum.Instances, *run)
		}
	}
	slices.SortFunc(sum.Instances, func(a, b Instance) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Run, b.Run)) })
	for _, t := range s.tenants {
		sum.Tenants = append(sum.Tenants, *t)
	}
	slices.SortFunc(sum.Tenants, func(a, b Tenant) int {
		return cmp.Or(cmp.Compare(b.Decisions, a.Decisions), cmp.Compare(a.Name, b.Name))
	})
	for name, counts := range s.operations {
		sum.Operations = append(sum.Operations, Operation{name, *counts})
	}
	slices.SortFunc(sum.Operations, func(a, b Operation) int {
		return cmp.Or(cmp.Compare(b.Decisions, a.Decisions), cmp.Compare(a.Name, b.Name))
	})
	return sum
}
