package control_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/preview"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/internal/previewreport"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
)

// second is a second person.
var second = actor("bob", access.Publisher)

// less is document with less of a limit, and more one with more of it.
var (
	less = strings.Replace(document, "1000,", "10,", 1)
	more = strings.Replace(document, "1000,", "2000,", 1)
)

// propose proposes a document.
func (s *scene) propose(document string, expected uint64) *control.Proposal {
	s.Helper()
	p, err := s.Propose(s.ctx(), by(publisher), control.ProposeInput{Document: []byte(document), Expected: expected})
	require.NoError(s, err)
	return p
}

func (s *scene) approve(who access.Actor, p *control.Proposal) error {
	s.Helper()
	_, err := s.Approve(s.ctx(), by(who), control.ApproveInput{ID: p.ID, Hash: p.Hash, Expected: p.Expected})
	return err
}

// tryPublish publishes if it is allowed.
func (s *scene) tryPublish(who access.Actor, document string, expected uint64) (*control.Published, error) {
	s.Helper()
	return s.Publish(s.ctx(), by(who), control.PublishInput{Document: []byte(document), Expected: expected})
}

// twoPersons is a scene with the rule, and a policy.
func twoPersons(t *testing.T, preview control.Previewer) *scene {
	t.Helper()
	s := newScene(t, control.Config{SecondPerson: access.SecondPerson{MaxShare: 0.05}, Preview: preview})
	// Who is the first has nobody whose limits could fall.
	s.publish(document, 0)
	return s
}

func requireSecondPerson(t testing.TB, err error, proposals ...uint64) {
	t.Helper()
	require.ErrorIs(t, err, control.ErrSecondPerson)
	require.ErrorIs(t, err, access.ErrApproval)
	var needed *control.SecondPersonError
	require.ErrorAs(t, err, &needed)
	require.Equal(t, proposals, needed.Proposals)
}

func TestASecondPersonApprovesBeforeLimitsFall(t *testing.T) {
	t.Parallel()
	s := twoPersons(t, nil)
	before := s.dump()
	_, err := s.tryPublish(publisher, less, 1)
	requireSecondPerson(t, err)
	require.ErrorContains(t, err, "it may lower limits of 1 of 3 tiers, 0 of 0 listed tenants; propose it")
	require.Equal(t, before, s.dump())

	p := s.propose(less, 1)
	require.Equal(t, []string{"free"}, p.Reach.Lowered.Tiers)
	_, err = s.tryPublish(publisher, less, 1)
	requireSecondPerson(t, err, 1)
	require.ErrorContains(t, err, "proposal 1: access: not approved: it takes a second person")
	require.NoError(t, s.approve(second, p))
	answer, err := s.tryPublish(publisher, less, 1)
	require.NoError(t, err)
	require.Equal(t, uint64(1), answer.Proposal)
	require.Equal(t, second.Person(), answer.Approver)
	found, err := s.Proposal(s.ctx(), auditor, 1)
	require.NoError(t, err)
	require.Equal(t, control.ProposalPublished, found.State)
	require.Equal(t, uint64(2), found.Revision)
	require.Nil(t, found.Document)
	entries := s.entries()
	var actions []string
	for _, e := range entries {
		actions = append(actions, e.Action)
	}
	require.Equal(t, []string{"policy.publish", "policy.propose", "policy.approve", "policy.publish"}, actions)
	require.Contains(t, string(entries[3].After), second.Person())
	// It is good for one time.
	_, err = s.tryPublish(second, more, 2)
	require.NoError(t, err)
	_, err = s.tryPublish(second, less, 3)
	requireSecondPerson(t, err)
}

