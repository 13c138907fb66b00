package access

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// SecondPerson is the rule for when a change takes a second person. The zero value has the defaults. It decides and stores nothing; it is
// safe for concurrent use after Check.
type SecondPerson struct {
	// MaxShare is which share of the requests of one tenant a change may newly refuse without a second person: 0.05 is five in a hundred. Zero
	// is 0.05, and [None] asks for a second person never.
	MaxShare float64
	// MaxTenants is how many tenants it may newly refuse something. Zero is 10, [None] is any number.
	MaxTenants int64
	// Life is for how long a proposal holds, and an approval of it. Zero is 24 hours; a minute to 30 days.
	Life time.Duration
	// Methods are how an approver has to have shown who they are. Empty is any but the bootstrap token. A token counts as the person who has
	// issued it, but one that the bootstrap token has issued as a person of its own, so that somebody may be two: where people have an issuer
	// of OpenID Connect, name [MethodOIDC]. Unless [MethodToken] is named too, such a token proposes nothing then: see [SecondPerson.Known].
	Methods []Method
}

// Blast is how far a change reaches, by a preview on recorded traffic.
type Blast struct {
	// Known says that there was a preview, and that it has seen enough. Of a change without one nobody knows how far it reaches, and it
	// takes a second person.
	Known bool
	// Share is the largest share of the requests of one tenant that are newly refused, 0 to 1.
	Share float64
	// Tenants is how many tenants are newly refused something.
	Tenants int64
}

// Check fills in the defaults and returns all mistakes.
func (s *SecondPerson) Check() error {
	var mistakes []error
	if s.MaxShare == 0 {
		s.MaxShare = 0.05
	}
	// Written so that no number at all is a mistake too.
	if s.MaxShare != None && !(s.MaxShare > 0 && s.MaxShare <= 1) {
		mistakes = append(mistakes, fmt.Errorf("access: SecondPerson.MaxShare is %g, want more than 0 to 1, or None", s.MaxShare))
	}
	if s.MaxTenants == 0 {
		s.MaxTenants = 10
	}
	if s.MaxTenants < None {
		mistakes = append(mistakes, fmt.Errorf("access: SecondPerson.MaxTenants is %d, want 1 or more, or None", s.MaxTenants))
	}
	if s.Life == 0 {
		s.Life = 24 * time.Hour
	}
	if s.Life < time.Minute || s.Life > 30*24*time.Hour {
		mistakes = append(mistakes, fmt.Errorf("access: SecondPerson.Life is %s, want a minute to 30 days", s.Life))
	}
	for _, method := range s.Methods {
		if method != MethodToken && method != MethodOIDC && method != MethodCertificate {
			mistakes = append(mistakes, fmt.Errorf("access: SecondPerson.Methods has %q, want %s, %s or %s", method, MethodToken, MethodOIDC, MethodCertificate))
		}
	}
	return errors.Join(mistakes...)
}

// Needed reports whether a change that reaches so far takes a second person.
func (s *SecondPerson) Needed(b Blast) bool {
	if s.MaxShare == None {
		return false
	}
	// Written so that a share that is no number asks for a second person.
	return !b.Known || !(b.Share <= s.MaxShare) || s.MaxTenants != None && b.Tenants > s.MaxTenants
}

// Change is what is approved: nothing else, and not a letter more.
type Change struct {
	// Action is what is to be done, such as [PublishPolicy], and Target what to, in the words of the audit log.
	Action Action
	Target string
	// Content is the SHA-256 of the exact bytes: those of the policy document.
	Content [sha256.Size]byte
	// ExpectedRevision is the revision that the change is based on. Once another is published, the approval is no good: what was
	// looked at was something else.
	ExpectedRevision uint64
}

// Proposal asks for a second person.
type Proposal struct {
	// ID names the proposal. Whoever stores it chooses it.
	ID string
	Change
	// Proposer is the [Actor.Person] who asks.
	Proposer string
	// Proposed is when, and from Expires on it does not hold.
	Proposed, Expires time.Time
}

