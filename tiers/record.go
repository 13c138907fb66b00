package tiers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// MaxRecord is how many bytes the document of a [Record] has at most.
const MaxRecord = 64 << 10

// RecordDocument is what is known of one tenant beside the policy, as JSON. The zero value is a mistake.
type RecordDocument struct {
	// Exception is what is different for the tenant, as a policy says it of the tenants that it lists. Two things differ: a
	// record names no day on which enforcement begins, and no store that the policy does not name.
	Exception
	// Allocations are what the tenant gives its own teams and users. Nil gives nothing.
	Allocations *Allocations `json:"allocations,omitempty"`
}

// Allocations are what an organisation gives its own teams and users: to each a budget by name, within that of the
// tenant, which is charged beside. They are added to the limits that the tier and the exception have for it; where the
// exception has a limit of the same name for the same team or user, that one holds. They have no effect on a tenant that is blocked
// or unlimited. The zero value gives nothing.
type Allocations struct {
	Teams map[string]map[string]*Limit `json:"teams,omitempty"`
	Users map[string]map[string]*Limit `json:"users,omitempty"`
}

// Record is what is known of one tenant beside the policy: made by [ParseRecord], given to [Snapshot.Rules] as
// [Selection.Record]. It holds with any policy that it fits, is compiled when it is first asked for with one, and keeps what
// it has compiled for the three combinations of a policy and a carried tier of late. Several tenants may share one, and any number
// of goroutines.
type Record struct {
	// text is the document in JSON, without blanks.
	text string
	// tier is the one that it assigns, empty for the default. It alone is different where nothing else is.
	tier          string
	blocked, only bool

	// next is the place in compiled that is taken next.
	next     atomic.Uint32
	compiled [3]atomic.Pointer[recordRules]
}

// recordRules are what a record makes of a tier of one policy. They do not keep the policy in memory.
type recordRules struct {
	serial uint64
	tier   string
	set    *ruleSet
}

// serials tell snapshots apart.
var serials atomic.Uint64

// Preparer is a [Source] that knows tenants which its policy does not list. Package directory has one. [*ModeSwitch] and [*Rollout]
// ask the source that they stand around.
type Preparer interface {
	Source
	// Prepare returns what is known of the tenant of a subject, to be given to [Snapshot.Rules] with each policy that
	// the operation is judged by. It is nil if nothing is. It is called for each operation, of some twice. It may wait for a bounded time where
	// the tenant has not been asked for of late.
	Prepare(ctx context.Context, subject Subject) *Record
}

// prepare asks a source that may be a [Preparer].
func prepare(ctx context.Context, source Source, subject Subject) *Record {
	if preparer, ok := source.(Preparer); ok {
		return preparer.Prepare(ctx, subject)
	}
	return nil
}

var errRecordEnd = errors.New("something stands behind the document")

// ParseRecord reads a [RecordDocument]. The error says what cannot be read, unknown keys included; whether it fits a policy,
// [Record.Check] says.
func ParseRecord(document []byte) (*Record, error) {
	if len(document) > MaxRecord {
		return nil, fmt.Errorf("tiers: the record has %d bytes; at most %d fit", len(document), MaxRecord)
	}
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.DisallowUnknownFields()
	var d RecordDocument
	err := decoder.Decode(&d)
	if err == nil {
		if _, more := decoder.Token(); !errors.Is(more, io.EOF) {
			err = errRecordEnd
		}
	}
	if err != nil {
		return nil, fmt.Errorf("tiers: the record: %w", err)
	}
	// What was read can be written.
	text, _ := json.Marshal(d)
	r := &Record{text: string(text), tier: d.Tier, blocked: d.Blocked}
	r.only = d.changesNothing() && d.EnforceFrom == "" && d.Allocations == nil && d.Tier != ""
	return r, nil
}

