package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
)

// proposalOf is one that is based on a revision.
func proposalOf(tx *store.Tx, expected uint64) *store.Proposal {
	return &store.Proposal{
		Action: "policy.publish", Hash: policy.HashOf([]byte("one")), Expected: expected, Document: []byte("one"), Report: []byte("{}"),
		Proposer: "ada", Reason: "why", Proposed: tx.Now(), Expires: tx.Now().Add(time.Hour),
	}
}

func TestAProposalIsKeptAsItIsUntilItEnds(t *testing.T) {
	t.Parallel()
	both(t, func(s scene) {
		var p *store.Proposal
		change(s, s.db, func(tx *store.Tx) {
			requireConflict(s, tx.AddProposal(proposalOf(tx, 1)), 0, "")
			p = proposalOf(tx, 0)
			require.NoError(s, tx.AddProposal(p))
		})
		get := func() *store.Proposal {
			return read(s, s.db, func(v *store.View) (*store.Proposal, error) { return v.Proposal(1) })
		}
		of := func() []store.Proposal {
			return read(s, s.db, func(v *store.View) ([]store.Proposal, error) { return v.ProposalsOf(p.Hash, 0) })
		}
		require.Equal(s, p, get())
		require.Len(s, of(), 1)
		require.Nil(s, of()[0].Document)
		change(s, s.db, func(tx *store.Tx) {
			require.NoError(s, tx.ApproveProposal(1, "bob", "read it", tx.Now()))
			p.Approver, p.ApprovalReason, p.Approved = "bob", "read it", tx.Now()
		})
		require.Equal(s, p, get())
		change(s, s.db, func(tx *store.Tx) {
			require.NoError(s, tx.EndProposal(1, store.EndingPublished, 1))
			// It ends once.
			require.NoError(s, tx.EndProposal(1, store.EndingRejected, 0))
			require.NoError(s, tx.ApproveProposal(1, "eve", "too late", tx.Now()))
			p.Ending, p.Ended, p.Revision, p.Document = store.EndingPublished, tx.Now(), 1, nil
		})
		require.Equal(s, p, get())
		require.Empty(s, of())
		require.Equal(s, []store.Proposal{*p}, read(s, s.db, func(v *store.View) ([]store.Proposal, error) { return v.Proposals(0, 10) }))
		require.Empty(s, read(s, s.db, func(v *store.View) ([]store.Proposal, error) { return v.Proposals(1, 10) }))
		require.Nil(s, read(s, s.db, func(v *store.View) (*store.Proposal, error) { return v.Proposal(2) }))
	})
}

func TestProposalsThatWaitAreBoundedAndMakeRoomWhenTheyAreNoGood(t *testing.T) {
	t.Parallel()
	both(t, func(s scene) {
		fill := func(expected uint64) {
			change(s, s.db, func(tx *store.Tx) {
				for range store.MaxProposals {
					require.NoError(s, tx.AddProposal(proposalOf(tx, expected)))
				}
				require.ErrorIs(s, tx.AddProposal(proposalOf(tx, expected)), store.ErrTooManyProposals)
			})
		}
		fill(0)
		change(s, s.db, func(tx *store.Tx) { require.NoError(s, tx.EndProposal(7, store.EndingWithdrawn, 0)) })
		change(s, s.db, func(tx *store.Tx) { require.NoError(s, tx.AddProposal(proposalOf(tx, 0))) })
		// Another revision is there, and later they have expired.
		change(s, s.db, func(tx *store.Tx) { require.NoError(s, tx.Publish(revision(1), 0)) })
		fill(1)
		s.clock.now = s.clock.now.Add(time.Hour)
		fill(1)
	})
}
