package report

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/number"
	"github.com/gqlgen-ratelimit/ratelimit/internal/pseudonym"
)

// Version is the version of the form in which activity is written. A reader takes this version and older ones, and ignores fields that
// it does not know.
const Version = 1

const (
	// maxActivity is the size of an [Activity] as JSON, maxServed how much of it says what the instance serves, and maxRefusal the size of a
	// [Refusal].
	maxActivity = 24 << 10
	maxServed   = 8 << 10
	maxRefusal  = 8 << 10
	// maxText is the size of a name that was escaped.
	maxText = 4 * pseudonym.MaxName
)

// ErrUnreadable says that an entry of a stream has another form than this version and older ones.
var ErrUnreadable = errors.New("report: an entry cannot be read")

// Activity is what one instance has decided between two writes, and what it serves. Anybody who can write into the Redis can have written it.
type Activity struct {
	// Version is [Version].
	Version int `json:"version"`
	// Instance is the name of the instance. Run tells its runs apart.
	Instance string `json:"instance"`
	Run      string `json:"run"`
	// Ended says that the instance has ended: it is the last activity of the run.
	Ended bool `json:"ended,omitempty"`
	// From and To are the times between which it counts, by the clock of the instance.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Policy is the newest policy that the instance has applied, and Feed what it knows of the place where that is from. They are nil if it
	// follows none. Modes are the mode switches that it applies, nil if it follows none.
	Policy *Policy `json:"policy,omitempty"`
	Feed   *Feed   `json:"feed,omitempty"`
	Modes  *Modes  `json:"modes,omitempty"`

	// Total is exact.
	Total Counts `json:"total"`
	// Tenants are the tenants with most decisions, refusals and would-be refusals, by name. Their counts are exact. Unlisted is the number of
	// decisions of all others.
	Tenants  []Tenant `json:"tenants,omitempty"`
	Unlisted int64    `json:"unlisted,omitempty"`
	// Operations are the root fields of most operations, by name.
	Operations []Operation `json:"operations,omitempty"`
	// Sample is what some tenants have asked for, nil if nobody has asked for anything.
	Sample *Sample `json:"sample,omitempty"`

	// Dropped is how many events had no room since the instance was started, and Unrecorded how many operations have left no record
	// although their tenant was to be recorded.
	Dropped    uint64 `json:"dropped,omitempty"`
	Unrecorded uint64 `json:"unrecorded,omitempty"`

	// seen is when it was written, by the clock of the Redis, and size how many bytes it has as JSON.
	seen time.Time
	size int
}

// Counts are numbers of decisions about operations. Requests to validate only are left out.
type Counts struct {
	Decisions int64 `json:"decisions"`
	// Refused operations did not run. WouldRefuse operations ran, and would not have if everything were enforced.
	Refused     int64 `json:"refused,omitempty"`
	WouldRefuse int64 `json:"wouldRefuse,omitempty"`
	// Cost is the price of all operations in points, refused ones included. Charged is how much of it was charged.
	Cost    int64 `json:"cost,omitempty"`
	Charged int64 `json:"charged,omitempty"`
}

// Plus returns the sum. It saturates.
func (c Counts) Plus(o Counts) Counts {
	return Counts{
		Decisions: number.Sum(c.Decisions, o.Decisions), Refused: number.Sum(c.Refused, o.Refused), WouldRefuse: number.Sum(c.WouldRefuse, o.WouldRefuse),
		Cost: number.Sum(c.Cost, o.Cost), Charged: number.Sum(c.Charged, o.Charged),
	}
}

// RefusedShare is the share of the decisions that were refusals, from 0 to 1.
func (c Counts) RefusedShare() float64 {
	if c.Decisions <= 0 {
		return 0
	}
	return min(1, max(0, float64(c.Refused)/float64(c.Decisions)))
}

// valid reports whether the counts are possible.
func (c Counts) valid() bool {
	return min(c.Decisions, c.Refused, c.WouldRefuse, c.Cost, c.Charged) >= 0
}

// Tenant is what a tenant has asked for.
type Tenant struct {
	// Name is cut to 256 bytes. Characters that nobody sees are escaped as Go does.
	Name string `json:"name"`
	// Tier is the tier whose rules applied last.
	Tier string `json:"tier,omitempty"`
	Counts
}

// Operation is a root field and the operations that select it. An operation of several root fields counts for each of the first four.
type Operation struct {
	Name string `json:"name"`
	Counts
}

// encode returns the activity as it is stored: packed JSON. It leaves out the operations, and then the tenants, where they do not fit.
func (a *Activity) encode() string {
	short := *a
	short.shortenServed()
	// An activity has no value that JSON has not.
	text, _ := json.Marshal(&short)
	if len(text) > maxActivity {
		short.Operations = nil
		if text, _ = json.Marshal(&short); len(text) > maxActivity {
			short.Tenants, short.Unlisted = nil, short.Total.Decisions
			text, _ = json.Marshal(&short)
		}
	}
	var packed bytes.Buffer
	// Neither fails: the level exists, and memory takes everything.
	packer, _ := flate.NewWriter(&packed, flate.BestSpeed)
	_, _ = packer.Write(text)
	_ = packer.Close()
	return packed.String()
}

// decode reads what encode has written, or what anybody has.
func (a *Activity) decode(packed string) error {
	text, err := io.ReadAll(io.LimitReader(flate.NewReader(strings.NewReader(packed)), maxActivity+1))
	if err != nil || len(text) > maxActivity {
		return ErrUnreadable
	}
	var read Activity
	if json.Unmarshal(text, &read) != nil {
		return ErrUnreadable
	}
	if read.Version < 1 || read.Version > Version {
		return fmt.Errorf("%w: its version is %d, and this build reads 1 to %d", ErrUnreadable, read.Version, Version)
	}
	if !read.plausible() {
		return fmt.Errorf("%w: it lists more than fits, or less than nothing", ErrUnreadable)
	}
	*a = read
	a.size = len(text)
	return nil
}

// plausible reports whether a reporter can have written it. Few bytes of JSON, such as [{},{}], become many in memory.
func (a *Activity) plausible() bool {
	if !a.Total.valid() || a.Unlisted < 0 || CheckInstanceName(a.Instance) != nil || len(a.Run) > maxText {
		return false
	}
	if len(a.Tenants) > 3*listed || len(a.Operations) > listed {
		return false
	}
	for i := range a.Tenants {
		if t := &a.Tenants[i]; !t.valid() || max(len(t.Name), len(t.Tier)) > maxText {
			return false
		}
	}
	for i := range a.Operations {
		if o := &a.Operations[i]; !o.valid() || len(o.Name) > maxText {
			return false
		}
	}
	if a.Modes != nil && len(a.Modes.InForce) > maxModes {
		return false
	}
	return a.Sample == nil || a.Sample.plausible()
}