// AssignedTo returns the record of a tenant that is assigned to a tier, and of which nothing else is different.
func AssignedTo(tier string) *Record {
	text, _ := json.Marshal(RecordDocument{Exception: Exception{Tier: tier}})
	return &Record{text: string(text), tier: tier, only: true}
}

// Document returns the document of the record, without blanks. Records of the same document are the same.
func (r *Record) Document() string { return r.text }

// Bytes is about how much memory a record takes, with what it compiles to for one policy.
func (r *Record) Bytes() int {
	const empty, rules = 80, 700
	if r.only {
		return empty + len(r.text)
	}
	return empty + rules + 7*len(r.text)
}

// Check returns what is wrong with the record in a policy, a [*PolicyError]: a tier that the policy does not have, for
// example.
func (r *Record) Check(s *Snapshot) error {
	s = s.plain()
	if r.only && s.tiers[r.tier] != nil {
		return nil
	}
	s.making.Lock()
	defer s.making.Unlock()
	_, err := s.compileRecord(r, r.assigned(s))
	return err
}

// assigned is the tier that a record assigns its tenants to.
func (r *Record) assigned(s *Snapshot) string {
	if r.tier != "" {
		return r.tier
	}
	return s.fallback.rules.Tier
}

// exception returns what the record makes different, allocations included.
func (r *Record) exception() Exception {
	var d RecordDocument
	// It was written by this package.
	_ = json.Unmarshal([]byte(r.text), &d)
	if d.Allocations == nil || d.Blocked || d.Unlimited {
		return d.Exception
	}
	d.Teams = d.Teams.allocate(d.Allocations.Teams)
	if len(d.Allocations.Users) > 0 {
		var x UserException
		if d.Users != nil {
			x = *d.Users
		}
		x.OwnerException = *x.allocate(d.Allocations.Users)
		d.Users = &x
	}
	return d.Exception
}

// allocate returns the exception with further limits for those that are named. It does not change the exception.
func (x *OwnerException) allocate(limits map[string]map[string]*Limit) *OwnerException {
	if len(limits) == 0 {
		return x
	}
	var with OwnerException
	if x != nil {
		with = *x
	}
	byName := make(map[string]OwnerRule, len(with.ByName)+len(limits))
	maps.Copy(byName, with.ByName)
	for name, allocated := range limits {
		rule := byName[name]
		rule.Limits = mergeLimits(allocated, rule.Limits)
		byName[name] = rule
	}
	with.ByName = byName
	return &with
}

// recorded returns what a record makes of the tier that is carried, or of the one that it assigns.
func (s *Snapshot) recorded(r *Record, carried string, carriedSet *ruleSet) *ruleSet {
	if r.only {
		if carriedSet != nil {
			return carriedSet
		}
		if set := s.tiers[r.tier]; set != nil {
			return set
		}
	}
	if carriedSet == nil {
		carried = ""
	}
	if set := r.of(s, carried); set != nil {
		return set
	}
	return s.compileRecorded(r, carried)
}

// of returns what was compiled for a carried tier of a policy, nil if nothing was.
func (r *Record) of(s *Snapshot, carried string) *ruleSet {
	for i := range r.compiled {
		if rules := r.compiled[i].Load(); rules != nil && rules.serial == s.serial && rules.tier == carried {
			return rules.set
		}
	}
	return nil
}

func (s *Snapshot) compileRecorded(r *Record, carried string) *ruleSet {
	s.making.Lock()
	defer s.making.Unlock()
	if set := r.of(s, carried); set != nil {
		return set
	}
	tier := carried
	if tier == "" {
		tier = r.assigned(s)
	}
	set, err := s.compileRecord(r, tier)
	if err != nil {
		set = s.misfit(r, tier, err)
	}
	rules := &recordRules{serial: s.serial, tier: carried, set: set}
	// Others may compile it for other policies.
	r.compiled[r.next.Add(1)%uint32(len(r.compiled))].Store(rules)
	return rules.set
}

