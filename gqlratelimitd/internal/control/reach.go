package control

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/internal/previewreport"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Reach is how far a document reaches, compared with the policy before it.
type Reach struct {
	// Previewed says that recorded traffic tells: Share is the largest share of the requests of one tenant that is newly refused,
	// Tenants how many are newly refused something, at the most where a part of all tenants was recorded. Both are 0 otherwise.
	Previewed bool    `json:"previewed,omitempty"`
	Share     float64 `json:"share,omitempty"`
	Tenants   int64   `json:"tenants,omitempty"`
	// Problem says why no traffic tells although it was asked.
	Problem string `json:"problem,omitempty"`
	// Lowered is what of the document may refuse more than the one before. Nil is nothing: capacities have grown at most.
	Lowered *Lowered `json:"lowered,omitempty"`
	// First says that there is no policy before it, which anybody could be newly refused something after.
	First bool `json:"first,omitempty"`
}

// Lowered says where a document is not known to give at least what the one before gave.
type Lowered struct {
	// Tiers are the names of tiers, of so many that either document has.
	Tiers   []string `json:"tiers,omitempty"`
	OfTiers int      `json:"ofTiers"`
	// Tenants is how many tenants that the documents list, of so many.
	Tenants   int `json:"tenants,omitempty"`
	OfTenants int `json:"ofTenants"`
	// Everybody says that it is something about all: the default tier, a mode, custom limits.
	Everybody bool `json:"everybody,omitempty"`
}

// String says it in a sentence.
func (r *Reach) String() string {
	switch {
	case r.First:
		return "it is the first policy"
	case r.Previewed:
		return fmt.Sprintf("recorded traffic says that it newly refuses up to %.1f %% of the requests of a tenant, and something to %d tenants", 100*r.Share, r.Tenants)
	case r.Lowered == nil:
		return "it lowers nothing"
	}
	l := r.Lowered
	parts := []string{fmt.Sprintf("%d of %d tiers", len(l.Tiers), l.OfTiers), fmt.Sprintf("%d of %d listed tenants", l.Tenants, l.OfTenants)}
	if l.Everybody {
		parts = append(parts, "something about everybody")
	}
	return "no recorded traffic says how far it reaches; it may lower limits of " + strings.Join(parts, ", ")
}

// blast is what the rule for a second person looks at.
func (r *Reach) blast() access.Blast {
	switch {
	case r.Previewed:
		return access.Blast{Known: true, Share: r.Share, Tenants: r.Tenants}
	case r.First || r.Lowered == nil:
		return access.Blast{Known: true}
	}
	return access.Blast{}
}

// reach says how far a revision reaches. It takes time.
func (c *Control) reach(ctx context.Context, next *compiled) (*Reach, error) {
	before, err := c.current(ctx)
	if err != nil {
		return nil, err
	}
	reach := &Reach{Lowered: &Lowered{Everybody: true}}
	if before.number() != next.Number-1 {
		// Unless that one is published before this is written, it is a conflict.
		reach.Problem = "another revision held when it was looked at"
		return reach, nil
	}
	if before == nil {
		return &Reach{First: true}, nil
	}
	if before.snapshot == nil {
		reach.Problem = unreadable
		return reach, nil
	}
	if reach.Lowered, err = c.compare(before, next); err != nil || reach.Lowered == nil || c.cfg.Preview == nil {
		return reach, err
	}
	report, err := c.replayAlone(ctx, before, next)
	why, err := missing(report, err)
	if err != nil {
		why = strings.ToValidUTF8(cut(fmt.Sprintf("the preview failed: %v", err), maxProblem), "?")
	}
	reach.tell(report, why, c.extentOf(before, next))
	return reach, ctx.Err()
}

// replayAlone is a replay for who publishes. Only others who publish are in its way: whoever looks at previews all day keeps nobody from
// publishing.
func (c *Control) replayAlone(ctx context.Context, before, next *compiled) (*previewreport.Report, error) {
	limited, cancel := context.WithTimeout(ctx, previewTime)
	defer cancel()
	select {
	case c.publishing <- struct{}{}:
		defer func() { <-c.publishing }()
	case <-limited.Done():
		return nil, limited.Err()
	}
	return c.replay(limited, before, next, &PreviewInput{})
}

// compare says where a revision is not known to give what the one before gave, and nil if it gives at least that everywhere.
func (c *Control) compare(before, next *compiled) (*Lowered, error) {
	if before.Hash == next.Hash {
		return nil, nil
	}
	old, err := c.policies(before.Document)
	if err != nil {
		return nil, err
	}
	document, err := c.policies(next.Document)
	if err != nil {
		return nil, err
	}
	var found *Lowered
	// Of a roll-out some tenants have the one policy and some the other: nobody is to have less than either of both.
	for i := range old {
		for j := range document {
			found = found.and(lowered(&old[i], &document[j]))
		}
	}
	if stage, staged := before.snapshot.Stage(); staged && stage.Warn {
		// What only warned refuses.
		found = found.and(&Lowered{Everybody: true})
	}
	return found, nil
}

