package tiers

// version is that of the policy document that this package reads.
const version = 1

// Bounds of a policy.
const (
	// maxTiers is how many tiers a policy may have.
	maxTiers = 64
	// maxOperations is how many operation rules a tier may have, those of a tenant's exception
	// included.
	maxOperations = 64
	// maxUnits is how many units operation rules may compute that hold for one tenant.
	maxUnits = 16
	// maxPaths is how many paths a unit is computed from.
	maxPaths = 8
	// maxPathNames is how many names a path into arguments has.
	maxPathNames = 8
	// maxName is the length in bytes of the longest name of a tier, a limit or a unit.
	maxName = 64
	// MaxLongName is the length in bytes of the longest name of a tenant, a team, a user or an operation
	// rule.
	MaxLongName = 256
	// maxDays is how many different days a policy may name on which enforcement begins.
	maxDays = 16
	// maxCompiled is how many limits, operation rules, and named teams and users a policy may come to in all.
	maxCompiled = 1 << 19
)

// Policy is the document: tiers with limits, and the tenants that are exceptions. [Compile] says
// what is wrong with it.
//
// It has bounds, so that a hostile or broken document does not take the server with it: 1 MiB of text or what
// [ParseConfig] says, 64 tiers, 64 operation rules that hold for one tenant, 16 different days on which enforcement begins, names of 64 bytes for tiers, limits and units
// and of 256 for others, and 524 288 limits, operation rules, and named teams and users in all, where those of
// different exceptions that change more than the tier count once for every tier: a tenant may carry any of them.
type Policy struct {
	// Version is that of the document: 1. Zero means 1 in Go values; a document must name it.
	Version int `yaml:"version" json:"version"`
	// Default is the tier of tenants that have no other. It is required.
	Default string `yaml:"default" json:"default"`
	// Mode is off, shadow, warn or enforce, for everything that names none. Empty means enforce.
	//
	// Modes can stand at every part of a policy, and the most specific one holds: that of the limit
	// before that of the named team or user, before that of the operation rule or of all teams or users,
	// before that of the tenant, before that of the tier, before this one. Where an exception and a tier
	// say something about the same part, the exception goes first.
	Mode string `yaml:"mode,omitempty" json:"mode,omitempty"`
	// EnforceFrom goes with mode warn: the day, such as 2026-12-01, from whose start in UTC on it is
	// enforce. Clients are told the day. Whoever inherits the mode inherits the day. Empty means that
	// nobody knows yet.
	EnforceFrom string `yaml:"enforceFrom,omitempty" json:"enforceFrom,omitempty"`
	// Tiers are the tiers by name. At least one is required.
	Tiers map[string]Tier `yaml:"tiers" json:"tiers"`
	// Parameters say where requests have the values that the keys of custom limits are made of, by name, at most 8. What the
	// subject is (tenant, team, user) and its tier need not be named.
	Parameters map[string]Parameter `yaml:"parameters,omitempty" json:"parameters,omitempty"`
	// Custom are limits of requests that carry certain values, by the key that these make ([ParseKey]), such as lang:en or
	// lang:en,tenant:acme, at most 4096 of at most 32 combinations of names. Of the keys that a request matches the one with most parts holds, and of those with as many
	// the first by its canonical spelling; without one, nothing is added to what the tier says. Each has budgets of its own.
	// Values that no key has make no budget. They do not bound tenants that are unlimited.
	Custom map[string]CustomRule `yaml:"custom,omitempty" json:"custom,omitempty"`
	// Backstop is a budget over all tenants, which is charged before their own. Nil means none.
	Backstop *Backstop `yaml:"backstop,omitempty" json:"backstop,omitempty"`
	// Tenants are the exceptions by tenant: an assignment to a tier, or changes to it.
	Tenants map[string]Exception `yaml:"tenants,omitempty" json:"tenants,omitempty"`
}