// misfit is what a tenant has whose record does not fit the policy: its tier, or else the default one, unless it is blocked.
func (s *Snapshot) misfit(r *Record, tier string, err error) *ruleSet {
	set := s.tiers[tier]
	if set == nil {
		set = s.fallback
	}
	misfit := &ruleSet{
		rules: set.rules, teams: set.teams, users: set.users, operations: set.operations, foreseen: set.foreseen, days: set.days,
	}
	if r.blocked {
		misfit = &ruleSet{rules: Rules{
			Tier: set.rules.Tier, Store: set.rules.Store, Mode: set.rules.Mode, EnforceFrom: set.rules.EnforceFrom,
			FailMode: set.rules.FailMode, Blocked: true, Hide: set.rules.Hide,
		}}
	}
	misfit.rules.Misfit = err
	return misfit
}

// maxRecordCompiled is how many limits, operation rules, and named teams and users the record of a tenant may come to.
const maxRecordCompiled = 1 << 13

// compileRecord is called by one at a time.
func (s *Snapshot) compileRecord(r *Record, tier string) (*ruleSet, error) {
	x, at := r.exception(), path("").to("record")
	c := s.compiler()
	c.most = maxRecordCompiled
	// What is compiled for one record is kept by nobody else.
	scratch := &Snapshot{family: s.family, phase: s.phase, early: s.early, strictest: s.strictest, tiers: s.tiers, shared: s.shared.above()}
	c.into = scratch
	c.record(at, &x)
	var set *ruleSet
	if len(c.findings) == 0 {
		set = c.ruleSet(at, tier, merge(s.family.policy.Tiers[tier], x))
	}
	if c.compiled > c.most {
		c.fail(at, "it comes to more than %d limits, operation rules, and named teams and users", c.most)
	}
	if len(c.findings) > 0 {
		mistakes := make([]Mistake, len(c.findings))
		for i, f := range c.findings {
			mistakes[i] = Mistake{Path: f.path.String(), Problem: f.problem}
		}
		return nil, policyError(mistakes)
	}
	scratch.enforced.Range(func(any, any) bool {
		// It keeps nothing else in memory, the policy least of all.
		scratch.family, scratch.shared, scratch.tiers = nil, nil, nil
		set.days = scratch
		return false
	})
	return set, nil
}

// record checks what is different for a tenant by its record.
func (c *compiler) record(at path, x *Exception) {
	f := c.into.family
	// Whose record it is, its directory knows.
	c.exception(at, "record", *x)
	if len(c.days) > 0 {
		c.fail(at, "enforceFrom stands in the policy alone; set the mode")
	}
	if x.Store != "" && !slices.Contains(f.stores, x.Store) {
		c.fail(at.to("store"), "the policy names no store %s", echo(x.Store))
	}
	_, personal := x.Users.split()
	if !f.documents && (anyDocument(x.Operations) || anyDocument(personal)) {
		c.fail(at.to("operations"), "a rule for a document; the policy has none, so that documents are not looked at")
	}
}

// limitsOf returns what was compiled for equal limits, here or below.
func (s *shared) limitsOf(key [2]uint64) (*bucket.Limits, bool) {
	equal, found := s.limits[key]
	if !found && s.below != nil {
		return s.below.limitsOf(key)
	}
	return equal, found
}

// operationsOf returns the operation rules that were compiled for a key, here or below.
func (s *shared) operationsOf(key operationsKey) *operationRules {
	if equal := s.operations[key]; equal != nil || s.below == nil {
		return equal
	}
	return s.below.operationsOf(key)
}

// above returns what is shared by what is not kept: it finds what s has, and adds nothing to it.
func (s *shared) above() *shared {
	return &shared{
		seeds: s.seeds, limits: make(map[[2]uint64]*bucket.Limits), operations: make(map[operationsKey]*operationRules), below: s,
	}
}