func TestWhoProposedMayNotApproveAlsoNotByATokenOfTheirs(t *testing.T) {
	t.Parallel()
	s := twoPersons(t, nil)
	issued, err := s.IssueToken(s.ctx(), by(publisher), access.TokenRequest{Subject: "ci", Roles: []access.Role{access.Publisher}})
	require.NoError(t, err)
	robot, err := s.come(issued.Secret)
	require.NoError(t, err)
	// And a token that the token has issued.
	issued, err = s.IssueToken(s.ctx(), by(robot), access.TokenRequest{Subject: "ci2", Roles: []access.Role{access.Publisher}})
	require.NoError(t, err)
	robots, err := s.come(issued.Secret)
	require.NoError(t, err)
	for _, proposer := range []access.Actor{publisher, robot, robots} {
		p, err := s.Propose(s.ctx(), by(proposer), control.ProposeInput{Document: []byte(less), Expected: 1})
		require.NoError(t, err)
		before := s.dump()
		for _, same := range []access.Actor{publisher, robot, robots} {
			require.ErrorContains(t, s.approve(same, p), "who proposes is not the second person")
		}
		for _, other := range []access.Actor{operator, auditor, admin("acme")} {
			require.ErrorIs(t, s.approve(other, p), access.ErrDenied)
		}
		require.Equal(t, before, s.dump())
	}
	_, err = s.tryPublish(robot, less, 1)
	requireSecondPerson(t, err, 1, 2, 3)
}

func TestAnApprovalIsOfExactBytesOnOneRevision(t *testing.T) {
	t.Parallel()
	s := twoPersons(t, nil)
	p := s.propose(less, 1)
	for _, seen := range []control.ApproveInput{
		{ID: 1, Hash: policy.HashOf([]byte(less + "\n")), Expected: 1}, {ID: 1, Hash: p.Hash, Expected: 0}, {ID: 1},
	} {
		_, err := s.Approve(s.ctx(), by(second), seen)
		require.ErrorContains(t, err, "another document")
	}
	require.NoError(t, s.approve(second, p))
	_, err := s.tryPublish(publisher, less+"\n", 1)
	requireSecondPerson(t, err)
	// Somebody publishes something else: what was approved was based on another revision.
	s.publish(more, 1)
	_, err = s.tryPublish(publisher, less, 1)
	require.ErrorIs(t, err, store.ErrConflict)
	_, err = s.tryPublish(publisher, less, 2)
	requireSecondPerson(t, err)
	found, err := s.Proposal(s.ctx(), auditor, 1)
	require.NoError(t, err)
	require.Equal(t, control.ProposalStale, found.State)
	late := s.propose(less, 2)
	s.publish(more, 2)
	require.ErrorIs(t, s.approve(second, late), store.ErrConflict)
	_, err = s.Approve(s.ctx(), by(second), control.ApproveInput{ID: 9})
	require.ErrorIs(t, err, control.ErrNotFound)
}

func TestAnApprovalExpiresAndIsTakenBack(t *testing.T) {
	t.Parallel()
	s := twoPersons(t, nil)
	p := s.propose(less, 1)
	require.NoError(t, s.approve(second, p))
	require.ErrorContains(t, s.approve(second, p), "approved it already")
	s.now = s.now.Add(24 * time.Hour)
	_, err := s.tryPublish(publisher, less, 1)
	requireSecondPerson(t, err, 1)
	require.ErrorContains(t, err, "expired")
	late := s.propose(less, 1)
	found, err := s.Proposal(s.ctx(), auditor, 1)
	require.NoError(t, err)
	require.Equal(t, control.ProposalExpired, found.State)
	require.Nil(t, found.Document)
	s.now = s.now.Add(24 * time.Hour)
	require.ErrorContains(t, s.approve(second, late), "expired")

	for who, state := range map[string]control.ProposalState{"ada": control.ProposalWithdrawn, "bob": control.ProposalRejected, "mallory": control.ProposalRejected} {
		p := s.propose(less, 1)
		require.NoError(t, s.approve(second, p))
		_, err = s.Withdraw(s.ctx(), by(operator), control.WithdrawInput{ID: p.ID})
		require.ErrorIs(t, err, access.ErrDenied)
		ended, err := s.Withdraw(s.ctx(), by(actor(who, access.Publisher)), control.WithdrawInput{ID: p.ID})
		require.NoError(t, err)
		require.Equal(t, state, ended.State)
		_, err = s.tryPublish(publisher, less, 1)
		require.ErrorIs(t, err, control.ErrSecondPerson)
		require.ErrorContains(t, s.approve(second, p), "it was "+string(state))
	}
	_, err = s.Withdraw(s.ctx(), by(publisher), control.WithdrawInput{ID: 99})
	require.ErrorIs(t, err, control.ErrNotFound)
}