// Tier is a named set of rules that is sold or granted to tenants. The zero value is a mistake: a
// tier without limits says so by Unlimited.
type Tier struct {
	// Mode is off, shadow, warn or enforce. It is the mode of the maximum cost and of the limits that name
	// none. Empty means that of the policy.
	Mode string `yaml:"mode,omitempty" json:"mode,omitempty"`
	// EnforceFrom goes with the mode, as in [Policy].
	EnforceFrom string `yaml:"enforceFrom,omitempty" json:"enforceFrom,omitempty"`
	// Enforcement has what is in mode shadow or warn enforced for a share of the tenants. Nil means for none.
	Enforcement *Enforcement `yaml:"enforcement,omitempty" json:"enforcement,omitempty"`
	// FailMode is bounded, closed, local or open: what happens while the store is away, for limits that name none and
	// for decisions without limits. Empty means open.
	FailMode string `yaml:"failMode,omitempty" json:"failMode,omitempty"`
	// Store names the store that keeps the budgets and claims of each tenant of the tier, one of those that
	// the server has. Empty means its default store. A tenant that comes to another store begins there
	// with nothing spent. So a tenant whose subjects carry tiers with different stores has its budgets once in
	// each of them: name the store in the exception of the tenant ([Exception.Store]), which holds in all
	// tiers, or let the users of one tenant carry tiers of one store.
	Store string `yaml:"store,omitempty" json:"store,omitempty"`
	// MaxCost is the price in points of the most expensive operation that may run. Zero means none.
	MaxCost int64 `yaml:"maxCost,omitempty" json:"maxCost,omitempty"`
	// Limits are the budgets of each tenant of the tier by name.
	Limits map[string]*Limit `yaml:"limits,omitempty" json:"limits,omitempty"`
	// Teams and Users are the budgets that each team and each user of such a tenant has, besides those
	// of the tenant. They are charged together, all or nothing. A subject without a team or a user has
	// no such budget. Nil means none.
	Teams *OwnerRule `yaml:"teams,omitempty" json:"teams,omitempty"`
	Users *UserRule  `yaml:"users,omitempty" json:"users,omitempty"`
	// Operations are further rules by root field: a coordinate such as Mutation.createOrder, or a
	// pattern such as Mutation.* or Query.search*; or by the id of a document, as [DocumentID] makes it,
	// which is for servers that run trusted documents only. All that match apply.
	Operations map[string]OperationRule `yaml:"operations,omitempty" json:"operations,omitempty"`
	// Unlimited says that nothing is charged. Only MaxCost can still refuse.
	Unlimited bool `yaml:"unlimited,omitempty" json:"unlimited,omitempty"`
	// Blocked says that every operation is refused, whatever the mode.
	Blocked bool `yaml:"blocked,omitempty" json:"blocked,omitempty"`
	// CostReport lets clients ask with GraphQL-Cost: report for the breakdown of what they pay.
	CostReport bool `yaml:"costReport,omitempty" json:"costReport,omitempty"`
	// CostValidate lets clients ask with GraphQL-Cost: validate for the price of an operation that is
	// then neither run nor charged. Such a request costs the server parsing and validation unpaid.
	CostValidate bool `yaml:"costValidate,omitempty" json:"costValidate,omitempty"`
	// Hide is what clients are not told. Nil hides nothing.
	Hide *Hide `yaml:"hide,omitempty" json:"hide,omitempty"`
	// Usage is what the store counts of what it admits, in the step that charges it: none, totals (points, requests and all other
	// units) or fields (root fields as well). It costs each take a tenth of the processor of Redis, and root fields more. Empty
	// means none.
	Usage string `yaml:"usage,omitempty" json:"usage,omitempty"`
	// Lease says whether servers hold parts of the tenant's own limits and decide by these without asking the store for each operation:
	// off, auto (while the tenant is busy) or always. Clients are then told what remains
	// approximately. Empty means off.
	Lease string `yaml:"lease,omitempty" json:"lease,omitempty"`
	// Throttle is what the adaptive throttle does while servers are overloaded, where the server has one. Nil is shed first.
	Throttle *Throttle `yaml:"throttle,omitempty" json:"throttle,omitempty"`
}

