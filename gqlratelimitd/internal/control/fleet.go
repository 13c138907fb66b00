package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/observe/report"
)

// Instances adds up what instances report into their Redis: a *report.Reader. It is safe for concurrent use.
type Instances interface {
	Summary(ctx context.Context, within time.Duration) (*report.Summary, error)
}

// States of an instance, which say whether it is in touch with the feed of its policy. One that follows none never was.
const (
	Current = event.PolicyCurrent
	Stale   = "stale"
	Never   = "never"
)

// Bounds of what is told of instances, each of which anybody who can write into their Redis can have made up.
const (
	// fleetFor is for how long what instances said is told again, so that who asks often asks the Redis no more often.
	fleetFor = time.Second
	// fleetPatience is for how long their Redis may take.
	fleetPatience = 2 * time.Second
	// maxFleetRevisions is of how many revisions it is told how many instances serve them.
	maxFleetRevisions = 20
	// maxSaid is how many bytes are told of an error.
	maxSaid = 1 << 10
)

// ErrAway says that what was asked for is where nobody answers at the moment.
var ErrAway = errors.New("control: the Redis of the instances does not answer")

// FleetInput says which instances are listed.
type FleetInput struct {
	// Revision, State and Refusing leave only those that serve a revision, are in a state, and refuse one. Nil and empty leave all.
	Revision *uint64
	State    string
	Refusing *bool
	// After is [Fleet.Next] of the page before, and N how many there are on a page.
	After string
	N     int
}

// Fleet is what instances say of themselves.
type Fleet struct {
	// Newest is the newest revision of the policy, 0 before the first, and At when the instances were asked.
	Newest uint64    `json:"newest"`
	At     time.Time `json:"at"`
	// Total is how many there are, Current, Stale and Never how many of them are in that state, Refusing how many refuse the newest
	// revision that they know, and Behind how many serve another one than Newest.
	Total    int `json:"total"`
	Current  int `json:"current"`
	Stale    int `json:"stale"`
	Never    int `json:"never"`
	Refusing int `json:"refusing"`
	Behind   int `json:"behind"`
	// Unread is how many entries cannot be read. They are counted nowhere else.
	Unread int `json:"unread"`
	// Revisions are those that instances serve, the ones of most instances first, and Others how many instances serve one that is not
	// listed.
	Revisions []FleetRevision `json:"revisions"`
	Others    int             `json:"others"`
	// Page are those that were asked for, by name. Next leads to the next page; it is empty at the end.
	Page []Instance `json:"instances"`
	Next string     `json:"next,omitempty"`
}

// FleetRevision is how many instances serve a revision.
type FleetRevision struct {
	// Revision is 0 for a policy that is of no feed.
	Revision  uint64 `json:"revision"`
	Hash      string `json:"hash"`
	Instances int    `json:"instances"`
}

// Instance is what an instance says of itself. Texts would be seen as they are: others are escaped as Go does.
type Instance struct {
	Name string `json:"name"`
	// Seen is when it has said so, by the clock of the Redis. Other times are by its own clock.
	Seen  time.Time `json:"seen"`
	State string    `json:"state"`
	// Revision and Hash are those of the policy that it serves, 0 and empty for one of no feed. It does so since Since.
	Revision uint64    `json:"revision"`
	Hash     string    `json:"hash"`
	Since    time.Time `json:"since,omitzero"`
	// Asked is when the feed of an instance that is stale last said that it is in step with it.
	Asked   time.Time `json:"asked,omitzero"`
	Refused *Refused  `json:"refused,omitempty"`
	// Failure is why the feed could not be read, and Unsaved why the policy could not be written to the disk.
	Failure string `json:"failure,omitempty"`
	Unsaved string `json:"unsaved,omitempty"`

	// cursor has the order of instances, and is another one for each.
	cursor string
}

// Refused is the revision that an instance refuses, and why.
type Refused struct {
	Revision uint64    `json:"revision"`
	Hash     string    `json:"hash"`
	Cause    string    `json:"cause"`
	Error    string    `json:"error"`
	Since    time.Time `json:"since,omitzero"`
}

// Fleet returns which instance serves which revision, and which one it refuses and why: [access.ReadFleet]. There is [ErrNotFound] for a
// daemon without a Redis, and [ErrAway] if that does not answer.
func (c *Control) Fleet(ctx context.Context, actor access.Actor, in FleetInput) (*Fleet, error) {
	if err := access.Authorize(actor, access.ReadFleet, ""); err != nil {
		return nil, err
	}
	if c.cfg.Instances == nil {
		return nil, ErrNotFound
	}
	said, err := c.fleet.ask(ctx, c)
	if err != nil {
		return nil, err
	}
	f := &Fleet{At: said.at, Unread: said.unread, Page: []Instance{}}
	err = c.cfg.Store.Read(ctx, func(v *store.View) error {
		head, err := v.Head()
		f.Newest = head.Policy
		return err
	})
	if err != nil {
		return nil, err
	}
	revisions := map[FleetRevision]int{}
	for i := range said.instances {
		is := &said.instances[i]
		f.count(is)
		revisions[FleetRevision{Revision: is.Revision, Hash: is.Hash}]++
		switch {
		case is.cursor <= in.After || !in.has(is) || f.Next != "":
		case len(f.Page) < in.N:
			f.Page = append(f.Page, *is)
		case in.N > 0:
			f.Next = f.Page[in.N-1].cursor
		}
	}
	f.list(revisions)
	return f, nil
}

