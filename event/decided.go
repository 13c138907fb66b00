package event

import (
	"log/slog"
	"strconv"
	"strings"
	"time"
)

// Decided says what one operation came to, or one charge that a resolver made inside it, and why. Of the
// refusals of each tenant a sample is told, of other decisions the share that the server asks for. Names from outside are cut: those of
// owners to 256 bytes, that of the operation to 64.
//
// As JSON its durations are nanoseconds, and what is zero is left out where that says nothing.
type Decided struct {
	// At is when, by the clock of the replica.
	At time.Time `json:"at"`
	// RefusalID is the id that the client was given in extensions.refusalId of its error. It is empty if
	// nothing was refused.
	RefusalID string `json:"refusalId,omitempty"`
	// Untold is how many refusals, of all tenants, this replica has not told since the last one that it told.
	Untold int64 `json:"untold,omitempty"`
	// Outcome is what it came to, in the word that metrics carry.
	Outcome string `json:"outcome"`
	// Code is the one that the client was refused with, or of what would have refused it if everything were
	// enforced. It is empty if there is neither.
	Code string `json:"code,omitempty"`
	// Charge says that a resolver asked to charge more, of an operation that runs.
	Charge bool `json:"charge,omitempty"`

	// Tenant, Team and User are who pays. They are empty if nobody knows, or if there is none.
	Tenant string `json:"tenant,omitempty"`
	Team   string `json:"team,omitempty"`
	User   string `json:"user,omitempty"`
	// SubjectTier is the tier that the subject carried, empty if none. Tier is the one whose rules applied, Mode the
	// mode of these.
	SubjectTier string `json:"subjectTier,omitempty"`
	Tier        string `json:"tier,omitempty"`
	Mode        string `json:"mode,omitempty"`
	// Origin is where the tier and what else stands in no limit come from: a maximum cost, a block.
	Origin Origin `json:"origin,omitzero"`
	// Revision is the number of the policy that decided, as its feed counts. It is 0 if nobody's policy did.
	Revision uint64 `json:"revision,omitempty"`
	// Hides is what that policy keeps from clients. Who shows them an event shows none of it.
	Hides Hides `json:"hides,omitzero"`

	// Kind is query, mutation or subscription. It is empty for a document that did not validate.
	Kind string `json:"kind,omitempty"`
	// Operation is the name that the client gave the operation.
	Operation string `json:"operation,omitempty"`
	// RootFields are the coordinates of the root fields, sorted, the first 16 of them.
	RootFields []string `json:"rootFields,omitempty"`
	// Keyed says that the operation had an idempotency key.
	Keyed bool `json:"keyed,omitempty"`

	// Cost is the price in points, and Charged what of it was charged.
	Cost    int64 `json:"cost"`
	Charged int64 `json:"charged"`
	// Amounts are what was asked of limits. It is empty if none was asked.
	Amounts []Amount `json:"amounts,omitempty"`
	// MaxCost is the maximum cost that was exceeded, zero if none was.
	MaxCost int64 `json:"maxCost,omitempty"`
	// Dearest is the field whose calls add most to a price that is too high. It is empty otherwise.
	Dearest string `json:"dearest,omitempty"`
	// Rule is the limit or rule of shape that was broken. It is empty if none was.
	Rule string `json:"rule,omitempty"`
	// RetryAfter is when the operation can pass, and ClearsAt the same as a time. They are zero if waiting
	// does not help, or if nobody knows.
	RetryAfter time.Duration `json:"retryAfter,omitempty"`
	ClearsAt   time.Time     `json:"clearsAt,omitzero"`
	// Limits are the limits that were judged, as they were then.
	Limits []LimitState `json:"limits,omitempty"`

	// Store is the name of the store that was asked, empty for the default one. StoreDuration is how long it
	// took, and StoreResult what it came to: empty if it answered or was not asked, and otherwise
	// unavailable, ambiguous, breaker_open, busy or invalid.
	Store         string        `json:"store,omitempty"`
	StoreDuration time.Duration `json:"storeDuration,omitempty"`
	StoreResult   string        `json:"storeResult,omitempty"`
	// FailMode is the fail mode of the limits, if the store did not answer. A mutation with an idempotency key
	// is refused whatever it says.
	FailMode string `json:"failMode,omitempty"`
}

// Hides is what clients are not told.
type Hides struct {
	// Cost is what operations cost and may cost, Limits the capacities of limits, Remaining what is left of them and when they
	// are full again, and Owners the names of teams, users and operation rules.
	Cost      bool `json:"cost,omitempty"`
	Limits    bool `json:"limits,omitempty"`
	Remaining bool `json:"remaining,omitempty"`
	Owners    bool `json:"owners,omitempty"`
}

