package tiers

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// CustomRule is what holds for requests that carry all parts of a key. The zero value is a mistake.
type CustomRule struct {
	// Mode is off, shadow, warn or enforce, for the limits that name none. Empty means that of the policy, and under a tenant that of
	// the tenant.
	Mode string `yaml:"mode,omitempty" json:"mode,omitempty"`
	// EnforceFrom goes with the mode, as in [Policy].
	EnforceFrom string `yaml:"enforceFrom,omitempty" json:"enforceFrom,omitempty"`
	// FailMode is bounded, closed, local or open, for the limits that name none. Empty means that of what Mode inherits.
	FailMode string `yaml:"failMode,omitempty" json:"failMode,omitempty"`
	// Instead says that the requests pay to this rule and not to the limits that hold for all operations, those of the tenant, its
	// team and its user. Without it the rule bounds them beside these limits, so that a client gains nothing by a key that it
	// chooses. It means for a request what [OperationRule.Instead] does for a call.
	Instead bool `yaml:"instead,omitempty" json:"instead,omitempty"`
	// Across says that all tenants share the budget. Without it each has one of its own.
	Across bool `yaml:"across,omitempty" json:"across,omitempty"`
	// Limits are the budgets by name. At least one is required.
	Limits map[string]*Limit `yaml:"limits,omitempty" json:"limits,omitempty"`
}

// Parameter is where a request has a value that keys are made of: one of the five. What is absent, empty, longer than 256 bytes or
// there more than once has no value, and matches no key. The zero value is a mistake.
type Parameter struct {
	// Header is the name of a header, on a WebSocket of the upgrade.
	Header string `yaml:"header,omitempty" json:"header,omitempty"`
	// Claim is what the subject says of itself ([Subject.Claims]), such as an entry of a token that the server has verified.
	Claim string `yaml:"claim,omitempty" json:"claim,omitempty"`
	// Query is the name of a parameter of the URL.
	Query string `yaml:"query,omitempty" json:"query,omitempty"`
	// Path is the number of a segment of the path of the URL, from 1 on.
	Path int64 `yaml:"path,omitempty" json:"path,omitempty"`
	// Variable is a dotted path into the variables of the operation: a text, a number, or true or false.
	Variable string `yaml:"variable,omitempty" json:"variable,omitempty"`
}

// Parameters are what a request carries. They are asked by one goroutine at a time.
type Parameters interface {
	// Parameter returns the value of a parameter, and whether there is one. It is not asked about claims.
	Parameter(p Parameter) (value string, ok bool)
}

const (
	// maxParameters is how many parameters a policy names.
	maxParameters = 8
	// maxCustom and maxOwnCustom are how many custom limits a policy has, and an exception of a tenant.
	maxCustom, maxOwnCustom = 4096, 512
	// maxShapes is of how many combinations of names their keys are: a request looks for a key of each.
	maxShapes = 32
	// maxSegment is the highest number of a segment of a path.
	maxSegment = 32
)

// What keys are made of without being named.
const (
	parameterTenant = "tenant"
	parameterTeam   = "team"
	parameterUser   = "user"
	parameterTier   = "tier"
)

var ownParameters = []string{parameterTenant, parameterTeam, parameterUser, parameterTier}

// customs are custom limits by their keys.
type customs struct {
	rules map[string]*customRule
	// shapes are the names of their keys, those with most parts first.
	shapes [][]string
}

type customRule struct {
	bucket.Bucket

	key string
	// names are those of its parts, without that of the tenant under which it stands.
	names           []string
	across, instead bool
	// strictest is the mode of what bounds requests.
	strictest bucket.Mode
}

// customs compiles the custom limits, nil if there are none.
func (c *compiler) customs(at path, custom map[string]CustomRule, inherited setting) *customs {
	if len(custom) == 0 {
		return nil
	}
	all := &customs{rules: make(map[string]*customRule, len(custom))}
	known := make(map[string]bool)
	for _, spelled := range sorted(custom) {
		key, err := ParseKey(spelled)
		if err != nil {
			// It was reported.
			continue
		}
		rule := custom[spelled]
		c.compiled++
		setting := inherited.with(rule.Mode, rule.EnforceFrom, rule.FailMode)
		limits := c.bucketLimits(at.to(spelled), rule.Limits, setting)
		if limits == nil {
			continue
		}
		r := &customRule{
			key: key.String(), names: key.Names(), across: rule.Across, instead: rule.Instead,
			strictest: c.strictestOf(rule.Limits, (*Limit).bounds, setting),
		}
		// Whose it is, a budget of a tenant knows: a key that moves to the record of its tenant keeps what was spent.
		r.Bucket = ownedBy(cmp.Or(key.Without(parameterTenant).String(), r.key), limits)
		all.rules[r.key] = r
		if shape := strings.Join(r.names, ","); !known[shape] {
			known[shape] = true
			all.shapes = append(all.shapes, r.names)
		}
	}
	slices.SortStableFunc(all.shapes, func(a, b []string) int { return cmp.Compare(len(b), len(a)) })
	return all
}

// find returns the rule that a request matches, nil if there is none: the one of the most parts, and of these the one whose key
// stands first.
func (c *customs) find(v *keyValues) *customRule {
	if c == nil {
		return nil
	}
	var found *customRule
	var room [maxKey]byte
	for _, names := range c.shapes {
		if found != nil && len(names) < len(found.names) {
			break
		}
		key, ok := v.key(room[:0], names)
		if !ok {
			continue
		}
		if r := c.rules[string(key)]; r != nil && (found == nil || r.key < found.key) {
			found = r
		}
	}
	return found
}
