package tiers

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// Stage is how far a policy has come that takes the place of another one: for which part of the tenants it holds already. The
// zero value is a mistake.
type Stage struct {
	// ID names the budgets that the policy has where it does not hold yet and is tried as a candidate, as [bucket.Candidate] says.
	ID string `json:"id"`
	// Seed and the name of a tenant decide when its turn comes. With one seed a larger share has all tenants of a smaller one.
	// It has 1 to 64 bytes of UTF-8.
	Seed string `json:"seed"`
	// Percent is for how many percent of tenants the policy holds: 0 to 100. With 0 it is tried, and refuses nobody.
	Percent int `json:"percent"`
	// Warn has no mode of the policy stricter than warn: its clients are told, and nobody is refused by its limits. The limits of the policy
	// before do not hold beside it.
	Warn bool `json:"warn,omitempty"`
}

// Check returns everything that is wrong with the stage.
func (g Stage) Check() error {
	var errs []error
	if (&bucket.Candidate{ID: g.ID}).Check() != nil {
		errs = append(errs, errors.New("tiers: the id of a stage is not 1 to 64 characters of A-Z a-z 0-9 _ . -"))
	}
	if g.Seed == "" || len(g.Seed) > maxName || !utf8.ValidString(g.Seed) {
		errs = append(errs, fmt.Errorf("tiers: the seed of a stage has %d bytes, want 1 to %d of UTF-8", len(g.Seed), maxName))
	}
	if g.Percent < 0 || g.Percent > percentOfAll {
		errs = append(errs, fmt.Errorf("tiers: a stage of %d percent, want 0 to %d", g.Percent, percentOfAll))
	}
	return errors.Join(errs...)
}

const percentOfAll = 100

// Has returns whether the turn of a tenant has come. It allocates nothing.
func (g Stage) Has(tenant string) bool {
	// FNV-1a, and the last step of SplitMix64, so that each bit of it decides.
	const basis, prime = 0xcbf29ce484222325, 0x100000001b3
	hash := uint64(basis)
	for i := range len(g.Seed) {
		hash = (hash ^ uint64(g.Seed[i])) * prime
	}
	hash *= prime
	for i := range len(tenant) {
		hash = (hash ^ uint64(tenant[i])) * prime
	}
	hash = (hash ^ hash>>30) * 0xbf58476d1ce4e5b9
	hash = (hash ^ hash>>27) * 0x94d049bb133111eb
	hash ^= hash >> 31
	const parts = percentOfAll * 1000
	return hash%parts < uint64(g.Percent)*1000
}

// stagedDocument is a document with two policies.
type stagedDocument struct {
	Version int    `json:"version"`
	Rollout Stage  `json:"rollout"`
	Now     string `json:"now"`
	Next    string `json:"next"`
}

// StageDocument returns a document, of JSON, that holds the policy of now for some tenants and the next one for the others, each byte for byte.
// The error says what is wrong with the stage, or that a document is no UTF-8; whether both compile, [Load] says.
func StageDocument(now, next []byte, stage Stage) ([]byte, error) {
	err := stage.Check()
	if !utf8.Valid(now) || !utf8.Valid(next) {
		err = errors.Join(err, errors.New("tiers: a policy document that is no UTF-8"))
	}
	if err != nil {
		return nil, err
	}
	// All of it can be written as JSON.
	text, _ := json.Marshal(stagedDocument{version, stage, string(now), string(next)})
	return text, nil
}

// StageParts returns what [StageDocument] was given, byte for byte. It returns false for a document that has one policy, and for one that is none. Whether
// the parts compile, [Load] says.
func StageParts(document []byte) (now, next []byte, stage Stage, staged bool) {
	var d struct {
		Rollout *Stage `json:"rollout"`
		Now     string `json:"now"`
		Next    string `json:"next"`
	}
	if json.Unmarshal(document, &d) != nil || d.Rollout == nil {
		return nil, nil, Stage{}, false
	}
	return []byte(d.Now), []byte(d.Next), *d.Rollout, true
}

// staged is what a policy has that another one takes the place of.
type staged struct {
	Stage
	next *family
	// phases are those of the next policy in each phase of this one.
	phases []int
}

// isStaged says whether the root of a document has two policies.
func isStaged(root *yaml.Node) bool {
	if root.Kind != yaml.MappingNode {
		return false
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == "rollout" {
			return true
		}
	}
	return false
}