// Exception is what is different for one tenant. A field that is empty or zero keeps what the tier
// says. The zero value is a mistake.
type Exception struct {
	// Tier assigns the tenant to a tier. A subject that carries a tier is not bound by it.
	Tier string `yaml:"tier,omitempty" json:"tier,omitempty"`
	// Mode replaces that of the tier, also for the limits of the tier that name none.
	Mode string `yaml:"mode,omitempty" json:"mode,omitempty"`
	// EnforceFrom goes with the mode, as in [Policy].
	EnforceFrom string `yaml:"enforceFrom,omitempty" json:"enforceFrom,omitempty"`
	// FailMode replaces that of the tier, also for the limits of the tier that name none.
	FailMode string `yaml:"failMode,omitempty" json:"failMode,omitempty"`
	// Store replaces that of the tier, in whichever tier the tenant is.
	Store string `yaml:"store,omitempty" json:"store,omitempty"`
	// Times multiplies the limits of the tier in which the tenant is, those of its teams, users and operations included:
	// their capacity and their refill, and nothing else. So the tenant follows its tier, and the limits below, which
	// replace those of the tier whole, are as they stand. What all tenants share ([Limit.Across]) is not multiplied. A
	// product that a store cannot count becomes the nearest below it that it can. Zero multiplies nothing.
	Times Factor `yaml:"times,omitempty" json:"times,omitempty"`
	// Percent is Times in hundredths: 150 is half as much again, and 10 a tenth, rounded down and never below 1. One of the
	// two may be set. Zero multiplies nothing.
	Percent Factor `yaml:"percent,omitempty" json:"percent,omitempty"`
	// MaxCost replaces that of the tier.
	MaxCost int64 `yaml:"maxCost,omitempty" json:"maxCost,omitempty"`
	// Limits are added to those of the tier, or replace the one of the same name whole. Nil, which
	// documents write as null, removes it.
	Limits map[string]*Limit `yaml:"limits,omitempty" json:"limits,omitempty"`
	// Teams and Users are what is different for the teams and the users of the tenant, and for those of
	// them that it names. Nil changes nothing.
	Teams *OwnerException `yaml:"teams,omitempty" json:"teams,omitempty"`
	Users *UserException  `yaml:"users,omitempty" json:"users,omitempty"`
	// Operations are added to those of the tier. A rule of the same spelling is merged with it: a
	// maximum cost replaces, limits merge by name.
	Operations map[string]OperationRule `yaml:"operations,omitempty" json:"operations,omitempty"`
	// Custom are custom limits of the tenant, as in [Policy.Custom], at most 512. Each key means one with the name of the tenant as well; of
	// the same key the one of the policy holds.
	Custom map[string]CustomRule `yaml:"custom,omitempty" json:"custom,omitempty"`
	// Unlimited lifts every limit of the tier. A tier that is blocked stays blocked.
	Unlimited bool `yaml:"unlimited,omitempty" json:"unlimited,omitempty"`
	// Blocked refuses every operation of the tenant.
	Blocked bool `yaml:"blocked,omitempty" json:"blocked,omitempty"`
	// CostReport permits GraphQL-Cost: report where the tier does not.
	CostReport bool `yaml:"costReport,omitempty" json:"costReport,omitempty"`
	// CostValidate permits GraphQL-Cost: validate where the tier does not.
	CostValidate bool `yaml:"costValidate,omitempty" json:"costValidate,omitempty"`
	// Hide replaces that of the tier whole: one without fields hides nothing. Nil keeps it.
	Hide *Hide `yaml:"hide,omitempty" json:"hide,omitempty"`
	// Usage replaces that of the tier.
	Usage string `yaml:"usage,omitempty" json:"usage,omitempty"`
	// Lease replaces that of the tier.
	Lease string `yaml:"lease,omitempty" json:"lease,omitempty"`
	// Throttle replaces that of the tier whole. Nil keeps it.
	Throttle *Throttle `yaml:"throttle,omitempty" json:"throttle,omitempty"`
}

