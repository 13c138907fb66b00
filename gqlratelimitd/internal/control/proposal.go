package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
)

// ErrSecondPerson says that a change takes a second person. It is a [*SecondPersonError], and an [access.ErrApproval].
var ErrSecondPerson = errors.New("control: it takes a second person")

// SecondPersonError is an [ErrSecondPerson].
type SecondPersonError struct {
	// Reach is how far the change reaches.
	Reach Reach
	// Proposals are the IDs of proposals of exactly this change that have not ended, at most [store.MaxProposals]. Where there is none,
	// [Control.Propose] makes one.
	Proposals []uint64
	// Err says why the last of them is no good yet, an [*access.ApprovalError]. Nil where there is none.
	Err error
}

// Error says why, and what to do.
func (e *SecondPersonError) Error() string {
	text := ErrSecondPerson.Error() + ": " + e.Reach.String()
	if len(e.Proposals) == 0 {
		return text + "; propose it, have somebody else approve it, and publish it again"
	}
	return fmt.Sprintf("%s; proposal %d: %v", text, e.Proposals[len(e.Proposals)-1], e.Err)
}

// Is reports whether the target is [ErrSecondPerson] or [access.ErrApproval].
func (*SecondPersonError) Is(target error) bool {
	return target == ErrSecondPerson || target == access.ErrApproval
}

// Unwrap returns why a proposal is no good.
func (e *SecondPersonError) Unwrap() error { return e.Err }

// ProposeInput is a policy document that somebody else is to look at.
type ProposeInput struct {
	// Document and Expected are those of [PublishInput].
	Document []byte
	Expected uint64
}

// Proposal is a policy document that waits, or has waited, for a second person.
type Proposal struct {
	ID uint64 `json:"id"`
	// Hash is that of the document, and Expected the revision that it is based on: an approval is of both.
	Hash     policy.Hash `json:"hash"`
	Expected uint64      `json:"expected"`
	// Document is told where a proposal is read by itself, as long as it is good.
	Document []byte `json:"document,omitempty"`
	// Proposer is the [access.Actor.Person] who asks, and Reason why.
	Proposer string `json:"proposer"`
	Reason   string `json:"reason"`
	// Proposed is when, and from Expires on neither the proposal holds nor an approval of it.
	Proposed time.Time `json:"proposed"`
	Expires  time.Time `json:"expires"`
	// Reach is how far it reached when it was proposed, and Misfits the tenants whose records would stop fitting.
	Reach   *Reach   `json:"reach,omitempty"`
	Misfits *Misfits `json:"misfits,omitempty"`
	// State is what it is now.
	State ProposalState `json:"state"`
	// Approver is the second person, why and when. They are empty where nobody has approved it.
	Approver       string    `json:"approver,omitempty"`
	ApprovalReason string    `json:"approvalReason,omitempty"`
	Approved       time.Time `json:"approved,omitzero"`
	// Revision is the one that it became.
	Revision uint64 `json:"revision,omitempty"`
}

// ProposalState is what a proposal is.
type ProposalState string

// The states.
const (
	// ProposalOpen waits for a second person, and ProposalApproved to be published.
	ProposalOpen     ProposalState = "open"
	ProposalApproved ProposalState = "approved"
	// ProposalPublished was published. ProposalWithdrawn was taken back by who proposed it, and ProposalRejected by somebody else.
	ProposalPublished ProposalState = "published"
	ProposalWithdrawn ProposalState = "withdrawn"
	ProposalRejected  ProposalState = "rejected"
	// ProposalExpired holds no longer. ProposalStale is based on a revision that is not the newest one any more.
	ProposalExpired ProposalState = "expired"
	ProposalStale   ProposalState = "stale"
)

// report is what is kept of how far a proposal reaches.
type report struct {
	Reach   *Reach   `json:"reach"`
	Misfits *Misfits `json:"misfits,omitempty"`
}

