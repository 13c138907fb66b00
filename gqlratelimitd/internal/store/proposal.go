package store

import (
	"errors"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/policy"
)

// MaxProposals is how many proposals are open at once.
const MaxProposals = 100

// ErrTooManyProposals says that [MaxProposals] are open.
var ErrTooManyProposals = errors.New("store: too many proposals are open: withdraw some")

// Ending is how a proposal has ended.
type Ending string

// The endings. A proposal without one may have expired, or be based on a revision that is not the newest one any more.
const (
	EndingNone      Ending = ""
	EndingPublished Ending = "published"
	EndingWithdrawn Ending = "withdrawn"
	EndingRejected  Ending = "rejected"
)

// Proposal is a policy document that waits, or has waited, for a second person.
type Proposal struct {
	// ID counts proposals from 1 on.
	ID uint64
	// Action is what is proposed, and Expected the revision that it is based on.
	Action   string
	Hash     policy.Hash
	Expected uint64
	// Document is nil in lists, and once the proposal is no good any more.
	Document []byte
	// Report is JSON: what was known of how far it reaches.
	Report []byte
	// Proposer is who asks, and Reason why.
	Proposer, Reason  string
	Proposed, Expires time.Time
	// Approver is who has approved it, empty where nobody has.
	Approver, ApprovalReason string
	Approved                 time.Time
	// Ending is how it has ended, Ended when, and Revision which one it became.
	Ending   Ending
	Ended    time.Time
	Revision uint64
}

const (
	proposalListed  = "id, action, hash, expected, report, proposer, reason, proposed, expires, approver, approval_reason, approved, ending, ended, revision, "
	proposalColumns = proposalListed + "document"
)

func scanProposal(row scanner, p *Proposal) error {
	var hash []byte
	err := row.Scan(&p.ID, &p.Action, &hash, &p.Expected, &p.Report, &p.Proposer, &p.Reason, instant{&p.Proposed}, instant{&p.Expires},
		&p.Approver, &p.ApprovalReason, instant{&p.Approved}, &p.Ending, instant{&p.Ended}, &p.Revision, &p.Document)
	copy(p.Hash[:], hash)
	return err
}

// Proposal returns a proposal, nil if there is none.
func (v *View) Proposal(id uint64) (*Proposal, error) {
	return one(v, scanProposal, "SELECT "+proposalColumns+" FROM proposal WHERE id = $1", id)
}

// Proposals returns at most n proposals below an ID, 0 for all, the newest first and without their documents.
func (v *View) Proposals(below uint64, n int) ([]Proposal, error) {
	if below == 0 {
		below = policy.MaxNumber
	}
	return many(v, scanProposal, "SELECT "+proposalListed+"NULL FROM proposal WHERE id < $1 ORDER BY id DESC LIMIT $2", below, page(n))
}

// ProposalsOf returns the proposals of a document on a revision that have not ended, without it: [MaxProposals] at most.
func (v *View) ProposalsOf(hash policy.Hash, expected uint64) ([]Proposal, error) {
	return many(v, scanProposal, "SELECT "+proposalListed+"NULL FROM proposal WHERE expected = $1 AND hash = $2 AND ending = '' AND document IS NOT NULL ORDER BY id LIMIT $3",
		expected, hash[:], MaxProposals)
}

// What looks at proposals that are open reads the index of these, and not all that there ever were.
const (
	forgetProposalsSQL = "UPDATE proposal SET document = NULL WHERE document IS NOT NULL AND (expires <= $1 OR expected <> $2)"
	openProposalsSQL   = "SELECT count(*) FROM proposal WHERE document IS NOT NULL"
)

// AddProposal adds a proposal of a document on the newest revision, or returns a [*ConflictError]. It sets the ID. Documents of
// those that are no good any more are forgotten.
func (tx *Tx) AddProposal(p *Proposal) error {
	if err := tx.ExpectPolicy(p.Expected); err != nil {
		return err
	}
	if err := tx.exec(forgetProposalsSQL, micros(tx.now), tx.head.Policy); err != nil {
		return err
	}
	open, err := one(&tx.View, scanNumber, openProposalsSQL)
	if err != nil {
		return err
	}
	if *open >= MaxProposals {
		return ErrTooManyProposals
	}
	last, err := one(&tx.View, scanNumber, "SELECT coalesce(max(id), 0) FROM proposal")
	if err != nil {
		return err
	}
	p.ID = uint64(*last) + 1
	return tx.exec(`INSERT INTO proposal (id, action, hash, document, expected, report, proposer, reason, proposed, expires)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		p.ID, p.Action, p.Hash[:], stored(p.Document), p.Expected, stored(p.Report), p.Proposer, p.Reason, micros(p.Proposed), micros(p.Expires))
}

// ApproveProposal notes who approves a proposal, and when, unless it has ended.
func (tx *Tx) ApproveProposal(id uint64, approver, reason string, at time.Time) error {
	return tx.exec("UPDATE proposal SET approver = $1, approval_reason = $2, approved = $3 WHERE id = $4 AND ending = ''", approver, reason, micros(at), id)
}

// EndProposal ends a proposal for ever, unless it has ended. The revision is 0 unless it was published.
func (tx *Tx) EndProposal(id uint64, ending Ending, revision uint64) error {
	return tx.exec("UPDATE proposal SET ending = $1, ended = $2, revision = $3, document = NULL WHERE id = $4 AND ending = ''",
		string(ending), micros(tx.now), revision, id)
}