// OwnerRule is what holds for each team, for a team or user that an exception names, or for an operation of each user.
// The zero value is a mistake.
type OwnerRule struct {
	// Mode is off, shadow, warn or enforce, for the limits that name none. Empty means that of the tenant.
	Mode string `yaml:"mode,omitempty" json:"mode,omitempty"`
	// EnforceFrom goes with the mode, as in [Policy].
	EnforceFrom string `yaml:"enforceFrom,omitempty" json:"enforceFrom,omitempty"`
	// FailMode is bounded, closed, local or open, for the limits that name none. Empty means that of the tenant.
	FailMode string `yaml:"failMode,omitempty" json:"failMode,omitempty"`
	// Limits are the budgets by name. In an exception they are added to those that come before, or
	// replace the one of the same name whole; nil, which documents write as null, removes it.
	Limits map[string]*Limit `yaml:"limits,omitempty" json:"limits,omitempty"`
}

// UserRule is what holds for each user of the tenants of a tier. The zero value is a mistake.
type UserRule struct {
	// OwnerRule is what holds for all operations of each user.
	OwnerRule `yaml:",inline"`
	// Operations are budgets that each user has for operations alone, by root field as in [Tier.Operations]. Their
	// limits in requests count the calls that match. In an exception they are added to those that each user has, or merged
	// with the one of the same spelling.
	Operations map[string]OwnerRule `yaml:"operations,omitempty" json:"operations,omitempty"`
}

// OwnerException is what is different for the teams, or the users, of one tenant. The zero value is a mistake.
type OwnerException struct {
	// OwnerRule has a mode and a fail mode that replace those which the tier has for them, and limits that are added to those
	// of the tier or replace the one of the same name whole.
	OwnerRule `yaml:",inline"`
	// ByName are single ones, with what is different for them again.
	ByName map[string]OwnerRule `yaml:"byName,omitempty" json:"byName,omitempty"`
}

// UserException is what is different for the users of one tenant. The zero value is a mistake.
type UserException struct {
	// OwnerException is what is different in all operations of the users.
	OwnerException `yaml:",inline"`
	// Operations are those of a [UserRule].
	Operations map[string]OwnerRule `yaml:"operations,omitempty" json:"operations,omitempty"`
}

// OperationRule is what holds for operations that select a root field, besides the rules of their
// tier. The zero value is a mistake.
type OperationRule struct {
	// Mode is off, shadow, warn or enforce, for the maximum cost of the rule and its limits that name none.
	// Empty means that of the tenant.
	Mode string `yaml:"mode,omitempty" json:"mode,omitempty"`
	// EnforceFrom goes with the mode, as in [Policy].
	EnforceFrom string `yaml:"enforceFrom,omitempty" json:"enforceFrom,omitempty"`
	// FailMode is bounded, closed, local or open, for the limits that name none. Empty means that of the tenant.
	FailMode string `yaml:"failMode,omitempty" json:"failMode,omitempty"`
	// MaxCost is the price in points of the most expensive such operation that may run. The smallest
	// of all that apply and have the same mode counts. Zero means none.
	MaxCost int64 `yaml:"maxCost,omitempty" json:"maxCost,omitempty"`
	// Instead says that an operation all of whose calls match pays to this rule and not to the limits that hold for all
	// operations: those of the tenant, its team and its user. An operation that makes other calls too pays to both, its whole
	// price to each. It needs a limit in points or requests that is neither divided nor soft, and counts as false while the mode
	// of each of these is less strict than that of a limit in whose place it would stand: what is tried does not open anything.
	// The tenant always pays what belongs to an operation and to no call of it: records, answer_bytes, replays, response_bytes
	// and events. In an exception it adds to what the tier says.
	Instead bool `yaml:"instead,omitempty" json:"instead,omitempty"`
	// Limits are budgets of a bucket that each tenant has for this rule alone. They are charged
	// together with those of the tenant, all or nothing. In requests they count the calls that match: one document with
	// 300 aliases of a field makes 300. In points they count the price of the whole operation.
	Limits map[string]*Limit `yaml:"limits,omitempty" json:"limits,omitempty"`
	// Units are units that the rule computes, each by paths into the arguments of the calls that match, such as origins
	// or input.first: the product of the lengths of lists and of the numbers found there, added up over the calls. An
	// argument that is absent, or null, or neither counts as 1. Every limit that counts such a unit, whoever's it is, is
	// charged with it before a resolver runs. In an exception they are added to those of the tier, or replace the one of
	// the same name; no paths, which documents write as null, remove it.
	Units map[string][]string `yaml:"units,omitempty" json:"units,omitempty"`
}

