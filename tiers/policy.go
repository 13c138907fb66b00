package tiers

// Version is the version of the policy document that this package reads.
const Version = 1

// Bounds of a policy. They keep a hostile or broken document from taking the server with it.
const (
	// MaxDocument is the size in bytes of the largest document.
	MaxDocument = 1 << 20
	// MaxTiers is how many tiers a policy may have.
	MaxTiers = 64
	// MaxOperations is how many operation rules a tier may have, those of a tenant's exception
	// included.
	MaxOperations = 64
	// MaxName is the length in bytes of the longest name of a tier, a limit or a unit.
	MaxName = 64
	// MaxLongName is the length in bytes of the longest name of a tenant or an operation rule.
	MaxLongName = 256
	// MaxCompiled is how many limits and operation rules a policy may come to in all, where those of
	// each exception that changes more than the tier count once for every tier: a tenant may carry
	// any of them.
	MaxCompiled = 1 << 18
)

// Policy is the document: tiers with limits, and the tenants that are exceptions. [Compile] says
// what is wrong with it.
type Policy struct {
	// Version is that of the document, [Version]. Zero means [Version] in Go values; a document must
	// name it.
	Version int `yaml:"version" json:"version"`
	// Default is the tier of tenants that have no other. It is required.
	Default string `yaml:"default" json:"default"`
	// Tiers are the tiers by name. At least one is required.
	Tiers map[string]Tier `yaml:"tiers" json:"tiers"`
	// Tenants are the exceptions by tenant: an assignment to a tier, or changes to it.
	Tenants map[string]Exception `yaml:"tenants,omitempty" json:"tenants,omitempty"`
}

// Tier is a named set of rules that is sold or granted to tenants. The zero value is a mistake: a
// tier without limits says so by Unlimited.
type Tier struct {
	// Mode is off, shadow or enforce. It is the mode of the maximum cost and of the limits that name
	// none. Empty means enforce.
	Mode string `yaml:"mode,omitempty" json:"mode,omitempty"`
	// FailMode is open or closed: what happens while the store is away, for limits that name none and
	// for decisions without limits. Empty means open.
	FailMode string `yaml:"failMode,omitempty" json:"failMode,omitempty"`
	// MaxCost is the price in points of the most expensive operation that may run. Zero means none.
	MaxCost int64 `yaml:"maxCost,omitempty" json:"maxCost,omitempty"`
	// Limits are the budgets of each tenant of the tier by name.
	Limits map[string]*Limit `yaml:"limits,omitempty" json:"limits,omitempty"`
	// Operations are further rules by root field: a coordinate such as Mutation.createOrder, or a
	// pattern such as Mutation.* or Query.search*. All that match apply.
	Operations map[string]OperationRule `yaml:"operations,omitempty" json:"operations,omitempty"`
	// Unlimited says that nothing is charged. Only MaxCost can still refuse.
	Unlimited bool `yaml:"unlimited,omitempty" json:"unlimited,omitempty"`
	// Blocked says that every operation is refused, whatever the mode.
	Blocked bool `yaml:"blocked,omitempty" json:"blocked,omitempty"`
}

// Exception is what is different for one tenant. A field that is empty or zero keeps what the tier
// says. The zero value is a mistake.
type Exception struct {
	// Tier assigns the tenant to a tier. A subject that carries a tier is not bound by it.
	Tier string `yaml:"tier,omitempty" json:"tier,omitempty"`
	// Mode replaces that of the tier, also for the limits of the tier that name none.
	Mode string `yaml:"mode,omitempty" json:"mode,omitempty"`
	// FailMode replaces that of the tier, also for the limits of the tier that name none.
	FailMode string `yaml:"failMode,omitempty" json:"failMode,omitempty"`
	// MaxCost replaces that of the tier.
	MaxCost int64 `yaml:"maxCost,omitempty" json:"maxCost,omitempty"`
	// Limits are added to those of the tier, or replace the one of the same name whole. Nil, which
	// documents write as null, removes it.
	Limits map[string]*Limit `yaml:"limits,omitempty" json:"limits,omitempty"`
	// Operations are added to those of the tier. A rule of the same spelling is merged with it: a
	// maximum cost replaces, limits merge by name.
	Operations map[string]OperationRule `yaml:"operations,omitempty" json:"operations,omitempty"`
	// Unlimited lifts every limit of the tier. A tier that is blocked stays blocked.
	Unlimited bool `yaml:"unlimited,omitempty" json:"unlimited,omitempty"`
	// Blocked refuses every operation of the tenant.
	Blocked bool `yaml:"blocked,omitempty" json:"blocked,omitempty"`
}

// OperationRule is what holds for operations that select a root field, besides the rules of their
// tier. The zero value is a mistake.
type OperationRule struct {
	// MaxCost is the price in points of the most expensive such operation that may run. The smallest
	// of all that apply counts. Zero means none.
	MaxCost int64 `yaml:"maxCost,omitempty" json:"maxCost,omitempty"`
	// Limits are budgets of a bucket that each tenant has for this rule alone. They are charged
	// together with those of the tenant, all or nothing.
	Limits map[string]*Limit `yaml:"limits,omitempty" json:"limits,omitempty"`
}

// Limit is one budget rule: at most Capacity, with Refill coming back in each period, continuously.
type Limit struct {
	// Unit is what the limit counts: points, requests, or a unit that the server charges itself. Empty
	// means points.
	Unit string `yaml:"unit,omitempty" json:"unit,omitempty"`
	// Capacity is the largest amount that can be taken at once. It is required.
	Capacity int64 `yaml:"capacity" json:"capacity"`
	// Refill is how much comes back in each period. Zero means Capacity.
	Refill int64 `yaml:"refill,omitempty" json:"refill,omitempty"`
	// Per is the period. It is required.
	Per Period `yaml:"per" json:"per"`
	// Mode is off, shadow or enforce. Empty means that of the tier.
	Mode string `yaml:"mode,omitempty" json:"mode,omitempty"`
	// FailMode is open or closed. Empty means that of the tier.
	FailMode string `yaml:"failMode,omitempty" json:"failMode,omitempty"`
}
