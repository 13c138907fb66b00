package tiers

import (
	"slices"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// Places that are no part of the document.
const (
	placeSubject    = "(subject)"
	placeDefault    = "(default)"
	placeModeSwitch = "(mode switch)"
)

// Provenance says where in the policy that stands which makes a rule what it is: paths such as
// tiers.free.limits.minute, in the form in which mistakes name them; (subject) for the tier that the subject carried,
// record and what follows for the record of the tenant, (default) for what holds where the document says nothing, and (mode switch) for what a [ModeSwitch] or
// [Snapshot.AtMost] has eased a mode to. Override records are no part of a policy: [bucket.Limit.Overrides] has those. The zero value is that of no rule.
type Provenance struct {
	// Tier is what has put the subject into its tier.
	Tier string
	// Rule are the places that say what the rule is: each replaces the one before it whole, and the last one
	// holds. It is empty where nothing but the tier is asked for.
	Rule []string
	// Line is the line of the document on which the key of the last of these stands, from 1 on. It is 0 for a place in no
	// document: of a policy that was compiled from Go, or of a record.
	Line int
	// Mode is where the mode comes from, and FailMode the fail mode.
	Mode, FailMode string
}

// Provenance returns where the tier of the subject, its mode and its fail mode come from, and what blocks it if
// anything does. The subject is the one that the rules are for. It looks the document up, as its siblings do,
// so that rules which nobody asks cost nothing for it.
func (r *Rules) Provenance(subject Subject) Provenance {
	if r.from == nil {
		return Provenance{}
	}
	t := newTrace(r, subject)
	t.define(t.tierAt.to("blocked"), t.tier.Blocked)
	t.define(t.exceptionAt.to("blocked"), t.exception.Blocked)
	return t.provenance()
}

// LimitProvenance returns where the rules have a limit of an owner from. It returns false if the policy has no
// such limit for the subject.
func (r *Rules) LimitProvenance(subject Subject, owner bucket.Owner, limit string) (Provenance, bool) {
	if r.from == nil || r.Blocked || r.Unlimited {
		return Provenance{}, false
	}
	t := newTrace(r, subject)
	switch owner.Level {
	case bucket.Tenant:
		t.limit(t.tierAt, t.tier.Limits, limit)
		t.multiply()
		t.limit(t.exceptionAt, t.exception.Limits, limit)
	case bucket.Team:
		t.owners("teams", t.tier.Teams, t.exception.Teams, owner.Name, limit)
	case bucket.User:
		users, _ := t.tier.Users.split()
		x, _ := t.exception.Users.split()
		t.owners("users", users, x, owner.Name, limit)
	case bucket.Operation:
		if strings.HasPrefix(owner.Part, partUser) {
			t.personal(owner.Name, limit)
			break
		}
		if namesKey(owner.Name) {
			t.custom(subject.Tenant, owner.Name, limit)
			break
		}
		t.operation(owner.Name)
		t.limit(t.operationAt(t.tierAt, owner.Name), t.tier.Operations[owner.Name].Limits, limit)
		t.multiply()
		t.limit(t.operationAt(t.exceptionAt, owner.Name), t.exception.Operations[owner.Name].Limits, limit)
	}
	if t.defined == nil {
		return Provenance{}, false
	}
	t.say(t.definedAt, t.defined.Mode, t.defined.EnforceFrom, t.defined.FailMode)
	return t.provenance(), true
}

// MaxCostProvenance returns where the rules have a maximum cost of so many points in a mode from, for an
// operation. It returns false if none of them has it.
func (r *Rules) MaxCostProvenance(subject Subject, operation Selection, points int64, mode bucket.Mode) (Provenance, bool) {
	if r.from == nil || points <= 0 {
		return Provenance{}, false
	}
	t := newTrace(r, subject)
	t.maxCost(t.tierAt, t.tier.MaxCost)
	t.maxCost(t.exceptionAt, t.exception.MaxCost)
	if t.most == points && t.now().mode == mode {
		return t.provenance(), true
	}
	for _, spelling := range t.spellings() {
		selected := func(field string) bool {
			return field == spelling || strings.Contains(spelling, "*") && matches(spelling, field)
		}
		if operation.Document != spelling && !slices.ContainsFunc(operation.Fields, selected) {
			continue
		}
		o := newTrace(r, subject)
		o.operation(spelling)
		o.maxCost(o.operationAt(o.tierAt, spelling), o.tier.Operations[spelling].MaxCost)
		o.maxCost(o.operationAt(o.exceptionAt, spelling), o.exception.Operations[spelling].MaxCost)
		if o.most == points && o.now().mode == mode {
			return o.provenance(), true
		}
	}
	return Provenance{}, false
}

// trace follows a policy to what holds in the end, in the order in which the compiler merges it, and notes the
// places.
type trace struct {
	from                *Snapshot
	tier                Tier
	exception           Exception
	tierAt, exceptionAt path
	// by has chosen the tier.
	by string
	// setting is what holds so far, and modeAt and failModeAt are the parts that say so, if any does.
	setting                setting
	modeAt, failModeAt     path
	modeSaid, failModeSaid bool
	// rule are the places that define the rule, last the last of them; defined, definedAt and most are what the last one says.
	rule      []string
	last      path
	defined   *Limit
	definedAt path
	most      int64
}

// newTrace has followed the policy to what holds for the tenant as a whole.
func newTrace(r *Rules, subject Subject) *trace {
	p := &r.from.family.policy
	t := &trace{
		from: r.from, tier: p.Tiers[r.Tier], exception: r.from.family.listed.exception(subject.Tenant), by: path("").to("default").String(),
		tierAt: path("").to("tiers").to(r.Tier), exceptionAt: path("").to("tenants").to(subject.Tenant),
	}
	if r.record != nil {
		t.exceptionAt, t.exception = path("").to("record"), Exception{}
		if r.Misfit == nil {
			t.exception = r.record.exception()
		}
	}
	switch {
	case subject.Tier != "" && subject.Tier == r.Tier:
		t.by = placeSubject
	case t.exception.Tier != "":
		t.by = t.exceptionAt.to("tier").String()
	}
	t.say("", p.Mode, p.EnforceFrom, "")
	t.say(t.tierAt, t.tier.Mode, t.tier.EnforceFrom, t.tier.FailMode)
	t.say(t.exceptionAt, t.exception.Mode, t.exception.EnforceFrom, t.exception.FailMode)
	return t
}

// say notes what a part of the policy says itself, where empty inherits.
func (t *trace) say(at path, mode, enforceFrom, failMode string) {
	t.setting = t.setting.with(mode, enforceFrom, failMode)
	if mode != "" {
		t.modeAt, t.modeSaid = at, true
	}
	if failMode != "" {
		t.failModeAt, t.failModeSaid = at, true
	}
}

// owners follows what holds for the teams, or the users, to one of them.
func (t *trace) owners(key string, rule *OwnerRule, x *OwnerException, name, limit string) {
	if rule != nil {
		at := t.tierAt.to(key)
		t.say(at, rule.Mode, rule.EnforceFrom, rule.FailMode)
		t.limit(at, rule.Limits, limit)
		t.multiply()
	}
	if x == nil {
		return
	}
	at := t.exceptionAt.to(key)
	t.say(at, x.Mode, x.EnforceFrom, x.FailMode)
	t.limit(at, x.Limits, limit)
	named := x.ByName[name]
	at = at.to("byName").to(name)
	t.say(at, named.Mode, named.EnforceFrom, named.FailMode)
	t.limit(at, named.Limits, limit)
}

// personal follows what holds for an operation of each user.
func (t *trace) personal(spelling, limit string) {
	users, rules := t.tier.Users.split()
	x, changes := t.exception.Users.split()
	tierAt, exceptionAt := t.tierAt.to("users"), t.exceptionAt.to("users")
	if users != nil {
		t.say(tierAt, users.Mode, users.EnforceFrom, users.FailMode)
	}
	if x != nil {
		t.say(exceptionAt, x.Mode, x.EnforceFrom, x.FailMode)
	}
	rule, change := rules[spelling], changes[spelling]
	t.say(t.operationAt(tierAt, spelling), rule.Mode, rule.EnforceFrom, rule.FailMode)
	t.say(t.operationAt(exceptionAt, spelling), change.Mode, change.EnforceFrom, change.FailMode)
	t.limit(t.operationAt(tierAt, spelling), rule.Limits, limit)
	t.multiply()
	t.limit(t.operationAt(exceptionAt, spelling), change.Limits, limit)
}

// operation follows what holds for an operation rule.
func (t *trace) operation(spelling string) {
	rule, x := t.tier.Operations[spelling], t.exception.Operations[spelling]
	t.say(t.operationAt(t.tierAt, spelling), rule.Mode, rule.EnforceFrom, rule.FailMode)
	t.say(t.operationAt(t.exceptionAt, spelling), x.Mode, x.EnforceFrom, x.FailMode)
}

func (t *trace) operationAt(at path, spelling string) path {
	return at.to("operations").to(spelling)
}

// spellings are those of all operation rules, in order.
func (t *trace) spellings() []string {
	all := slices.Concat(sorted(t.tier.Operations), sorted(t.exception.Operations))
	slices.Sort(all)
	return slices.Compact(all)
}

// limit notes what one part says about the limit: nothing, that it is another one, or that there is none.
func (t *trace) limit(at path, limits map[string]*Limit, name string) {
	l, said := limits[name]
	switch {
	case !said:
	case l == nil:
		t.rule, t.last, t.defined, t.definedAt = nil, "", nil, ""
	default:
		t.definedAt = at.to("limits").to(name)
		t.define(t.definedAt, true)
		t.defined = l
	}
}

// multiply notes what multiplies the limit that the tier has, if anything does.
func (t *trace) multiply() {
	multiplies := t.defined != nil && !t.defined.Across && t.exception.factor().changes()
	t.define(t.exceptionAt.to(t.exception.factorKey()), multiplies)
}

// maxCost notes what one part says about the maximum cost, where zero says nothing.
func (t *trace) maxCost(at path, points int64) {
	t.define(at.to("maxCost"), points > 0)
	if points > 0 {
		t.most = points
	}
}

// define notes a place that defines the rule, if it does.
func (t *trace) define(at path, defines bool) {
	if defines {
		t.rule, t.last = append(t.rule, at.String()), at
	}
}

// now is the setting with the mode of the snapshot.
func (t *trace) now() setting {
	return t.setting.as(t.from.moment())
}

func (t *trace) provenance() Provenance {
	place, _ := t.from.family.lines.of(t.last)
	p := Provenance{Tier: t.by, Rule: t.rule, Line: place.line, Mode: placeDefault, FailMode: placeDefault}
	today := t.setting.as(moment{day: t.from.day(), early: t.from.early}).mode
	switch {
	case today < t.from.strictest:
		p.Mode = placeModeSwitch
	case today != t.setting.mode && t.setting.as(moment{day: t.from.day()}).mode != today:
		p.Mode = t.tierAt.to("enforcement").to("share").String()
	case today != t.setting.mode:
		// Its day has come.
		p.Mode = t.modeAt.to("enforceFrom").String()
	case t.modeSaid:
		p.Mode = t.modeAt.to("mode").String()
	}
	if t.failModeSaid {
		p.FailMode = t.failModeAt.to("failMode").String()
	}
	return p
}

// namesKey reports whether the name of an owner at the level of operations is the key of a custom limit.
func namesKey(name string) bool { return strings.Contains(name, ":") && !isDocument(name) }
