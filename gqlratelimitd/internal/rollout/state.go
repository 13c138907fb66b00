package rollout

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/digest"
	"github.com/gqlgen-ratelimit/ratelimit/internal/previewreport"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Actor is who publishes the revisions of a roll-out.
const Actor = "rollout"

// Phase says whether a roll-out goes on.
type Phase string

// The phases.
const (
	// Running goes on by itself, Halted when somebody says so.
	Running Phase = "running"
	Halted  Phase = "halted"
	// Done holds for all tenants, Aborted has gone back, and Superseded was ended by a revision of somebody else.
	Done       Phase = "done"
	Aborted    Phase = "aborted"
	Superseded Phase = "superseded"
)

// ErrNotNow says that a roll-out cannot do this in its phase, or that there is none, or one already.
var ErrNotNow = errors.New("rollout: not now")

// State is a roll-out. Its methods return the next one, and leave it as it is.
type State struct {
	// Version counts the states of all roll-outs of a store.
	Version uint64 `json:"version"`
	// ID is that of the candidate, and Seed decides in which order tenants come.
	ID   string `json:"id"`
	Seed string `json:"seed"`
	// Plan are the steps, and Step is the one that it has reached, from 0.
	Plan Plan `json:"plan"`
	Step int  `json:"step"`
	// Old and New are the documents, nil of one that has ended: then OldHash and NewHash are their SHA-256.
	Old     []byte `json:"old,omitempty"`
	New     []byte `json:"new,omitempty"`
	OldHash []byte `json:"oldHash,omitempty"`
	NewHash []byte `json:"newHash,omitempty"`
	// Phase says whether it goes on, and Why for what reason it does not, for people.
	Phase Phase  `json:"phase"`
	Why   string `json:"why,omitempty"`
	// By is who has started it, and Reason why the policy is changed. Starter is the person who answers for it, and Approver the second person
	// who has approved it, empty if nobody has.
	By       string `json:"by"`
	Reason   string `json:"reason"`
	Starter  string `json:"starter,omitempty"`
	Approver string `json:"approver,omitempty"`
	// Revision is the newest one that it has published.
	Revision uint64 `json:"revision"`
	// Since is when the step began or went on, Until when it ends, and Left how long it has still to go while it is halted.
	Since time.Time     `json:"since"`
	Until time.Time     `json:"until"`
	Left  time.Duration `json:"left,omitempty"`
	// Highest is the largest share that was measured in the step, and Measured says that something was.
	Highest  Shares `json:"highest"`
	Measured bool   `json:"measured,omitempty"`
	// Accepted is what was measured when somebody had a halted roll-out go on: it halts again above that.
	Accepted Shares `json:"accepted"`
}

// Shares are the parts of tenants and users that are newly refused, 0 to 1.
type Shares struct {
	Tenants float64 `json:"tenants"`
	Users   float64 `json:"users"`
}

func (s Shares) most(o Shares) Shares {
	return Shares{max(s.Tenants, o.Tenants), max(s.Users, o.Users)}
}

// Publication is a revision that is to be published with a state, by [Actor].
type Publication struct {
	Document []byte
	Reason   string
	// Expected is the number of the newest revision. This one has the next number.
	Expected uint64
}

// Begin returns a new roll-out and its first revision. The newest revision is that of the old document; parse is how instances read documents.
func Begin(state State, newest uint64, parse tiers.ParseConfig, now time.Time) (*State, *Publication, error) {
	old, errOld := parse.Parse(state.Old)
	_, errNew := parse.Parse(state.New)
	if err := errors.Join(errOld, errNew); err != nil {
		return nil, nil, err
	}
	if err := state.Plan.check(&old); err != nil {
		return nil, nil, err
	}
	state.Phase, state.Step, state.Revision, state.Why = Running, -1, newest, ""
	next, publication, err := state.forward(now)
	if err != nil {
		return nil, nil, err
	}
	// What is twice as large may not fit any more.
	if _, err := parse.Parse(publication.Document); err != nil {
		return nil, nil, err
	}
	return next, publication, nil
}

// Stage is that of the step.
func (s *State) Stage() tiers.Stage {
	step := s.Plan[s.Step]
	return tiers.Stage{ID: s.ID, Seed: s.Seed, Percent: step.Percent, Warn: step.Warn}
}

// Active says whether it has not ended.
func (s *State) Active() bool { return s != nil && (s.Phase == Running || s.Phase == Halted) }