// and says what either of two says. Nil is nothing.
func (l *Lowered) and(other *Lowered) *Lowered {
	if l == nil || other == nil {
		return cmp.Or(l, other)
	}
	names := slices.Concat(l.Tiers, other.Tiers)
	slices.Sort(names)
	return &Lowered{
		Tiers: slices.Compact(names), OfTiers: max(l.OfTiers, other.OfTiers), Tenants: max(l.Tenants, other.Tenants),
		OfTenants: max(l.OfTenants, other.OfTenants), Everybody: l.Everybody || other.Everybody,
	}
}

// lowered says where a document is not known to give what another one gave, and nil if it gives at least that everywhere. Whatever
// differs and is not a capacity that has grown counts: it is not known.
func lowered(before, after *tiers.Policy) *Lowered {
	l := &Lowered{}
	names := func(yield func(string) bool) {
		for name := range before.Tiers {
			if !yield(name) {
				return
			}
		}
		for name := range after.Tiers {
			if _, both := before.Tiers[name]; !both && !yield(name) {
				return
			}
		}
	}
	for _, name := range slices.Sorted(names) {
		was, one := before.Tiers[name]
		is, other := after.Tiers[name]
		if l.OfTiers++; !one || !other || !easesTier(was, is) {
			l.Tiers = append(l.Tiers, name)
		}
	}
	for tenant, was := range before.Tenants {
		is, both := after.Tenants[tenant]
		if l.OfTenants++; !both || !easesException(was, is) {
			l.Tenants++
		}
	}
	for tenant := range after.Tenants {
		if _, both := before.Tenants[tenant]; !both {
			l.OfTenants++
			l.Tenants++
		}
	}
	was, is := *before, *after
	was.Tiers, is.Tiers, was.Tenants, is.Tenants = nil, nil, nil, nil
	l.Everybody = !reflect.DeepEqual(was, is)
	if len(l.Tiers) == 0 && l.Tenants == 0 && !l.Everybody {
		return nil
	}
	return l
}

// easesTier reports whether a tier gives at least what it gave.
func easesTier(was, is tiers.Tier) bool {
	was.Limits = eased(was.Limits, is.Limits)
	if countsNoLess(cmp.Or(was.Usage, "none"), cmp.Or(is.Usage, "none")) {
		was.Usage = is.Usage
	}
	if was.MaxCost > 0 && is.MaxCost > was.MaxCost {
		was.MaxCost = is.MaxCost
	}
	if was.Teams != nil && is.Teams != nil {
		teams := *was.Teams
		teams.Limits = eased(teams.Limits, is.Teams.Limits)
		was.Teams = &teams
	}
	if was.Users != nil && is.Users != nil {
		users := *was.Users
		users.Limits = eased(users.Limits, is.Users.Limits)
		was.Users = &users
	}
	return reflect.DeepEqual(was, is)
}

// easesException is easesTier for a tenant that a document lists.
func easesException(was, is tiers.Exception) bool {
	was.Limits = eased(was.Limits, is.Limits)
	if countsNoLess(was.Usage, is.Usage) {
		was.Usage = is.Usage
	}
	return reflect.DeepEqual(was, is)
}

// countsNoLess reports whether one word for what is counted counts what another one did. An empty one is that of a tier, of which nothing is known here. Counting
// refuses nobody anything; but what is counted no more is on no bill, so that counting less takes what lowering a limit does.
func countsNoLess(was, is string) bool {
	words := []string{"none", "totals", "fields"}
	return is == "fields" || was != "" && slices.Index(words, is) >= slices.Index(words, was)
}

// eased returns limits with the capacities and refills of others where these have grown and nothing else of the limit has changed.
func eased(was, is map[string]*tiers.Limit) map[string]*tiers.Limit {
	was = maps.Clone(was)
	for name, limit := range was {
		next := is[name]
		if limit == nil || next == nil {
			continue
		}
		// What is not said is inherited, or that of the capacity.
		said := limit.Capacity > 0 && (limit.Refill == 0) == (next.Refill == 0)
		grown := next.Capacity >= limit.Capacity && next.Refill >= limit.Refill
		if said && grown {
			raised := *limit
			raised.Capacity, raised.Refill = next.Capacity, next.Refill
			was[name] = &raised
		}
	}
	return was
}