// Amount is so much of a unit.
type Amount struct {
	// Unit is what is counted, and N how much of it.
	Unit string `json:"unit"`
	N    int64  `json:"n"`
}

// LimitState is a limit as it was when it was decided.
type LimitState struct {
	// Level is whose limit it is: tenant, team, user or operation. Owner tells owners of one level
	// apart; it is empty at the level of the tenant. Part tells apart those who have a bucket of an operation
	// each: it is the name of a user, or a hash of what was given as an argument.
	Level string `json:"level"`
	Owner string `json:"owner,omitempty"`
	Part  string `json:"part,omitempty"`
	// Limit is its name, Unit what it counts.
	Limit string `json:"limit"`
	Unit  string `json:"unit"`
	// Capacity is how much it holds, and Refill what comes back in each Period: all of it in windows.
	Capacity int64         `json:"capacity"`
	Refill   int64         `json:"refill,omitempty"`
	Period   time.Duration `json:"period,omitempty"`
	// Mode is what it does to an operation that exceeds it, FailMode what happens while the store is away.
	Mode     string `json:"mode,omitempty"`
	FailMode string `json:"failMode,omitempty"`
	// Soft says that it only reports.
	Soft bool `json:"soft,omitempty"`
	// Asked is what was asked of it.
	Asked int64 `json:"asked,omitempty"`
	// Remaining is what is left, and Overdraft what is spent beyond the capacity.
	Remaining int64 `json:"remaining"`
	Overdraft int64 `json:"overdraft,omitempty"`
	// Approximate says that replicas lease parts of it, so that this one can refuse while others hold enough. Held is what of Remaining
	// this replica held: the rest was left in the store when that said so last.
	Approximate bool  `json:"approximate,omitempty"`
	Held        int64 `json:"held,omitempty"`
	// ResetAfter is when it is full again.
	ResetAfter time.Duration `json:"resetAfter,omitempty"`
	// Exceeded says that it had not the amount, Refuses that it is one of those that refused, and Never that
	// it cannot ever hold the amount.
	Exceeded bool `json:"exceeded,omitempty"`
	Refuses  bool `json:"refuses,omitempty"`
	Never    bool `json:"never,omitempty"`
	// RetryAfter is when it has the amount. It is zero if it is not exceeded, and if it never has.
	RetryAfter time.Duration `json:"retryAfter,omitempty"`
	// Origin is where the limit comes from, nil for one that is not exceeded.
	Origin *Origin `json:"origin,omitempty"`
}

// Origin is where rules come from: places in the policy document, such as tiers.free.limits.minute, and
// override records.
type Origin struct {
	// Tier is what has put the subject into its tier: default, a place under tenants, or (subject) for the
	// tier that it carried.
	Tier string `json:"tier,omitempty"`
	// Rule are the places that define the rule, each of which replaces the one before it: the last one holds.
	Rule []string `json:"rule,omitempty"`
	// Line is the line of the document on which the last of these stands. It is 0 for a place in no document.
	Line int `json:"line,omitempty"`
	// Mode and FailMode are the places that these come from, (default) if none says them, and (mode switch) for
	// a mode that an operator has eased for all.
	Mode     string `json:"mode,omitempty"`
	FailMode string `json:"failMode,omitempty"`
	// Overrides are the records that have changed it after the policy, the last one beating the others.
	Overrides []Override `json:"overrides,omitempty"`
}

// Override is a record that beats the policy.
type Override struct {
	// Level, Owner and Part are whose limits it changes, and Limit which of them: empty for all.
	Level string `json:"level"`
	Owner string `json:"owner,omitempty"`
	Part  string `json:"part,omitempty"`
	Limit string `json:"limit,omitempty"`
	// Reason and Actor are what was said when it was made, and by whom. SetAt is when that was, and Expires
	// when it ceases to hold, zero for never.
	Reason  string    `json:"reason,omitempty"`
	Actor   string    `json:"actor,omitempty"`
	SetAt   time.Time `json:"setAt,omitzero"`
	Expires time.Time `json:"expires,omitzero"`
}

// Name returns decided.
func (Decided) Name() string { return "decided" }