// Approval is the word of a second person.
type Approval struct {
	// Proposal is the ID of the proposal.
	Proposal string
	Change
	// Approver is the [Actor.Person] who approves.
	Approver string
	Approved time.Time
}

// ErrApproval is what every [*ApprovalError] is.
var ErrApproval = errors.New("access: not approved")

// ApprovalError says why something is not approved.
type ApprovalError struct{ Problem string }

// Error says why.
func (e *ApprovalError) Error() string { return "access: not approved: " + e.Problem }

// Is reports whether the target is [ErrApproval].
func (*ApprovalError) Is(target error) bool { return target == ErrApproval }

// Propose returns the proposal of a change by an actor. The error is a [*DeniedError], or the [*ApprovalError] of [SecondPerson.Known].
func (s *SecondPerson) Propose(actor Actor, id string, change Change, now time.Time) (*Proposal, error) {
	if err := Authorize(actor, ProposePolicy, ""); err != nil {
		return nil, err
	}
	if err := s.Known(actor.Person()); err != nil {
		return nil, err
	}
	return &Proposal{ID: id, Change: change, Proposer: actor.Person(), Proposed: now, Expires: now.Add(s.Life)}, nil
}

// Approve returns the approval of a proposal by an actor who has looked at a change. The error is a [*DeniedError], or an
// [*ApprovalError]: who proposed, or issued the token that did, may not approve; nor who saw something else than what is proposed, or
// comes too late.
func (s *SecondPerson) Approve(actor Actor, p *Proposal, seen Change, now time.Time) (*Approval, error) {
	if err := Authorize(actor, ApprovePolicy, ""); err != nil {
		return nil, err
	}
	if err := s.Comes(actor); err != nil {
		return nil, err
	}
	a := &Approval{Proposal: p.ID, Change: seen, Approver: actor.Person(), Approved: now}
	if err := s.Permits(p, a, p.Change, now); err != nil {
		return nil, err
	}
	return a, nil
}

// Comes returns an [*ApprovalError] if an actor has come in by what makes nobody a second person.
func (s *SecondPerson) Comes(actor Actor) error {
	if len(s.Methods) > 0 && !slices.Contains(s.Methods, actor.Method) {
		return &ApprovalError{fmt.Sprintf("a second person comes in by %v", s.Methods)}
	}
	return nil
}

// Known returns an [*ApprovalError] if nobody can tell whether an [Actor.Person] is somebody else than those who come in by the methods: who
// answers for a token that the bootstrap token has issued may be one of them.
func (s *SecondPerson) Known(person string) error {
	if len(s.Methods) > 0 && !slices.Contains(s.Methods, MethodToken) && strings.HasPrefix(person, LocalIssuer+" ") {
		return &ApprovalError{fmt.Sprintf("nobody answers for a token that the bootstrap token has issued: come in by %v, or with a token that somebody who did has issued", s.Methods)}
	}
	return nil
}

// Permits returns nil if a change may be made now, because a second person has approved exactly this, and otherwise an [*ApprovalError].
// Neither argument has to be there: what is missing permits nothing. What was proposed and approved comes from a database, so all of it
// is judged again.
func (s *SecondPerson) Permits(p *Proposal, a *Approval, change Change, now time.Time) error {
	if p != nil {
		if err := s.Known(p.Proposer); err != nil {
			return err
		}
	}
	switch {
	case p == nil || a == nil || p.ID != a.Proposal:
		return &ApprovalError{"it takes a second person, who has not approved it"}
	case p.Proposer == "" || a.Approver == "" || p.Proposer == a.Approver:
		return &ApprovalError{"who proposes is not the second person"}
	case change != p.Change || change != a.Change:
		return &ApprovalError{"what was approved is another document, or based on another revision"}
	case !now.Before(p.Expires) || now.Sub(p.Proposed) > s.Life || a.Approved.Before(p.Proposed) || !a.Approved.Before(p.Expires):
		return &ApprovalError{"the proposal has expired"}
	}
	return nil
}