// forward returns the state of the next step, which begins now.
func (s State) forward(now time.Time) (*State, *Publication, error) {
	s.Step++
	s.Highest, s.Accepted, s.Measured, s.Left = Shares{}, Shares{}, false, 0
	if s.Step >= len(s.Plan) {
		s.Until = time.Time{}
		return s.ended(Done, "it holds for all tenants").published(s.New, "it holds for all tenants")
	}
	step := s.Plan[s.Step]
	s.Since, s.Until = now, now.Add(step.For)
	document, err := tiers.StageDocument(s.Old, s.New, s.Stage())
	if err != nil {
		return nil, nil, fmt.Errorf("rollout: %w", err)
	}
	words := fmt.Sprintf("%d %% of tenants", step.Percent)
	switch {
	case step.Warn:
		words += " are warned"
	case step.Percent == 0:
		words = "a candidate, which refuses nobody"
	}
	return s.published(document, fmt.Sprintf("step %d of %d: %s", s.Step+1, len(s.Plan)+1, words))
}

// published returns the state after a document was published.
func (s State) published(document []byte, what string) (*State, *Publication, error) {
	const longest = 400
	reason := []rune(s.Reason)
	p := &Publication{Document: document, Expected: s.Revision, Reason: "roll-out " + s.ID + ": " + what + ". " + string(reason[:min(len(reason), longest/4)])}
	s.Revision++
	return &s, p, nil
}

// Advance returns what time and measurements make of it: the same state if nothing changes. The newest revision tells whether somebody else has
// published one. Nil is what nobody could measure.
func (s State) Advance(now time.Time, newest uint64, measured *Shares) (next *State, _ *Publication, changed bool, err error) {
	if !s.Active() {
		return &s, nil, false, nil
	}
	if newest != s.Revision {
		s = s.ended(Superseded, fmt.Sprintf("revision %d was published while the roll-out had published %d: it has ended, and that revision holds", newest, s.Revision))
		return &s, nil, true, nil
	}
	if s.Phase == Halted {
		return &s, nil, false, nil
	}
	// Digests count over a window, in which there is still what was before.
	if measured != nil && now.Sub(s.Since) > digest.Window {
		was := s
		s.Measured, s.Highest = true, s.Highest.most(*measured)
		changed = s.Measured != was.Measured || s.Highest != was.Highest
		if s.above(*measured) {
			return s.halt(now, fmt.Sprintf("%.1f %% of tenants and %.1f %% of users are newly refused", 100*measured.Tenants, 100*measured.Users)), nil, true, nil
		}
	}
	if now.Before(s.Until) {
		return &s, nil, changed, nil
	}
	if !s.Measured {
		return s.halt(now, "nobody has measured who is newly refused: no instance writes digests about it"), nil, true, nil
	}
	next, publication, err := s.forward(now)
	return next, publication, true, err
}

func (s State) halt(now time.Time, why string) *State {
	s.Phase, s.Why, s.Left = Halted, why, max(0, s.Until.Sub(now))
	return &s
}

// above says that shares are above those at which it halts.
func (s *State) above(measured Shares) bool {
	bound := s.Accepted.most(Shares{previewreport.HaltAbove, previewreport.HaltAbove})
	return measured.Tenants > bound.Tenants || measured.Users > bound.Users
}

// Above says that more was measured in the step than its bound: who has it go on accepts that.
func (s *State) Above() bool { return s.above(s.Highest) }

// Halt stops it where it is. The error is [ErrNotNow].
func (s State) Halt(now time.Time, why string) (*State, error) {
	if s.Phase != Running {
		return nil, fmt.Errorf("%w: it is %s", ErrNotNow, s.Phase)
	}
	return s.halt(now, why), nil
}

// Resume has it go on after a halt, for at least five minutes in the step. What was measured is accepted. The error is [ErrNotNow].
func (s State) Resume(now time.Time) (*State, error) {
	if s.Phase != Halted {
		return nil, fmt.Errorf("%w: it is %s", ErrNotNow, s.Phase)
	}
	s.Phase, s.Why, s.Since, s.Until, s.Left = Running, "", now, now.Add(max(minStep, s.Left)), 0
	s.Accepted, s.Measured = s.Accepted.most(s.Highest), false
	return &s, nil
}

// Abort goes back: the old document is published as a new revision. The error is [ErrNotNow].
func (s State) Abort(why string) (*State, *Publication, error) {
	if !s.Active() {
		return nil, nil, fmt.Errorf("%w: it is %s", ErrNotNow, s.Phase)
	}
	return s.ended(Aborted, why).published(s.Old, "aborted")
}

// ended returns the state at the end, without the documents: it is read as long as there is no other roll-out.
func (s State) ended(phase Phase, why string) State {
	old, following := sha256.Sum256(s.Old), sha256.Sum256(s.New)
	s.Phase, s.Why, s.Old, s.New, s.OldHash, s.NewHash = phase, why, nil, nil, old[:], following[:]
	return s
}

// Remark is what is to be said about what was measured in the step, empty if nothing is.
func (s *State) Remark() string {
	if s.Measured && s.Highest.Tenants < previewreport.RemarkBelow && s.Highest.Users < previewreport.RemarkBelow {
		return fmt.Sprintf("less than %g %% of tenants and users are newly refused: is that what the change is for?", 100*previewreport.RemarkBelow)
	}
	return ""
}
