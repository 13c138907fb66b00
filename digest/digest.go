package digest

import (
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/number"
)

// Version is that of the form in which digests, refusals and records are written, as JSON. A reader takes those of its version
// and of older ones, and ignores fields that it does not know: new fields do not make a new version.
const Version = 1

// Bounds of what one instance writes, in bytes.
const (
	// MaxDigest is that of a [Digest], MaxRefusal that of a [Refusal] and MaxChunk that of a [Chunk], as JSON.
	MaxDigest  = 64 << 10
	MaxRefusal = 8 << 10
	MaxChunk   = 16 << 10
)

// Window is the time over which [Digest.Recent] counts, at least five sixths of it.
const Window = time.Minute

// Digest is what an instance has decided of late. Anybody who can write where it was read can have written it.
type Digest struct {
	// Version is [Version].
	Version int `json:"version"`
	// Instance is what the instance is called, and ID tells its runs apart: a process that starts anew counts anew.
	Instance string `json:"instance"`
	ID       string `json:"id"`
	// At is when the digest was made and Started since when Total counts, by the clock of the instance.
	At      time.Time `json:"at"`
	Started time.Time `json:"started"`
	// Policy is the newest policy that the instance was told to have applied. Nil means that it was told of none.
	Policy *Policy `json:"policy,omitempty"`
	// Modes are the mode switches that the instance applies. Nil means that it was told of none, because it follows none.
	Modes *Modes `json:"modes,omitempty"`
	// Candidate is the id of the candidate policy that counts are about, empty if there is none.
	Candidate string `json:"candidate,omitempty"`

	// Total is exact since Started, and Recent since RecentFrom, a [Window] ago at most.
	Total      Counts    `json:"total"`
	Recent     Counts    `json:"recent"`
	RecentFrom time.Time `json:"recentFrom"`
	// Tenants are those of the window with most decisions, most refusals, most would-be refusals and most that the candidate alone would
	// refuse, by name. Their counts are exact from the time on at which they had room. Unlisted are the decisions of tenants that had none.
	Tenants  []Tenant `json:"tenants,omitempty"`
	Unlisted int64    `json:"unlisted,omitempty"`
	// Groups say how many different tenants and users there were in the window, and how many of them were refused.
	Groups Groups `json:"groups"`

	// Overrides are override records under which something was decided within the window: all of them, or where these are more than fit, others
	// in each digest.
	Overrides []Override `json:"overrides,omitempty"`

	// Dropped is how many refusals there was no room for in a moment, and Unrecorded how many operations have left no record
	// although their tenant was to be recorded, since Started.
	Dropped    uint64 `json:"dropped,omitempty"`
	Unrecorded uint64 `json:"unrecorded,omitempty"`
}