// Limit is one budget rule: at most Capacity, with Refill coming back in each period, continuously, or
// with Window all of it at the end of each window.
type Limit struct {
	// Unit is what the limit counts: points, requests, what idempotency keys cost (records, answer_bytes
	// and replays), what leaves (response_bytes and events), a unit that an
	// operation rule computes, or one that the server charges itself. Empty means points.
	Unit string `yaml:"unit,omitempty" json:"unit,omitempty"`
	// Capacity is the largest amount that can be taken at once. It is required.
	Capacity int64 `yaml:"capacity" json:"capacity"`
	// Refill is how much comes back in each period. Zero means Capacity, as it always is in windows.
	Refill int64 `yaml:"refill,omitempty" json:"refill,omitempty"`
	// Per is the period. It is required.
	Per Period `yaml:"per" json:"per"`
	// Window is fixed (from the first charge on), sliding, or calendar (hours, days, months or years by
	// the clock of Zone): see [bucket.WindowKind]. Empty means none: a token bucket, to which the budget
	// comes back continuously.
	Window string `yaml:"window,omitempty" json:"window,omitempty"`
	// AnchorDay is the day, 1 to 31, on which calendar months and years begin, as billing months do: the last day
	// of the month where it is shorter. Zero means 1.
	AnchorDay int64 `yaml:"anchorDay,omitempty" json:"anchorDay,omitempty"`
	// AnchorMonth is the month, 1 to 12, in which calendar years begin, as the years of a contract do, on AnchorDay. Zero
	// means 1.
	AnchorMonth int64 `yaml:"anchorMonth,omitempty" json:"anchorMonth,omitempty"`
	// Zone is the IANA name of the time zone of calendar windows, such as Europe/Berlin. Empty means UTC.
	Zone string `yaml:"zone,omitempty" json:"zone,omitempty"`
	// By divides a limit of an operation rule: a path into the arguments of the calls that match, such as input.email, of
	// which each value has a bucket of its own. The elements of a list are values of their own; what is absent is a value
	// as well. Only a hash of a value is stored, and case, blanks around a text and the spelling of a number make no other
	// value. An operation with more than 16 different values is refused. The limit counts requests, or a unit that the
	// rule computes. Empty divides nothing.
	By string `yaml:"by,omitempty" json:"by,omitempty"`
	// Across says that all tenants share the buckets of By: an account that is attacked from many addresses, each of
	// which is a tenant of its own, is bounded as a whole.
	Across bool `yaml:"across,omitempty" json:"across,omitempty"`
	// Soft says that the limit only reports: it is always charged and refuses nothing, whatever its mode.
	Soft bool `yaml:"soft,omitempty" json:"soft,omitempty"`
	// Mode is off, shadow, warn or enforce. Empty means that of what the limit stands in.
	Mode string `yaml:"mode,omitempty" json:"mode,omitempty"`
	// EnforceFrom goes with the mode, as in [Policy].
	EnforceFrom string `yaml:"enforceFrom,omitempty" json:"enforceFrom,omitempty"`
	// FailMode is bounded, closed, local or open. Empty means that of what the limit stands in.
	FailMode string `yaml:"failMode,omitempty" json:"failMode,omitempty"`
}