// LogValue returns all fields but the time. What is empty is left out.
func (e Decided) LogValue() slog.Value {
	var a attributes
	a.text("refusalId", e.RefusalID)
	a.number("untold", e.Untold)
	a.text("outcome", e.Outcome)
	a.text("code", e.Code)
	a.flag("charge", e.Charge)
	a.text("tenant", e.Tenant)
	a.text("team", e.Team)
	a.text("user", e.User)
	a.text("subjectTier", e.SubjectTier)
	a.text("tier", e.Tier)
	a.text("mode", e.Mode)
	a.text("kind", e.Kind)
	a.text("operation", e.Operation)
	a.text("rootFields", strings.Join(e.RootFields, ","))
	a.flag("keyed", e.Keyed)
	a = append(a, slog.Int64("cost", e.Cost), slog.Int64("charged", e.Charged))
	a.number("maxCost", e.MaxCost)
	a.text("dearest", e.Dearest)
	a.text("rule", e.Rule)
	a.duration("retryAfter", e.RetryAfter)
	a.time("clearsAt", e.ClearsAt)
	var amounts attributes
	for _, amount := range e.Amounts {
		amounts = append(amounts, slog.Int64(amount.Unit, amount.N))
	}
	a.group("amounts", amounts)
	a.text("store", e.Store)
	a.duration("storeDuration", e.StoreDuration)
	a.text("storeResult", e.StoreResult)
	a.text("failMode", e.FailMode)
	if e.Revision != 0 {
		a = append(a, slog.Uint64("revision", e.Revision))
	}
	a.text("tierFrom", e.Origin.Tier)
	a = append(a, e.Origin.attributes()...)
	var limits attributes
	for i := range e.Limits {
		limits.group(strconv.Itoa(i), e.Limits[i].attributes())
	}
	a.group("limits", limits)
	return slog.GroupValue(a...)
}

func (l *LimitState) attributes() attributes {
	var a attributes
	a.text("level", l.Level)
	a.text("owner", l.Owner)
	a.text("part", l.Part)
	a.text("limit", l.Limit)
	a.text("unit", l.Unit)
	a = append(a, slog.Int64("capacity", l.Capacity), slog.Int64("refill", l.Refill))
	a.duration("period", l.Period)
	a.text("mode", l.Mode)
	a.flag("soft", l.Soft)
	a.number("asked", l.Asked)
	a = append(a, slog.Int64("remaining", l.Remaining))
	a.number("overdraft", l.Overdraft)
	a.flag("approximate", l.Approximate)
	a.number("held", l.Held)
	a.duration("resetAfter", l.ResetAfter)
	a.flag("exceeded", l.Exceeded)
	a.flag("refuses", l.Refuses)
	a.flag("never", l.Never)
	a.duration("retryAfter", l.RetryAfter)
	if l.Origin != nil {
		a = append(a, l.Origin.attributes()...)
	}
	return a
}

// attributes are all but the tier, which is that of the whole decision.
func (o *Origin) attributes() attributes {
	var a attributes
	a.text("from", strings.Join(o.Rule, " < "))
	a.number("line", int64(o.Line))
	a.text("modeFrom", o.Mode)
	a.text("failModeFrom", o.FailMode)
	var overrides attributes
	for i := range o.Overrides {
		r := &o.Overrides[i]
		var record attributes
		record.text("level", r.Level)
		record.text("owner", r.Owner)
		record.text("part", r.Part)
		record.text("limit", r.Limit)
		record.text("reason", r.Reason)
		record.text("actor", r.Actor)
		record.time("setAt", r.SetAt)
		record.time("expires", r.Expires)
		overrides.group(strconv.Itoa(i), record)
	}
	a.group("overrides", overrides)
	return a
}

// attributes are those of a line, to which nothing is added that is empty.
type attributes []slog.Attr

func (a *attributes) text(key, text string) {
	if text != "" {
		*a = append(*a, slog.String(key, text))
	}
}

func (a *attributes) flag(key string, set bool) {
	if set {
		*a = append(*a, slog.Bool(key, true))
	}
}

func (a *attributes) number(key string, n int64) {
	if n != 0 {
		*a = append(*a, slog.Int64(key, n))
	}
}

func (a *attributes) duration(key string, d time.Duration) {
	if d != 0 {
		*a = append(*a, slog.Duration(key, d))
	}
}

func (a *attributes) time(key string, t time.Time) {
	if !t.IsZero() {
		*a = append(*a, slog.Time(key, t))
	}
}

func (a *attributes) group(key string, of attributes) {
	if len(of) > 0 {
		*a = append(*a, slog.Attr{Key: key, Value: slog.GroupValue(of...)})
	}
}
