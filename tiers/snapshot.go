package tiers

import (
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// Source gives the policy that holds now. It is asked for each decision. [*Snapshot] is a source of
// itself, and package policy has one that follows a file or another feed. Implementations are safe for concurrent use.
type Source interface {
	// Snapshot returns the current policy. It is never nil.
	Snapshot() *Snapshot
}

// Snapshot is a compiled policy with the modes of one moment. It never changes, and may be shared by
// any number of goroutines. It is made by [Compile].
type Snapshot struct {
	family *family
	// phase, early and strictest are its place in the family.
	phase     int
	early     bool
	strictest bucket.Mode
	// serial tells it from all others.
	serial uint64

	tiers    map[string]*ruleSet
	fallback *ruleSet
	// custom are the custom limits of the policy, nil if there are none.
	custom *customs
	// backstop is that of the policy, nil if there is none.
	backstop *ruleSet
	// exceptions are the rules of each kind of tenants that is listed.
	exceptions []exceptionRules
	// making is held by whoever compiles an exception, and shared is what exceptions have in common.
	making sync.Mutex
	shared *shared
	// enforced is when limits in mode warn become enforced, by limitOf. Those of which nobody knows it are not in it.
	enforced sync.Map
	// eased makes it a view of others, which have the rules. It is nil for all that a family has.
	eased *eased
}

var _ Source = (*Snapshot)(nil)

// limitOf is a limit of one compiled owner.
type limitOf struct {
	limits *bucket.Limits
	name   string
}

// ruleSet is a tier, or what an exception makes of it.
type ruleSet struct {
	rules        Rules
	teams, users ownerLimits
	// operations is nil if there are no operation rules.
	operations *operationRules
	// custom are the custom limits of the tenant, nil if there are none, and strictest is the mode of the limits in whose place
	// they can stand.
	custom    *customs
	strictest bucket.Mode
	// foreseen are the buckets of the tenant with those of sets of operation rules. Exceptions have none.
	foreseen map[uint64][]bucket.Bucket
	// days knows when its limits become enforced. It is nil for what the snapshot has, which does.
	days *Snapshot
	// enforcement is that of the tier, nil if there is none or the tenant is in no share.
	enforcement *Enforcement
	// shared are the rules of all who have the same ones, of the snapshot that was asked last.
	shared atomic.Pointer[Rules]
}

// Rules is what holds for one subject and operation. Its buckets are shared and must not be changed.
type Rules struct {
	// Tier is the tier whose rules these are. It differs from that of the subject if the policy does
	// not know the latter.
	Tier string
	// Store names the store that keeps the buckets and claims. It is empty for the default store.
	Store string
	// Mode is that of the tenant. Each limit, and each maximum cost, has its own.
	Mode bucket.Mode
	// EnforceFrom is when Mode becomes enforced if it is warn. It is zero if nobody knows.
	EnforceFrom time.Time
	// FailMode is what happens while the store is away to a decision without limits. Each limit
	// carries its own.
	FailMode bucket.FailMode
	// MaxCost is what the operation may cost.
	MaxCost MaxCost
	// Blocked says that the operation is refused, whatever the mode.
	Blocked bool
	// Unlimited says that nothing is charged. Only MaxCost can still refuse.
	Unlimited bool
	// CostReport permits asking for the breakdown of the price of an operation.
	CostReport bool
	// CostValidate permits asking for the price of an operation without running it.
	CostValidate bool
	// Hide is what the client is not told.
	Hide Hide
	// Usage is what is counted of the operation.
	Usage Usage
	// Lease says whether parts of the bucket of the tenant are leased.
	Lease bucket.LeaseMode
	// Throttle is what the adaptive throttle may do.
	Throttle Shedding
	// Buckets are what to charge together: that of the tenant, of the team, of the user, and of each
	// operation rule that matches, in the order of their spelling. Who has no limits has no bucket.
	Buckets []bucket.Bucket
	// Across are what to charge as well of budgets that all tenants share: of operation rules whose limits say so, a
	// bucket for each value of an argument. Their owners belong to no tenant, so they are charged before the others, in one call with the Backstop.
	Across []bucket.Bucket
	// Backstop are what to charge first, whatever else holds for the subject, of the budgets of the whole namespace ([Policy.Backstop]).
	// They belong to no tenant. It is nil for subjects that are exempt.
	Backstop []bucket.Bucket
	// Amounts are what the operation asks for in the units that operation rules compute from arguments, besides its
	// points and itself as a request. Buckets that are asked for something else say so themselves.
	Amounts bucket.Amounts
	// TooMany says that the operation gives more values to arguments than a limit may be divided by. It is nil if it
	// does not.
	TooMany *TooManyValues

	// Misfit says why the record of the tenant does not fit the policy, a [*PolicyError]. The tenant has its tier without exceptions
	// then, or the default one if there is no such tier, and stays blocked if it is. It is nil if the record fits, or there
	// is none.
	Misfit error

	// from is the snapshot that the rules are of. It is nil for those of nobody in particular. The record is that of the
	// tenant, nil for what the policy alone says.
	from   *Snapshot
	record *Record
	days   *Snapshot
	// byCall says that an operation rule stands in the place of limits, whether or not it matches.
	byCall bool
	// spared is how many of the buckets, the first ones, pay only for what belongs to the operation and to no call.
	spared int
}

// Generation is that of the snapshot that the rules are of: [Snapshot.Generation]. It is 0 for rules of nobody in particular.
func (r *Rules) Generation() uint64 {
	if r == nil || r.from == nil {
		return 0
	}
	return r.from.Generation()
}

// LimitEnforcedFrom returns when a limit in mode warn becomes enforced. It is zero if nobody knows, and for
// other limits.
func (r *Rules) LimitEnforcedFrom(owner bucket.Owner, limit string) time.Time {
	if r.from == nil {
		return time.Time{}
	}
	for _, buckets := range [...][]bucket.Bucket{r.Buckets, r.Across} {
		for i := range buckets {
			if buckets[i].Owner == owner {
				return r.days.enforcedFrom(buckets[i].Limits, limit)
			}
		}
	}
	return time.Time{}
}

func (s *Snapshot) enforcedFrom(limits *bucket.Limits, limit string) time.Time {
	day, _ := s.enforced.Load(limitOf{limits, limit})
	from, _ := day.(time.Time)
	return from
}

// enforce notes on which days limits become enforced.
func (s *Snapshot) enforce(limits *bucket.Limits, days map[string]time.Time) {
	for name, day := range days {
		s.enforced.Store(limitOf{limits, name}, day)
	}
}

// Snapshot returns the snapshot as it holds now, which makes it a [Source]: it is itself unless a day
// has come on which enforcement begins.
func (s *Snapshot) Snapshot() *Snapshot {
	if len(s.family.days) == 0 {
		return s
	}
	return s.At(time.Now())
}

// At returns the snapshot as it holds at a time: what is in mode warn is enforced from its day on.
func (s *Snapshot) At(now time.Time) *Snapshot {
	if s.eased != nil {
		return s.again(s.eased.base.At(now))
	}
	if s.family.phase(now) == s.phase {
		return s
	}
	return s.family.at(now, s.strictest)
}

// AtMost returns the snapshot with no mode stricter than this: [bucket.Warn] and [bucket.Shadow] refuse
// nothing by limits and maximum costs, [bucket.Off] does not judge them. What is blocked stays blocked.
// [ModeSwitch] uses it.
func (s *Snapshot) AtMost(strictest bucket.Mode) *Snapshot {
	if s.eased != nil {
		return s.again(s.eased.base.AtMost(strictest))
	}
	if strictest = min(strictest, bucket.Off); strictest <= s.strictest {
		return s
	}
	return s.family.member(s.phase, s.early, strictest)
}

// day is the one as of which modes hold, zero before the first.
func (s *Snapshot) day() time.Time {
	if s.phase == 0 {
		return time.Time{}
	}
	return s.family.days[s.phase-1]
}

// moment is the one as of which modes hold.
func (s *Snapshot) moment() moment {
	return moment{day: s.day(), early: s.early, strictest: s.strictest}
}

// Generation is the number of the policy in its source: that of the revision for one of a feed, as [Load] was given
// it, and 1 for one that was compiled.
func (s *Snapshot) Generation() uint64 {
	return s.family.generation
}

// NamesDocuments returns whether an operation rule of the policy, or an [Easing], names a document. Only then is it of any
// use to fill [Selection.Document].
func (s *Snapshot) NamesDocuments() bool {
	return s.family.documents || s.eased != nil && s.eased.by.documents
}

// Warnings returns what is odd about the policy and holds all the same, in the order of lines or else of
// paths, at most 100 things: units and limits of tenants that look misspelt, budgets of teams, users and operations that
// exceed those that pay beside them, limits in points whose capacity is below the maximum cost, and leases by which nothing
// is leased. The slice is the caller's own.
func (s *Snapshot) Warnings() []Warning {
	return slices.Clone(s.family.warnings)
}

// Rules returns what holds for the subject when it runs an operation.
//
// The tier is the one that the subject carries if the policy knows it, else the one that the policy
// assigns to the tenant, else the one that the record assigns to it ([Selection.Record]), else the default. The record of a
// tenant that the policy lists is not looked at. An exempt subject has no limits and no maximum cost.
//
// Rules takes no lock, but when the first subject asks for what an exception or a record makes of its tier: that is compiled then. It
// allocates the buckets of a subject that has a team or a user with limits, those of an operation that matches several
// operation rules in a combination that no single root field named by the policy matches, or any where the tenant has an
// exception, for which [Snapshot.RulesInto] takes room instead, and those of an operation of which a rule counts several
// calls, reads the arguments, or has a budget for the user.
func (s *Snapshot) Rules(subject Subject, selected Selection) Rules {
	return s.RulesInto(nil, subject, selected)
}

// RulesInto is [Snapshot.Rules] with room for the buckets, which is used if it is needed and large
// enough, whatever it holds. Four buckets are enough for a tenant, a team, a user and one operation
// rule.
func (s *Snapshot) RulesInto(room []bucket.Bucket, subject Subject, selected Selection) Rules {
	rules := s.rulesInto(room, subject, selected)
	if backstop := s.backstops(); backstop != nil && !subject.Exempt {
		rules.Backstop = backstop.charged(&selected)
	}
	return rules
}

// rulesInto returns the rules without the backstop.
func (s *Snapshot) rulesInto(room []bucket.Bucket, subject Subject, selected Selection) Rules {
	if s.eased != nil {
		s = s.eased.of(subject.Tenant, &selected)
	}
	set, record := s.find(&subject, selected.Record)
	if subject.Exempt {
		return Rules{
			Tier: set.rules.Tier, Store: set.rules.Store, Mode: bucket.Off, Unlimited: true,
			CostReport: set.rules.CostReport, CostValidate: set.rules.CostValidate, Hide: set.rules.Hide,
		}
	}
	if turned := s.turned(set, subject.Tenant); turned != s {
		s = turned
		set, record = s.find(&subject, selected.Record)
	}
	rules := set.of(s, record)
	var matched, charging uint64
	if set.operations != nil {
		matched = set.operations.apply(&rules, &selected)
		charging = matched & set.operations.limited
	}
	team, user := set.teams.of(subject.Team), set.users.of(subject.User)
	owners := [...]owned{{bucket.Team, subject.Team, team}, {bucket.User, subject.User, user}}
	if custom := s.customOf(set, subject, selected.Parameters); custom != nil {
		rules.Buckets = custom.apply(&rules, set, set.buckets(nil, owners, 0))
		if matched != 0 {
			set.operations.tally(&selected, matched).ask(&rules, rules.Buckets, subject.User)
		}
		return rules
	}
	switch {
	case matched != 0 && set.operations.asks(matched, &selected, subject.User):
		buckets := set.buckets(room, owners, 0)
		set.operations.tally(&selected, matched).ask(&rules, buckets, subject.User)
	case team != nil || user != nil:
		rules.Buckets = set.buckets(room, owners, charging)
	case charging != 0:
		if foreseen, found := set.foreseen[charging]; found {
			rules.Buckets = foreseen
		} else {
			rules.Buckets = set.buckets(room, owners, charging)
		}
	}
	return rules
}

// SharedRules returns what [Snapshot.Rules] does, without a copy, where neither the operation nor the team or the user of the
// subject makes a difference, of a tenant without a [Record]. It is nil where one may, and for subjects that are exempt. The rules
// are those of others too, and must not be changed.
func (s *Snapshot) SharedRules(subject Subject) *Rules {
	backstop := s.backstops()
	if s.eased != nil {
		if s.eased.by.readsOperations(subject.Tenant) {
			return nil
		}
		s = s.eased.of(subject.Tenant, &Selection{})
	}
	if backstop != s.backstop || backstop != nil && backstop.operations != nil {
		return nil
	}
	set, _ := s.find(&subject, nil)
	if turned := s.turned(set, subject.Tenant); turned != s {
		s = turned
		set, _ = s.find(&subject, nil)
	}
	if subject.Exempt || s.custom != nil || set.custom != nil || set.operations != nil || set.teams.of(subject.Team) != nil || set.users.of(subject.User) != nil {
		return nil
	}
	if shared := set.shared.Load(); shared != nil && shared.from == s {
		return shared
	}
	rules := set.of(s, nil)
	if backstop != nil {
		rules.Backstop = backstop.rules.Buckets
	}
	set.shared.Store(&rules)
	return &rules
}

// of returns the rules as those of a snapshot, and of a record.
func (set *ruleSet) of(s *Snapshot, record *Record) Rules {
	rules := set.rules
	rules.from, rules.record, rules.days = s, record, s
	if set.days != nil {
		rules.days = set.days
	}
	return rules
}

// owned is the budget of a team or a user. Its limits are nil if there is none.
type owned struct {
	level  bucket.Level
	name   string
	limits *bucket.Limits
}

// buckets puts together what a subject pays from.
func (set *ruleSet) buckets(room []bucket.Bucket, owners [2]owned, charging uint64) []bucket.Bucket {
	if most := len(set.rules.Buckets) + 2 + bits.OnesCount64(charging); cap(room) < most {
		room = make([]bucket.Bucket, 0, most)
	}
	buckets := append(room[:0], set.rules.Buckets...)
	for _, o := range owners {
		if o.limits != nil {
			buckets = append(buckets, bucket.Bucket{Owner: bucket.Owner{Level: o.level, Name: o.name}, Limits: o.limits})
		}
	}
	if charging != 0 {
		buckets = set.operations.appendTo(buckets, charging)
	}
	return buckets
}