// count counts an instance.
func (f *Fleet) count(is *Instance) {
	f.Total++
	switch is.State {
	case Current:
		f.Current++
	case Never:
		f.Never++
	default:
		f.Stale++
	}
	if is.Refused != nil {
		f.Refusing++
	}
	if is.Revision != f.Newest {
		f.Behind++
	}
}

// list lists the revisions of most instances.
func (f *Fleet) list(revisions map[FleetRevision]int) {
	f.Revisions = []FleetRevision{}
	for r, n := range revisions {
		r.Instances = n
		f.Revisions = append(f.Revisions, r)
	}
	slices.SortFunc(f.Revisions, func(a, b FleetRevision) int {
		return cmp.Or(cmp.Compare(b.Instances, a.Instances), cmp.Compare(b.Revision, a.Revision), cmp.Compare(a.Hash, b.Hash))
	})
	listed := min(len(f.Revisions), maxFleetRevisions)
	for _, r := range f.Revisions[listed:] {
		f.Others += r.Instances
	}
	f.Revisions = f.Revisions[:listed]
}

// has reports whether an instance is one of those that are asked for.
func (in *FleetInput) has(is *Instance) bool {
	return (in.Revision == nil || *in.Revision == is.Revision) && (in.State == "" || in.State == is.State) &&
		(in.Refusing == nil || *in.Refusing == (is.Refused != nil))
}

// fleetCache is what instances said when they were asked last.
type fleetCache struct {
	// asking has room for the one who asks, to whom said belongs.
	asking chan struct{}
	said   *said
}

// said is what instances said at a time, by name, or why that is not known.
type said struct {
	at        time.Time
	instances []Instance
	unread    int
	err       error
}

// ask returns what instances said within the last moment. Of those who ask at once, one asks the Redis.
func (f *fleetCache) ask(ctx context.Context, c *Control) (*said, error) {
	select {
	case f.asking <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-f.asking }()
	now := c.now()
	if f.said == nil || now.Before(f.said.at) || now.Sub(f.said.at) >= fleetFor {
		f.said = c.askInstances(ctx, now)
	}
	return f.said, f.said.err
}

// askInstances asks. The answer is for others too, so that it does not end with one request.
func (c *Control) askInstances(ctx context.Context, now time.Time) *said {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fleetPatience)
	defer cancel()
	all, err := c.cfg.Instances.Summary(ctx, 0)
	if err != nil {
		return &said{at: now, err: fmt.Errorf("%w: %w", ErrAway, err)}
	}
	s := &said{at: now, unread: all.Unreadable}
	for i := range all.Instances {
		s.instances = append(s.instances, instanceOf(&all.Instances[i]))
	}
	slices.SortFunc(s.instances, func(a, b Instance) int { return cmp.Compare(a.cursor, b.cursor) })
	return s
}

// instanceOf returns an instance with its texts as they are told.
func instanceOf(from *report.Instance) Instance {
	const longest = 128
	is := Instance{Name: visible(from.Name, longest), Seen: from.At, State: Never}
	is.cursor = is.Name + " " + visible(from.Run, longest)
	if p := from.Policy; p != nil {
		is.Revision, is.Hash, is.Since = p.Revision, visible(p.Hash, longest), p.Applied
	}
	feed := from.Feed
	if feed == nil {
		return is
	}
	is.State, is.Asked = Stale, feed.Asked
	if feed.State == Current || feed.State == Never {
		is.State = feed.State
	}
	is.Failure, is.Unsaved = visible(feed.Failure, maxSaid), visible(feed.Unsaved, maxSaid)
	if r := feed.Refused; r != nil {
		is.Refused = &Refused{r.Revision, visible(r.Hash, longest), visible(r.Cause, longest), visible(r.Error, maxSaid), r.At}
	}
	return is
}

// visible returns a text from outside, cut to so many bytes of it, and, if somebody would not see each of its characters, escaped as Go
// escapes strings, so that two texts stay two.
func visible(text string, most int) string {
	text = text[:min(len(text), most)]
	if !strings.ContainsFunc(text, func(r rune) bool { return r == '\\' || r == '\uFFFD' || !strconv.IsPrint(r) }) {
		return text
	}
	quoted := strconv.Quote(text)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}