// loadStaged reads a document with two policies. The one of now is returned.
func loadStaged(data []byte, most int) (Policy, *Snapshot, error) {
	var d stagedDocument
	if err := json.Unmarshal(data, &d); err != nil {
		return Policy{}, nil, policyError([]Mistake{{Path: "rollout", Problem: "a document with a roll-out is JSON, as StageDocument writes it"}})
	}
	if err := d.Rollout.Check(); err != nil {
		return Policy{}, nil, policyError([]Mistake{{Path: "rollout", Problem: err.Error()}})
	}
	if d.Version != version {
		return Policy{}, nil, policyError([]Mistake{{Path: "version", Problem: versionProblem}})
	}
	policy, now, errNow := loadPart("now", d.Now, most)
	_, next, errNext := loadPart("next", d.Next, most)
	if mistakes := append(errNow, errNext...); len(mistakes) > 0 {
		return Policy{}, nil, policyError(mistakes)
	}
	now.stage(d.Rollout, next)
	return policy, now.at(time.Now(), bucket.Enforce), nil
}

// loadPart reads one of two policies. Lines of mistakes are those of the part.
func loadPart(name, document string, most int) (Policy, *family, []Mistake) {
	root, mistake := parseTree([]byte(document), most)
	if mistake == nil && isStaged(root) {
		mistake = &Mistake{Problem: "a part of a roll-out is no roll-out itself"}
	}
	if mistake != nil {
		mistake.Path = name
		return Policy{}, nil, []Mistake{*mistake}
	}
	d := newDecoder(root)
	policy := d.policy()
	f, findings := compile(policy)
	mistakes := d.mistakes(findings)
	for i := range mistakes {
		mistakes[i].Path = name + "." + mistakes[i].Path
	}
	if len(mistakes) > 0 {
		return Policy{}, nil, mistakes
	}
	f.warn(d.mistake)
	for i := range f.warnings {
		f.warnings[i].Path = name + "." + f.warnings[i].Path
	}
	for i := range f.operations {
		f.operations[i].place.Path = name + "." + f.operations[i].place.Path
	}
	f.lines = linesOf(root)
	return policy, f, nil
}

// stage makes the family one of two policies. It is called before anybody has a member.
func (f *family) stage(stage Stage, next *family) {
	f.staged = &staged{Stage: stage, next: next}
	f.days = slices.Concat(f.days, next.days)
	slices.SortFunc(f.days, time.Time.Compare)
	f.days = slices.Compact(f.days)
	f.members = newMembers(f.days)
	f.staged.phases = make([]int, len(f.days)+1)
	for i, day := range f.days {
		f.staged.phases[i+1] = next.phase(day)
	}
	for _, unit := range next.units {
		if !slices.Contains(f.units, unit) {
			f.units = append(f.units, unit)
		}
	}
	slices.Sort(f.units)
	for unit := range next.computed {
		f.computed[unit] = true
	}
	f.stores = slices.Concat(f.stores, next.stores)
	slices.Sort(f.stores)
	f.stores = slices.Compact(f.stores)
	f.documents = f.documents || next.documents
	const most = 100
	f.warnings = append(f.warnings, next.warnings...)
	f.warnings = f.warnings[:min(most, len(f.warnings))]
}

// of returns the snapshot of the policy that holds for a tenant.
func (g *staged) of(s *Snapshot, tenant string) *Snapshot {
	if !g.Has(tenant) {
		return s
	}
	return g.following(s)
}

// following returns the snapshot of the next policy as of the same moment.
func (g *staged) following(s *Snapshot) *Snapshot {
	strictest := s.strictest
	if g.Warn {
		strictest = max(strictest, bucket.Warn)
	}
	return g.next.member(g.phases[s.phase], strictest)
}

// Stage returns how far the next policy has come, false if the document has one policy.
func (s *Snapshot) Stage() (stage Stage, staged bool) {
	if s.family.staged == nil {
		return Stage{}, false
	}
	return s.family.staged.Stage, true
}

// Next returns the next policy of a document that has two, as [CandidateSource] would, with the id of its budgets, while it does not hold for all tenants. The
// snapshot is nil otherwise.
func (s *Snapshot) Next() (id string, next *Snapshot) {
	g := s.family.staged
	if g == nil || g.Percent == percentOfAll {
		return "", nil
	}
	// It decides nothing: its modes are its own.
	return g.ID, g.next.member(g.phases[s.phase], bucket.Enforce)
}