// Propose asks a second person to look at a document: [access.ProposePolicy]. The document compiles, or is an [*InvalidError]. Nothing is
// published: once somebody else has approved it with [Control.Approve], [Control.Publish] takes the same bytes on the same revision
// from whoever may publish, with a signature where one is needed. There is [store.ErrTooManyProposals].
func (c *Control) Propose(ctx context.Context, r Request, in ProposeInput) (*Proposal, error) {
	var rep report
	check := func() error {
		next, err := c.unsigned(&r, in.Document, in.Expected)
		if err != nil {
			return err
		}
		compiled, err := c.compile(ctx, next)
		if err != nil {
			return err
		}
		if rep.Reach, err = c.reach(ctx, compiled); err != nil {
			return err
		}
		rep.Misfits, err = c.misfits(ctx, compiled)
		return err
	}
	return mutate(ctx, c, r, action{Action: access.ProposePolicy}, in, check, func(tx *store.Tx) (*Proposal, done, error) {
		change := changeOf(policy.HashOf(in.Document), in.Expected)
		asked, err := c.cfg.SecondPerson.Propose(r.Actor, "", change, tx.Now())
		if err != nil {
			return nil, done{}, err
		}
		text, err := json.Marshal(rep)
		if err != nil {
			return nil, done{}, fmt.Errorf("control: %w", err)
		}
		p := &store.Proposal{
			Action: string(change.Action), Hash: change.Content, Expected: in.Expected, Document: in.Document, Report: text,
			Proposer: asked.Proposer, Reason: r.Reason, Proposed: asked.Proposed, Expires: asked.Expires,
		}
		if err := tx.AddProposal(p); err != nil {
			return nil, done{}, err
		}
		answer := proposalOf(p, tx.Head(), tx.Now())
		answer.Document = nil
		return answer, done{target: proposalTarget(p.ID), after: entered(answer)}, nil
	})
}

// ApproveInput says which proposal is approved, and what the approver has looked at.
type ApproveInput struct {
	ID uint64
	// Hash is that of the document that the approver has read, and Expected the revision that they have compared it with. Other ones
	// than those of the proposal are an [*access.ApprovalError].
	Hash     policy.Hash
	Expected uint64
}

// Approve approves a proposal of somebody else: [access.ApprovePolicy] and [access.SecondPerson.Approve]. It is an [*access.ApprovalError] for
// who proposed, also with a token that they have issued, and where the proposal does not hold any more. There is
// [ErrNotFound] if there is no such proposal, and [store.ErrConflict] if it is based on a revision that is not the newest one.
func (c *Control) Approve(ctx context.Context, r Request, in ApproveInput) (*Proposal, error) {
	check := func() error { return nil }
	return mutate(ctx, c, r, action{Action: access.ApprovePolicy}, in, check, func(tx *store.Tx) (*Proposal, done, error) {
		p, err := openProposal(tx, in.ID)
		if err != nil {
			return nil, done{}, err
		}
		if p.Approver != "" {
			return nil, done{}, &access.ApprovalError{Problem: "somebody has approved it already"}
		}
		if err := tx.ExpectPolicy(p.Expected); err != nil {
			return nil, done{}, err
		}
		asked, _ := askedAndApproved(p)
		approval, err := c.cfg.SecondPerson.Approve(r.Actor, asked, changeOf(in.Hash, in.Expected), tx.Now())
		if err != nil {
			return nil, done{}, err
		}
		before := proposalOf(p, tx.Head(), tx.Now())
		p.Approver, p.ApprovalReason, p.Approved = approval.Approver, r.Reason, approval.Approved
		if err := tx.ApproveProposal(p.ID, p.Approver, p.ApprovalReason, p.Approved); err != nil {
			return nil, done{}, err
		}
		answer := proposalOf(p, tx.Head(), tx.Now())
		answer.Document = nil
		return answer, done{target: proposalTarget(p.ID), before: entered(before), after: entered(answer)}, nil
	})
}

// WithdrawInput says which proposal is withdrawn.
type WithdrawInput struct{ ID uint64 }

// Withdraw ends a proposal, approved or not: who proposed takes it back, [access.ProposePolicy], and anybody else rejects it,
// [access.ApprovePolicy]. There is [ErrNotFound] if there is no such proposal.
func (c *Control) Withdraw(ctx context.Context, r Request, in WithdrawInput) (*Proposal, error) {
	a, ending := action{Action: access.ApprovePolicy}, store.EndingRejected
	var there *store.Proposal
	err := c.cfg.Store.Read(ctx, func(v *store.View) (err error) {
		there, err = v.Proposal(in.ID)
		return err
	})
	if err != nil {
		return nil, err
	}
	// Who has proposed it never changes.
	if there != nil && there.Proposer == r.Actor.Person() {
		a, ending = action{Action: access.ProposePolicy}, store.EndingWithdrawn
	}
	check := func() error { return nil }
	return mutate(ctx, c, r, a, in, check, func(tx *store.Tx) (*Proposal, done, error) {
		p, err := openProposal(tx, in.ID)
		if err != nil {
			return nil, done{}, err
		}
		before := proposalOf(p, tx.Head(), tx.Now())
		if err := tx.EndProposal(p.ID, ending, 0); err != nil {
			return nil, done{}, err
		}
		p.Ending, p.Document = ending, nil
		answer := proposalOf(p, tx.Head(), tx.Now())
		return answer, done{target: proposalTarget(p.ID), before: entered(before), after: entered(answer)}, nil
	})
}

