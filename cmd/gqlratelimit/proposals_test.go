package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/policy"
)

const graphql = "POST /graphql"

// proposed has the next question for a proposal be answered with one of this document on revision 1.
func (c *control) proposed(state, document string) {
	c.Helper()
	c.answer(graphql, http.StatusOK, nil, fmt.Sprintf(`{"data": {"proposal": {"id": 7, "hash": %q, "expectedRevision": 1, "document": %q, "state": %q,
		"proposer": "ada", "reason": "less for\u001b[2J free", "proposed": "2026-11-22T03:00:00Z", "expires": "2026-11-23T03:00:00Z", "reach": "it may lower limits of 1 of 1 tiers", "misfits": 2}}}`,
		policy.HashOf([]byte(document)), document, state))
}

func TestASecondPersonReadsWhatAProposalChangesAndHowItIsApproved(t *testing.T) {
	t.Parallel()
	c := newControl(t, document(50))
	c.proposed("OPEN", document(5))
	want := `Proposal 7 on revision 1 by ada at 2026-11-22T03:00:00Z: less for?[2J free
It is open; it may lower limits of 1 of 1 tiers; records of 2 tenants would stop fitting

WHOSE      WHAT                 OLD                      NEW
tier free  tenant limit minute  50 points per minute  →  5 points per minute

To approve exactly this:

    gqlratelimit policy approve -hash ` + policy.HashOf([]byte(document(5))).String() + ` -reason TEXT 7
`
	require.Equal(t, want, c.want(exitOK, "policy proposals -write FOLDER/proposed.yaml 7"))
	require.Equal(t, document(5), c.read("proposed.yaml"))
	c.answer(graphql, http.StatusOK, nil, `{"data": {"proposal": null}}`)
	require.Contains(t, c.want(exitFound, "policy proposals 8"), "There is no proposal 8")
	require.Contains(t, c.want(exitUsage, "policy proposals seven"), "is no number of a proposal")
	require.Contains(t, c.want(exitUsage, "policy proposals -write FOLDER/x"), "say which proposal")
}

func TestProposalsThatCanStillBePublishedAreListed(t *testing.T) {
	t.Parallel()
	c := newControl(t, document(50))
	const page = `{"data": {"proposals": {"nodes": [
		{"id": 9, "state": "OPEN", "expectedRevision": 1, "expires": "2026-11-23T03:00:00Z", "proposer": "ada", "reason": "less"},
		{"id": 8, "state": "STALE", "expires": "2026-11-23T03:00:00Z", "proposer": "ada", "reason": "old"}]}}}`
	c.answer(graphql, http.StatusOK, nil, page)
	require.Equal(t, `PROPOSAL  STATE  ON          ENDS                  BY   REASON
9         open   revision 1  2026-11-23T03:00:00Z  ada  less
`, c.want(exitOK, "policy proposals"))
	c.answer(graphql, http.StatusOK, nil, page)
	require.Contains(t, c.want(exitOK, "policy proposals -all -json"), `"state": "STALE"`)
	c.answer(graphql, http.StatusOK, nil, `{"data": {"proposals": {"nodes": []}}}`)
	require.Equal(t, "No policy waits for a second person.\n", c.want(exitOK, "policy proposals"))
	c.answer(graphql, http.StatusOK, nil, `{"errors": [{"message": "it takes the role viewer"}], "data": null}`)
	require.Contains(t, c.want(exitUsage, "policy proposals"), "proposals cannot be read. it takes the role viewer")
}

func TestWhatIsApprovedIsWhatWasReadAndNothingElse(t *testing.T) {
	t.Parallel()
	c := newControl(t, document(50))
	c.write("read.yaml", document(5))
	c.write("other.yaml", document(6))
	const approved = `{"data": {"approvePolicy": {"id": 7, "state": "APPROVED"}}}`
	for _, read := range []string{"-file FOLDER/read.yaml", "-hash " + policy.HashOf([]byte(document(5))).String()} {
		c.proposed("OPEN", document(5))
		c.answer(graphql, http.StatusOK, nil, approved)
		require.Equal(t, "Proposal 7 is approved. Whoever may publish pushes the same file now.\n", c.want(exitOK, "policy approve -reason read -ticket T-1 7 "+read))
		for _, sent := range []string{`"expectedRevision":1`, policy.HashOf([]byte(document(5))).String(), `"reason":"read"`, `"ticket":"T-1"`, `"idempotencyKey"`} {
			require.Contains(t, c.bodies[len(c.bodies)-1], sent)
		}
	}
	c.proposed("OPEN", document(5))
	require.Contains(t, c.want(exitFound, "policy approve -reason read -file FOLDER/other.yaml 7"), "is another document than FOLDER/other.yaml, and was not approved")
	require.NotContains(t, c.bodies[len(c.bodies)-1], "approvePolicy", "nothing was asked for")
	c.proposed("OPEN", document(5))
	c.answer(graphql, http.StatusOK, nil, `{"errors": [{"message": "who proposed cannot approve"}], "data": null}`)
	require.Contains(t, c.want(exitUsage, "policy approve -reason read -file FOLDER/read.yaml 7"), "the proposal was not approved. who proposed cannot approve")
	require.Contains(t, c.want(exitUsage, "policy approve -reason read 7"), "say what you have read")
	require.Contains(t, c.want(exitUsage, "policy approve -file FOLDER/read.yaml 7"), "say why")
	require.Contains(t, c.want(exitUsage, "policy approve -reason read -file FOLDER/read.yaml"), "name one proposal")
}

func TestADocumentThatIsNotThatOfItsHashIsNotShown(t *testing.T) {
	t.Parallel()
	c := newControl(t, document(50))
	c.answer(graphql, http.StatusOK, nil, `{"data": {"proposal": {"id": 7, "hash": "sha256:00", "state": "OPEN", "document": "version: 1"}}}`)
	require.Contains(t, c.want(exitUsage, "policy proposals 7"), "approve nothing")
}

func TestAProposalIsWithdrawnOrRejected(t *testing.T) {
	t.Parallel()
	c := newControl(t, document(50))
	for _, state := range []string{"WITHDRAWN", "REJECTED"} {
		c.proposed("APPROVED", document(5))
		c.answer(graphql, http.StatusOK, nil, `{"data": {"withdrawProposal": {"id": 7, "state": "`+state+`"}}}`)
		want := "Proposal 7 is " + strings.ToLower(state) + ".\n"
		require.Equal(t, want, c.want(exitOK, "policy withdraw -reason no 7"))
	}
}
