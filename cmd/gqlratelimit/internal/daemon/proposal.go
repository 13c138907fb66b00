package daemon

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"time"
	"unicode/utf8"
)

// Proposal is a document that waits, or has waited, for a second person.
type Proposal struct {
	ID       uint64 `json:"id"`
	Hash     string `json:"hash"`
	Expected uint64 `json:"expectedRevision"`
	// Document is there where the proposal is read by itself, and still good.
	Document string    `json:"document,omitempty"`
	State    string    `json:"state"`
	Proposer string    `json:"proposer"`
	Reason   string    `json:"reason"`
	Proposed time.Time `json:"proposed"`
	Reach    string    `json:"reach,omitempty"`
	Misfits  int       `json:"misfits,omitempty"`
	Expires  time.Time `json:"expires"`
	Approver string    `json:"approver,omitempty"`
	Revision uint64    `json:"revision,omitempty"`
}

// proposalFields are all but the document.
const proposalFields = "id hash expectedRevision state proposer reason proposed reach misfits expires approver revision"

// graph asks the GraphQL API. What it refuses is a [*ProblemError], with what the title says was not done.
func (d *Client) graph(query string, variables map[string]any, again bool, title string, into any) error {
	text, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		return err
	}
	body, err := d.ask(&question{method: http.MethodPost, path: "/graphql", body: text, header: http.Header{"Content-Type": {"application/json"}}, again: again})
	if err != nil {
		return err
	}
	answer := struct {
		Data   any `json:"data"`
		Errors []struct {
			Message string `json:"message"`
		} `json:"errors"`
	}{Data: into}
	if err := read(body, &answer); err != nil {
		return err
	}
	if len(answer.Errors) > 0 {
		return &ProblemError{Title: title, Detail: answer.Errors[0].Message}
	}
	return nil
}

// Proposals returns the newest proposals without their documents, at most a hundred.
func (d *Client) Proposals() ([]Proposal, error) {
	var told struct {
		Proposals struct {
			Nodes []Proposal `json:"nodes"`
		} `json:"proposals"`
	}
	err := d.graph("{ proposals(first: 100) { nodes { "+proposalFields+" } } }", nil, true, "proposals cannot be read", &told)
	return told.Proposals.Nodes, err
}

// Proposal returns a proposal with its document, nil if there is none.
func (d *Client) Proposal(id uint64) (*Proposal, error) {
	var told struct {
		Proposal *Proposal `json:"proposal"`
	}
	err := d.graph("query($id: Long!) { proposal(id: $id) { document "+proposalFields+" } }", map[string]any{"id": id}, true, "the proposal cannot be read", &told)
	return told.Proposal, err
}

// Propose asks a second person to look at a document.
func (d *Client) Propose(change *Change) (*Proposal, error) {
	if !utf8.Valid(change.Document) {
		return nil, errors.New("a document that is no UTF-8 cannot be proposed")
	}
	return d.change("ProposePolicyInput", "proposePolicy", "the document was not proposed", change, map[string]any{
		"document": string(change.Document), "expectedRevision": change.Expected,
	})
}

// Approve approves a proposal of somebody else, of exactly the bytes and on exactly the revision that it has.
func (d *Client) Approve(p *Proposal, change *Change) (*Proposal, error) {
	return d.change("ApprovePolicyInput", "approvePolicy", "the proposal was not approved", change, map[string]any{
		"id": p.ID, "hash": p.Hash, "expectedRevision": p.Expected,
	})
}

// Withdraw ends a proposal: who has proposed takes it back, and anybody else rejects it.
func (d *Client) Withdraw(id uint64, change *Change) (*Proposal, error) {
	return d.change("WithdrawProposalInput", "withdrawProposal", "the proposal was not ended", change, map[string]any{"id": id})
}

// change makes a mutation that answers with a proposal.
func (d *Client) change(kind, field, title string, change *Change, input map[string]any) (*Proposal, error) {
	input["reason"], input["idempotencyKey"] = change.Reason, change.Key
	if change.Ticket != "" {
		input["ticket"] = change.Ticket
	}
	told := map[string]*Proposal{}
	query := "mutation($input: " + kind + "!) { " + field + "(input: $input) { " + proposalFields + " } }"
	if err := d.graph(query, map[string]any{"input": input}, false, title, &told); err != nil {
		return nil, err
	}
	p := told[field]
	if p == nil {
		return nil, &ProblemError{Title: title}
	}
	p.State = cmp.Or(p.State, "OPEN")
	return p, nil
}