// Proposal returns a proposal with its document as long as it is good: [access.ReadProposal]. There is [ErrNotFound] if there is none.
func (c *Control) Proposal(ctx context.Context, actor access.Actor, id uint64) (found *Proposal, _ error) {
	if err := access.Authorize(actor, access.ReadProposal, ""); err != nil {
		return nil, err
	}
	err := c.cfg.Store.Read(ctx, func(v *store.View) error {
		head, err := v.Head()
		if err != nil {
			return err
		}
		p, err := v.Proposal(id)
		if err == nil && p == nil {
			err = ErrNotFound
		}
		if err == nil {
			found = proposalOf(p, head, c.now())
		}
		return err
	})
	return found, err
}

// Proposals returns at most n proposals below an ID, 0 for all, the newest first and without their documents: [access.ReadProposal].
func (c *Control) Proposals(ctx context.Context, actor access.Actor, below uint64, n int) (found []Proposal, _ error) {
	if err := access.Authorize(actor, access.ReadProposal, ""); err != nil {
		return nil, err
	}
	err := c.cfg.Store.Read(ctx, func(v *store.View) error {
		head, err := v.Head()
		if err != nil {
			return err
		}
		proposals, err := v.Proposals(below, n)
		for i := range proposals {
			found = append(found, *proposalOf(&proposals[i], head, c.now()))
		}
		return err
	})
	return found, err
}

// approved ends the proposal that permits to publish a revision, and returns it. It is nil if none does and none is needed: the reach is
// nil then, or small.
func (c *Control) approved(tx *store.Tx, r *policy.Revision, expected uint64, reach *Reach) (*store.Proposal, error) {
	proposals, err := tx.ProposalsOf(r.Hash, expected)
	if err != nil {
		return nil, err
	}
	needed := &SecondPersonError{}
	for i := range proposals {
		p := &proposals[i]
		asked, approval := askedAndApproved(p)
		problem := c.cfg.SecondPerson.Permits(asked, approval, changeOf(r.Hash, expected), tx.Now())
		if problem == nil {
			return p, tx.EndProposal(p.ID, store.EndingPublished, r.Number)
		}
		needed.Proposals, needed.Err = append(needed.Proposals, p.ID), problem
	}
	if reach == nil || !c.cfg.SecondPerson.Needed(reach.blast()) {
		return nil, nil
	}
	needed.Reach = *reach
	return nil, needed
}

// changeOf is what is proposed, approved and published: to which action of a request that belongs says nothing about what is in force
// then.
func changeOf(hash policy.Hash, expected uint64) access.Change {
	return access.Change{Action: access.PublishPolicy, Target: "policy", Content: hash, ExpectedRevision: expected}
}

// askedAndApproved is a proposal, and its approval or nil, as the rule judges them.
func askedAndApproved(p *store.Proposal) (*access.Proposal, *access.Approval) {
	change := changeOf(p.Hash, p.Expected)
	change.Action = access.Action(p.Action)
	id := strconv.FormatUint(p.ID, 10)
	asked := &access.Proposal{ID: id, Change: change, Proposer: p.Proposer, Proposed: p.Proposed, Expires: p.Expires}
	if p.Approver == "" {
		return asked, nil
	}
	return asked, &access.Approval{Proposal: id, Change: change, Approver: p.Approver, Approved: p.Approved}
}

// openProposal returns a proposal that has not ended.
func openProposal(tx *store.Tx, id uint64) (*store.Proposal, error) {
	p, err := tx.Proposal(id)
	switch {
	case err != nil:
		return nil, err
	case p == nil:
		return nil, ErrNotFound
	case p.Ending != store.EndingNone:
		return nil, &access.ApprovalError{Problem: "it was " + string(p.Ending)}
	}
	return p, nil
}

func proposalTarget(id uint64) string { return "proposal " + strconv.FormatUint(id, 10) }

// entered is a proposal as the log has it: without lists, which are long.
func entered(p *Proposal) *Proposal {
	short := *p
	short.Document, short.Misfits = nil, nil
	return &short
}

// proposalOf tells a proposal.
func proposalOf(p *store.Proposal, head store.Head, now time.Time) *Proposal {
	var rep report
	// It was written by this package.
	_ = json.Unmarshal(p.Report, &rep)
	state := ProposalState(p.Ending)
	switch {
	case p.Ending != store.EndingNone:
	case head.Policy != p.Expected:
		state = ProposalStale
	case !now.Before(p.Expires):
		state = ProposalExpired
	case p.Approver != "":
		state = ProposalApproved
	default:
		state = ProposalOpen
	}
	return &Proposal{
		ID: p.ID, Hash: p.Hash, Expected: p.Expected, Document: p.Document, Proposer: p.Proposer, Reason: p.Reason,
		Proposed: p.Proposed, Expires: p.Expires, Reach: rep.Reach, Misfits: rep.Misfits, State: state,
		Approver: p.Approver, ApprovalReason: p.ApprovalReason, Approved: p.Approved, Revision: p.Revision,
	}
}