func TestProposalsAreReadByWhoMay(t *testing.T) {
	t.Parallel()
	s := twoPersons(t, nil)
	s.propose(less, 1)
	s.propose(more, 1)
	list, err := s.Proposals(s.ctx(), auditor, 0, 10)
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, []any{uint64(2), control.ProposalOpen, 0}, []any{list[0].ID, list[0].State, len(list[0].Document)})
	require.Nil(t, list[0].Reach.Lowered, "it lowers nothing")
	found, err := s.Proposal(s.ctx(), auditor, 1)
	require.NoError(t, err)
	require.Equal(t, less, string(found.Document))
	_, err = s.Proposals(s.ctx(), admin("acme"), 0, 10)
	require.ErrorIs(t, err, access.ErrDenied)
	_, err = s.Proposal(s.ctx(), admin("acme"), 1)
	require.ErrorIs(t, err, access.ErrDenied)
	_, err = s.Proposal(s.ctx(), auditor, 3)
	require.ErrorIs(t, err, control.ErrNotFound)
	_, err = s.Propose(s.ctx(), by(publisher), control.ProposeInput{Document: []byte("tiers: 1"), Expected: 1})
	requireInvalid(t, err, "document", "")
}

func TestTheNewestRevisionIsTakenBackByOnePersonAndNothingElseIs(t *testing.T) {
	t.Parallel()
	s := twoPersons(t, nil)
	s.publish(more, 1)
	s.publish(strings.Replace(document, "1000,", "3000,", 1), 2)
	_, err := s.Revert(s.ctx(), by(operator), control.RevertInput{To: 1, Expected: 3})
	requireSecondPerson(t, err)
	answer, err := s.Revert(s.ctx(), by(operator), control.RevertInput{To: 2, Expected: 3})
	require.NoError(t, err)
	require.Equal(t, uint64(4), answer.Number)
	// To go further back somebody proposes those bytes.
	require.NoError(t, s.approve(second, s.propose(document, 4)))
	answer, err = s.Revert(s.ctx(), by(operator), control.RevertInput{To: 1, Expected: 4})
	require.NoError(t, err)
	require.Equal(t, uint64(1), answer.Proposal)
}

func TestTheRuleIsOnWhereNothingIsSaid(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	plain, err := control.New(control.Config{Store: s.db, Now: func() time.Time { return s.now }})
	require.NoError(t, err)
	_, err = plain.Publish(s.ctx(), by(publisher), control.PublishInput{Document: []byte(document)})
	require.NoError(t, err)
	_, err = plain.Publish(s.ctx(), by(publisher), control.PublishInput{Document: []byte(less), Expected: 1})
	requireSecondPerson(t, err)
	_, err = control.New(control.Config{Store: s.db, SecondPerson: access.SecondPerson{MaxShare: 2}})
	require.ErrorContains(t, err, "Config.SecondPerson: access: SecondPerson.MaxShare is 2")
	// Who is alone says so.
	s.publish(less, 1)
}

// TestWhoGuessesTheNextRevisionIsNotComparedWithAnotherOne publishes upon revision 2, which somebody else publishes as soon as the
// document was compared with revision 1.
func TestWhoGuessesTheNextRevisionIsNotComparedWithAnotherOne(t *testing.T) {
	t.Parallel()
	var s *scene
	compared := false
	s = twoPersons(t, previewOf(func() {
		compared = true
		require.NoError(t, s.db.Change(s.ctx(), func(tx *store.Tx) error {
			return tx.Publish(&policy.Revision{Number: 2, Document: []byte(more), Hash: policy.HashOf([]byte(more)), Published: s.now}, 1)
		}))
	}))
	_, err := s.tryPublish(publisher, less, 2)
	require.ErrorIs(t, err, store.ErrConflict)
	require.False(t, compared)
}

type previewOf func()

func (p previewOf) Preview(context.Context, preview.Config) (*previewreport.Report, error) {
	p()
	return &previewreport.Report{}, nil
}
