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

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
)

// Instances lists what instances say of themselves where they have their policy from: a *redisfeed.Feed. It is safe for concurrent use.
type Instances interface {
	// Instances returns those that have said something of late. Beside a *policy.UnreadError what is returned is good.
	Instances(ctx context.Context) ([]policy.Instance, error)
}

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
	// Revision, State and Refusing leave only those that serve a revision, are in a state, and refuse one. Nil leaves all.
	Revision *uint64
	State    *policy.State
	Refusing *bool
	// After is the name of the last instance of the page before, and N how many there are on a page.
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
	// Unread is how many have said something that cannot be read. They are counted nowhere else.
	Unread int `json:"unread"`
	// Revisions are those that instances serve, the ones of most instances first, and Others how many instances serve one that is not
	// listed.
	Revisions []FleetRevision `json:"revisions"`
	Others    int             `json:"others"`
	// Page are those that were asked for, by name, with one more if there is another page. What would not be seen in a text as it is,
	// is escaped as Go does.
	Page []policy.Instance `json:"-"`
}

// FleetRevision is how many instances serve a revision.
type FleetRevision struct {
	// Revision is 0 for a policy that is of no feed.
	Revision  uint64      `json:"revision"`
	Hash      policy.Hash `json:"hash"`
	Instances int         `json:"instances"`
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
	f := &Fleet{At: said.at, Unread: said.unread}
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
		f.count(&is.Status)
		revisions[FleetRevision{Revision: is.Status.Number, Hash: is.Status.Hash}]++
		if len(f.Page) <= in.N && is.Name > in.After && in.has(&is.Status) {
			f.Page = append(f.Page, *is)
		}
	}
	f.list(revisions)
	return f, nil
}

// count counts an instance.
func (f *Fleet) count(s *policy.Status) {
	f.Total++
	switch s.State {
	case policy.Current:
		f.Current++
	case policy.Stale:
		f.Stale++
	case policy.Never:
		f.Never++
	}
	if s.Refused != nil {
		f.Refusing++
	}
	if s.Number != f.Newest {
		f.Behind++
	}
}

// list lists the revisions of most instances.
func (f *Fleet) list(revisions map[FleetRevision]int) {
	for r, n := range revisions {
		r.Instances = n
		f.Revisions = append(f.Revisions, r)
	}
	slices.SortFunc(f.Revisions, func(a, b FleetRevision) int {
		return cmp.Or(cmp.Compare(b.Instances, a.Instances), cmp.Compare(b.Revision, a.Revision), slices.Compare(a.Hash[:], b.Hash[:]))
	})
	listed := min(len(f.Revisions), maxFleetRevisions)
	for _, r := range f.Revisions[listed:] {
		f.Others += r.Instances
	}
	f.Revisions = f.Revisions[:listed]
}

// has reports whether an instance is one of those that are asked for.
func (in *FleetInput) has(s *policy.Status) bool {
	return (in.Revision == nil || *in.Revision == s.Number) && (in.State == nil || *in.State == s.State) &&
		(in.Refusing == nil || *in.Refusing == (s.Refused != nil))
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
	instances []policy.Instance
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
	instances, err := c.cfg.Instances.Instances(ctx)
	s := &said{at: now, instances: instances}
	if unread := (*policy.UnreadError)(nil); errors.As(err, &unread) {
		s.unread = unread.Instances
	} else if err != nil {
		return &said{at: now, err: fmt.Errorf("%w: %w", ErrAway, err)}
	}
	for i := range s.instances {
		is := &s.instances[i]
		is.Name = visible(is.Name, policy.MaxInstanceName)
		is.Status.Failure, is.Status.Unsaved = visible(is.Status.Failure, maxSaid), visible(is.Status.Unsaved, maxSaid)
		if r := is.Status.Refused; r != nil {
			refused := *r
			const longest = 32
			refused.Cause, refused.Error = policy.Reason(visible(string(r.Cause), longest)), visible(r.Error, maxSaid)
			is.Status.Refused = &refused
		}
	}
	slices.SortFunc(s.instances, func(a, b policy.Instance) int { return cmp.Compare(a.Name, b.Name) })
	return s
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