// Policy is a revision and who has published it.
type Policy struct {
	Revision uint64 `json:"revision"`
	Hash     string `json:"hash,omitempty"`
	// Author is who has published it, and Reason why, as the revision says.
	Author    string    `json:"author,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	Published time.Time `json:"published,omitzero"`
	// Applied is since when the instance serves it, and Origin where it came from: feed, last_good or first.
	Applied time.Time `json:"applied,omitzero"`
	Origin  string    `json:"origin,omitempty"`
}

// Modes are mode switches.
type Modes struct {
	// State says whether the instance is in touch with where they come from: current, stale or never, as of the last change.
	State string `json:"state"`
	// InForce are those that are applied.
	InForce []event.ModeSwitch `json:"inForce,omitempty"`
	// Refused is how many could not be read, and Error why.
	Refused int    `json:"refused,omitempty"`
	Error   string `json:"error,omitempty"`
	// Told is since when that is so.
	Told time.Time `json:"told"`
}

// Counts are numbers of decisions about operations, without requests to validate only.
type Counts struct {
	Decisions int64 `json:"decisions"`
	// Refused did not run. WouldRefuse ran, and would not have if everything were enforced.
	Refused     int64 `json:"refused,omitempty"`
	WouldRefuse int64 `json:"wouldRefuse,omitempty"`
	// Tried are those beside which the candidate was judged, and NewlyRefused what it would refuse of these and the live policy
	// did not.
	Tried        int64 `json:"tried,omitempty"`
	NewlyRefused int64 `json:"newlyRefused,omitempty"`
	// Cost is what they cost in points, refused ones included, and Charged what was charged.
	Cost    int64 `json:"cost,omitempty"`
	Charged int64 `json:"charged,omitempty"`
}

// Plus returns the sum. It saturates.
func (c Counts) Plus(o Counts) Counts {
	return Counts{
		Decisions: number.Sum(c.Decisions, o.Decisions), Refused: number.Sum(c.Refused, o.Refused), WouldRefuse: number.Sum(c.WouldRefuse, o.WouldRefuse),
		Tried: number.Sum(c.Tried, o.Tried), NewlyRefused: number.Sum(c.NewlyRefused, o.NewlyRefused),
		Cost: number.Sum(c.Cost, o.Cost), Charged: number.Sum(c.Charged, o.Charged),
	}
}

// minus takes counts away that were added before.
func (c Counts) minus(o Counts) Counts {
	return Counts{
		Decisions: max(0, c.Decisions-o.Decisions), Refused: max(0, c.Refused-o.Refused), WouldRefuse: max(0, c.WouldRefuse-o.WouldRefuse),
		Tried: max(0, c.Tried-o.Tried), NewlyRefused: max(0, c.NewlyRefused-o.NewlyRefused),
		Cost: max(0, c.Cost-o.Cost), Charged: max(0, c.Charged-o.Charged),
	}
}

// withoutCandidate returns the counts without those of a candidate.
func (c Counts) withoutCandidate() Counts {
	c.Tried, c.NewlyRefused = 0, 0
	return c
}

// share is the part that a number is of a whole, from 0 to 1.
func share(part, whole int64) float64 {
	if whole <= 0 {
		return 0
	}
	return min(1, max(0, float64(part)/float64(whole)))
}

// RefusedShare is the part of the decisions that was refused, from 0 to 1.
func (c Counts) RefusedShare() float64 { return share(c.Refused, c.Decisions) }

// NewlyRefusedShare is the part that the candidate would refuse newly of what it was tried on.
func (c Counts) NewlyRefusedShare() float64 { return share(c.NewlyRefused, c.Tried) }

// Tenant is what a tenant has asked for.
type Tenant struct {
	// Name is that of the tenant, cut to 256 bytes, with characters that nobody sees escaped as Go does.
	Name string `json:"name"`
	// Tier is the tier whose rules applied last.
	Tier string `json:"tier,omitempty"`
	Counts
}

// Override is an override record under which something was decided. Whose it is within the tenant is left out, because users are
// not named: SetAt and Actor tell it from others.
type Override struct {
	// Tenant is that of the operations, Level and Limit what the record is about, and Actor and SetAt what it says of who has made it
	// and when, by the clock of the store.
	Tenant string    `json:"tenant"`
	Level  string    `json:"level"`
	Limit  string    `json:"limit,omitempty"`
	Actor  string    `json:"actor,omitempty"`
	SetAt  time.Time `json:"setAt"`
	// Held is when something was last decided under it, and Changed when that was last another decision than without it, by what was spent
	// at that moment: zero if that is not known. Of a record that switches limits off nobody knows it.
	Held    time.Time `json:"held"`
	Changed time.Time `json:"changed,omitzero"`
}

// Groups are sketches of different tenants and users.
type Groups struct {
	Tenants Group `json:"tenants"`
	Users   Group `json:"users"`
}

// Group are sketches of those who were seen, of those who were refused, who would have been, and whom the candidate alone would
// refuse.
type Group struct {
	Seen         Sketch `json:"seen,omitzero"`
	Refused      Sketch `json:"refused,omitzero"`
	WouldRefuse  Sketch `json:"wouldRefuse,omitzero"`
	NewlyRefused Sketch `json:"newlyRefused,omitzero"`
}

// Merge adds those of another instance, or of another time.
func (g *Group) Merge(o *Group) {
	g.Seen.Merge(&o.Seen)
	g.Refused.Merge(&o.Refused)
	g.WouldRefuse.Merge(&o.WouldRefuse)
	g.NewlyRefused.Merge(&o.NewlyRefused)
}

// RefusedShare is about which part of those who were seen was refused something, from 0 to 1.
func (g *Group) RefusedShare() float64 {
	seen := g.Seen.Count()
	if seen == 0 {
		return 0
	}
	return min(1, g.Refused.Count()/seen)
}

// NewlyRefusedShare is about which part of those who were seen the candidate would newly refuse.
func (g *Group) NewlyRefusedShare() float64 {
	seen := g.Seen.Count()
	if seen == 0 {
		return 0
	}
	return min(1, g.NewlyRefused.Count()/seen)
}

// Refusal is a refusal with what explains it.
type Refusal struct {
	// Version is [Version].
	Version int `json:"version"`
	// Instance is what the instance is called that refused.
	Instance string `json:"instance,omitempty"`
	// Decided is the event. Users are named as [Config.Users] says. Where it has Hides.Owners the names of teams are hashes too.
	Decided event.Decided `json:"decided"`
	// Policy is the revision that decided, with its author, if the instance was told of it. It has a number at least where there
	// was a policy.
	Policy Policy `json:"policy"`
	// Shortened says that limits which refused nothing are left out, because the refusal was too long.
	Shortened bool `json:"shortened,omitempty"`
}

// Record is one or more operations of a tenant that were alike, in one second.
type Record struct {
	// Tenant, Team, User and Tier are those of the subject, named as in a [Refusal]. Tier is the one that it carried.
	Tenant string `json:"tenant"`
	Team   string `json:"team,omitempty"`
	User   string `json:"user,omitempty"`
	Tier   string `json:"tier,omitempty"`
	// Fields are the coordinates of the root fields, the first 16 of them, and Document the id of a trusted document.
	Fields   []string `json:"fields,omitempty"`
	Document string   `json:"document,omitempty"`
	// Cost is the price in points of each, and Units what else each asked for.
	Cost  int64          `json:"cost"`
	Units []event.Amount `json:"units,omitempty"`
	// Parts are the calls of each of Fields, in their order. They are nil where each was called once and there is one of them.
	Parts []Part `json:"parts,omitempty"`
	// Carried are the values of parameters of custom limits, as [HashValue] makes them, by their names. Those that the request did not have
	// are left out.
	Carried map[string]string `json:"carried,omitempty"`
	// N is how many there were, and Refused how many of them did not run.
	N       int64 `json:"n"`
	Refused int64 `json:"refused,omitempty"`
	// Mixed says that the operations were not alike, because the tenant had too many kinds of them in the second: Cost is the
	// rounded mean, and there are neither users nor fields nor units.
	Mixed bool `json:"mixed,omitempty"`
	// Cut says that there were more root fields or calls than fit.
	Cut bool `json:"cut,omitempty"`
}

// Part are the calls of one root field in an operation that makes several.
type Part struct {
	// N is how many there are.
	N int64 `json:"n"`
}

// Chunk are the records of a moment: everything that tenants asked for whose hash is below a bound, and nothing of others. So what is
// there of a tenant is all of it, and a preview judges it as the server would.
type Chunk struct {
	// Version is [Version].
	Version int `json:"version"`
	// From is when the first of the operations was decided, and To when the last was, by the clock of the instance.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Below is the bound: [Chunk.Has].
	Below   uint64   `json:"below,string"`
	Records []Record `json:"records,omitempty"`
	// Detailed says that records have parts where there are several calls, and Parameters of which parameters they have the values.
	Detailed   bool     `json:"detailed,omitempty"`
	Parameters []string `json:"parameters,omitempty"`
	// Key is what [HashKey] makes of the key of the instance: whoever has another one cannot read the hashes.
	Key string `json:"key,omitempty"`
}

// Share is which share of all tenants the chunk has the operations of, from 0 to 1.
func (c *Chunk) Share() float64 { return float64(c.Below) / (1 << 63) / 2 }

// Has says whether the chunk has the operations of a tenant of this hash, which is [HashTenant].
func (c *Chunk) Has(hash uint64) bool { return hash < c.Below || c.Below == everybody }

// everybody is the bound below which all tenants are.
const everybody = 1<<64 - 1
