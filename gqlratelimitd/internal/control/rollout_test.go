package control_test

import (
	"crypto/ed25519"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/rollout"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// plan is one whose first step refuses nobody, and whose second one half of the tenants.
var plan = control.RolloutPlan{{For: time.Hour}, {Percent: 50, For: time.Hour}}

func startInput(document string, expected uint64) control.StartRolloutInput {
	return control.StartRolloutInput{Document: []byte(document), Plan: plan, Expected: expected}
}

// startRollout begins a roll-out that has to begin.
func (s *scene) startRollout(document string, expected uint64) *control.Rollout {
	s.Helper()
	answer, err := s.StartRollout(s.ctx(), by(publisher), startInput(document, expected))
	require.NoError(s, err)
	return answer
}

// rollouts is a scene with a policy, in which roll-outs can be started.
func rollouts(t *testing.T) *scene {
	t.Helper()
	s := newScene(t, control.Config{Rollouts: true})
	s.publish(document, 0)
	return s
}

// halfway publishes the second step of a roll-out of more, as a driver does.
func (s *scene) halfway() {
	s.Helper()
	s.startRollout(more, 1)
	kept := s.RolloutStore()
	there, err := kept.Load(s.ctx())
	require.NoError(s, err)
	there.State.Measured = true
	next, publication, err := there.Advance(s.now.Add(2*time.Hour), nil)
	require.NoError(s, err)
	require.NoError(s, kept.Save(s.ctx(), next, publication))
}

func TestARollOutIsToldAsItIs(t *testing.T) {
	t.Parallel()
	s := rollouts(t)
	_, err := s.Rollout(s.ctx(), auditor)
	require.ErrorIs(t, err, control.ErrNotFound)
	started := s.startRollout(more, 1)
	require.Equal(t, &control.Rollout{
		ID: "rollout-2", Document: policy.HashOf([]byte(more)), Before: policy.HashOf([]byte(document)), Phase: rollout.Running,
		By: "ada (https://login.example.org)", Reason: "why", Plan: plan, Step: 1, Revision: 2, Since: s.now, Until: s.now.Add(time.Hour),
	}, started)
	told := func() *control.Rollout {
		t.Helper()
		told, err := s.Rollout(s.ctx(), auditor)
		require.NoError(t, err)
		return told
	}
	require.Equal(t, started, told())
	_, err = s.Rollout(s.ctx(), admin("acme"))
	require.ErrorIs(t, err, access.ErrDenied)

	halted, err := s.HaltRollout(s.ctx(), by(operator), control.HaltRolloutInput{Expected: 2})
	require.NoError(t, err)
	require.Equal(t, halted, told())
	require.Equal(t, rollout.Halted, halted.Phase)
	require.Equal(t, "halted by bob (https://login.example.org): why", halted.Why)
	require.Zero(t, halted.Until)
	_, err = s.ResumeRollout(s.ctx(), by(operator), control.ResumeRolloutInput{Expected: 2})
	require.ErrorIs(t, err, access.ErrDenied, "who goes on with what refuses customers is a publisher")
	resumed, err := s.ResumeRollout(s.ctx(), by(publisher), control.ResumeRolloutInput{Expected: 2})
	require.NoError(t, err)
	require.Equal(t, rollout.Running, resumed.Phase)
	aborted, err := s.AbortRollout(s.ctx(), by(operator), control.AbortRolloutInput{Expected: 2})
	require.NoError(t, err)
	require.Equal(t, []any{rollout.Aborted, started.Document, started.Before}, []any{aborted.Phase, aborted.Document, aborted.Before})
	require.Equal(t, aborted, told(), "also without its documents")
	newest, err := s.Policy(s.ctx(), auditor, 0)
	require.NoError(t, err)
	require.Equal(t, []any{uint64(3), document, rollout.Actor}, []any{newest.Number, string(newest.Document), newest.Author})
	_, err = s.AbortRollout(s.ctx(), by(operator), control.AbortRolloutInput{Expected: 3})
	requireInvalid(t, err, "roll-out", "it is aborted")
	again := s.startRollout(more, 3)
	require.NotEqual(t, started.ID, again.ID, "budgets of a candidate that has been are spent")
}

func TestWhatSomebodyDoesToARollOutIsHeardOfOnce(t *testing.T) {
	t.Parallel()
	var heard []string
	s := newScene(t, control.Config{Rollouts: true, RolloutMoved: func(r *rollout.State) { heard = append(heard, fmt.Sprint(r.Phase, ": ", r.Why)) }})
	s.publish(document, 0)
	s.startRollout(more, 1)
	once := by(operator)
	once.Key = "once"
	for range 2 {
		_, err := s.HaltRollout(s.ctx(), once, control.HaltRolloutInput{Expected: 2})
		require.NoError(t, err)
	}
	_, err := s.HaltRollout(s.ctx(), by(operator), control.HaltRolloutInput{Expected: 2})
	require.ErrorIs(t, err, control.ErrInvalid)
	_, err = s.ResumeRollout(s.ctx(), by(publisher), control.ResumeRolloutInput{Expected: 2})
	require.NoError(t, err)
	_, err = s.AbortRollout(s.ctx(), by(operator), control.AbortRolloutInput{Expected: 2})
	require.NoError(t, err)
	const who = "by bob (https://login.example.org): why"
	require.Equal(t, []string{"running: ", "halted: halted " + who, "running: ", "aborted: aborted " + who}, heard)
}

func TestARollOutThatReachesFarTakesTheSecondPersonBeforeItBegins(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{Rollouts: true, SecondPerson: access.SecondPerson{MaxShare: 0.05}})
	s.publish(document, 0)
	before := s.dump()
	start := func() (*control.Rollout, error) {
		return s.StartRollout(s.ctx(), by(publisher), startInput(less, 1))
	}
	_, err := start()
	requireSecondPerson(t, err)
	require.Equal(t, before, s.dump())
	p := s.propose(less, 1)
	_, err = start()
	requireSecondPerson(t, err, p.ID)
	require.NoError(t, s.approve(second, p))
	_, err = s.StartRollout(s.ctx(), by(publisher), startInput(less+"# not a letter more\n", 1))
	requireSecondPerson(t, err)
	answer, err := start()
	require.NoError(t, err)
	require.Equal(t, []any{p.ID, second.Person()}, []any{answer.Proposal, answer.Approver})
	found, err := s.Proposal(s.ctx(), auditor, p.ID)
	require.NoError(t, err)
	require.Equal(t, []any{control.ProposalPublished, uint64(2)}, []any{found.State, found.Revision})
	// What gives more needs none.
	_, err = s.AbortRollout(s.ctx(), by(operator), control.AbortRolloutInput{Expected: 2})
	require.NoError(t, err)
	_, err = s.StartRollout(s.ctx(), by(publisher), startInput(more, 3))
	require.NoError(t, err)
}

func TestWhatIsWrongWithARollOutIsSaidBeforeItBegins(t *testing.T) {
	t.Parallel()
	key, _, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	staged, err := tiers.StageDocument([]byte(document), []byte(more), tiers.Stage{ID: "r", Seed: "s", Percent: 5})
	require.NoError(t, err)
	for problem, c := range map[string]struct {
		cfg   control.Config
		field string
		in    control.StartRolloutInput
	}{
		"no Redis":           {control.Config{}, "roll-out", startInput(more, 1)},
		"takes a signature":  {control.Config{Rollouts: true, Keys: []ed25519.PublicKey{key}}, "roll-out", startInput(more, 1)},
		"publish it":         {control.Config{Rollouts: true}, "expected revision", startInput(more, 0)},
		"two policies":       {control.Config{Rollouts: true}, "document", startInput(string(staged), 1)},
		"mistake":            {control.Config{Rollouts: true}, "document", startInput("version: 1\n", 1)},
		"larger than":        {control.Config{Rollouts: true}, "document", startInput(more+strings.Repeat("#", tiers.DefaultMaxDocument-len(more)), 1)},
		"a plan of 0 steps":  {control.Config{Rollouts: true}, "plan", control.StartRolloutInput{Document: []byte(more), Expected: 1}},
		"enforces limits":    {control.Config{Rollouts: true}, "plan", control.StartRolloutInput{Document: []byte(more), Plan: control.ShadowThenWarnPlan(), Expected: 1}},
		"lasts 1s, want 5m0": {control.Config{Rollouts: true}, "plan", control.StartRolloutInput{Document: []byte(more), Plan: control.RolloutPlan{{For: time.Second}}, Expected: 1}},
	} {
		t.Run(problem, func(t *testing.T) {
			t.Parallel()
			signed := c.cfg.Keys
			c.cfg.Keys = nil
			s := newScene(t, c.cfg)
			s.publish(document, 0)
			if signed != nil {
				restarted, err := control.New(control.Config{Store: s.db, Rollouts: true, Keys: signed})
				require.NoError(t, err)
				s.Control = restarted
			}
			before := s.dump()
			_, err := s.StartRollout(s.ctx(), by(publisher), c.in)
			if problem == "mistake" {
				problem = ""
			}
			requireInvalid(t, err, c.field, problem)
			require.Equal(t, before, s.dump())
		})
	}
}

func TestThereIsOneRollOutAtATimeAndSomebodyElsesRevisionEndsIt(t *testing.T) {
	t.Parallel()
	s := rollouts(t)
	s.startRollout(more, 1)
	_, err := s.StartRollout(s.ctx(), by(publisher), startInput(less, 2))
	requireInvalid(t, err, "roll-out", "roll-out rollout-2 is running")
	s.publish(document+"# somebody else's\n", 2)
	told, err := s.Rollout(s.ctx(), auditor)
	require.NoError(t, err)
	require.Equal(t, rollout.Superseded, told.Phase, "also before a driver has looked")
	_, err = s.AbortRollout(s.ctx(), by(operator), control.AbortRolloutInput{Expected: 2})
	require.ErrorIs(t, err, control.ErrConflict)
	_, err = s.AbortRollout(s.ctx(), by(operator), control.AbortRolloutInput{Expected: 3})
	requireInvalid(t, err, "roll-out", "which ends the roll-out")
	s.startRollout(more, 3)
	newest, err := s.Policy(s.ctx(), auditor, 0)
	require.NoError(t, err)
	old, next, _, staged := tiers.StageParts(newest.Document)
	require.True(t, staged)
	require.Equal(t, []string{document + "# somebody else's\n", more}, []string{string(old), string(next)})
}

func TestWithADocumentOfTwoPoliciesEverythingIsJudgedByBoth(t *testing.T) {
	t.Parallel()
	s := rollouts(t)
	// The next policy has another operation rule, another capacity and something odd.
	next := strings.NewReplacer("Mutation.*", "Query.users", "1000,", "2000,", "house: {unlimited: true}", "house: {maxCost: 9, limits: {odd: {capacity: 1, per: day}}}").Replace(document)
	s.startRollout(next, 1)
	there, err := s.RolloutStore().Load(s.ctx())
	require.NoError(t, err)
	there.State.Measured = true
	state, publication, err := there.Advance(s.now.Add(2*time.Hour), nil)
	require.NoError(t, err)
	require.NoError(t, s.RolloutStore().Save(s.ctx(), state, publication))

	for _, operation := range []string{"Mutation.*", "Query.users"} {
		_, err := s.SwitchMode(s.ctx(), by(operator), control.SwitchInput{Scope: control.ScopeOperation, Name: operation, Mode: bucket.Off, Until: s.now.Add(time.Hour)})
		require.NoError(t, err)
	}
	_, err = s.SwitchMode(s.ctx(), by(operator), control.SwitchInput{Scope: control.ScopeOperation, Name: "Query.none", Mode: bucket.Off, Until: s.now.Add(time.Hour)})
	requireInvalid(t, err, "name", "no operation rule")

	has := map[bool]int{}
	for i := range 20 {
		tenant := fmt.Sprint("tenant-", i)
		e := s.effective(control.EffectiveInput{Tenant: tenant})
		require.Equal(t, "rollout-2", e.Rollout)
		require.Equal(t, state.Stage().Has(tenant), e.Next)
		require.Equal(t, e.Next, e.Limits[0].Limit.Capacity == 2000)
		has[e.Next]++
	}
	require.Len(t, has, 2)

	warnings, err := s.Lint(s.ctx(), auditor, publication.Document)
	require.NoError(t, err)
	require.Len(t, warnings, 1)
	require.True(t, strings.HasPrefix(warnings[0].Path, "next.tiers.house"), warnings[0].Path)
}

func TestADocumentIsComparedWithBothPoliciesOfARollOut(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{Rollouts: true, SecondPerson: access.SecondPerson{MaxShare: 0.05}})
	s.publish(document, 0)
	s.halfway()
	_, err := s.tryPublish(publisher, document, 3)
	requireSecondPerson(t, err)
	require.ErrorContains(t, err, "1 of 3 tiers", "half of the tenants have more")
	_, err = s.tryPublish(publisher, more, 3)
	require.NoError(t, err, "everybody has at least what they had")
}

func TestWhoHasStartedARollOutAloneDoesNotAcceptAloneThatItRefusesMany(t *testing.T) {
	t.Parallel()
	// By the preview it refuses nobody, so that one person may start it.
	rule := access.SecondPerson{MaxShare: 0.05, Methods: []access.Method{access.MethodOIDC}}
	s := newScene(t, control.Config{Rollouts: true, SecondPerson: rule, Preview: figure{report: seen(0, 0, 1)}})
	s.publish(more, 0)
	s.startRollout(document, 1)
	// But half of all tenants are.
	there, err := s.RolloutStore().Load(s.ctx())
	require.NoError(t, err)
	halted, _, err := there.Advance(s.now.Add(2*time.Minute), &control.Shares{Tenants: 0.5})
	require.NoError(t, err)
	require.NoError(t, s.RolloutStore().Save(s.ctx(), halted, nil))
	before := s.dump()
	resume := func(who access.Actor) error {
		_, err := s.ResumeRollout(s.ctx(), by(who), control.ResumeRolloutInput{Expected: 2})
		return err
	}
	program := actor("deploy", access.Publisher)
	program.Owner = publisher.Person()
	token := actor("carl", access.Publisher)
	token.Method = access.MethodToken
	for _, who := range []access.Actor{publisher, program, token} {
		require.ErrorIs(t, resume(who), access.ErrApproval)
	}
	require.Equal(t, before, s.dump())
	require.NoError(t, resume(second))
	// What was accepted once, whoever has started it lets go on again.
	_, err = s.HaltRollout(s.ctx(), by(operator), control.HaltRolloutInput{Expected: 2})
	require.NoError(t, err)
	require.NoError(t, resume(publisher))
}

func TestARollOutThatATokenOfNobodyHasStartedAndThatRefusesManyIsTakenBack(t *testing.T) {
	t.Parallel()
	rule := access.SecondPerson{MaxShare: 0.05, Methods: []access.Method{access.MethodOIDC}}
	s := newScene(t, control.Config{Rollouts: true, SecondPerson: rule, Preview: figure{report: seen(0, 0, 1)}})
	s.publish(more, 0)
	first := access.Actor{Subject: "me#id", Issuer: access.LocalIssuer, Method: access.MethodToken, Roles: []access.Role{access.Publisher}}
	_, err := s.StartRollout(s.ctx(), by(first), startInput(document, 1))
	require.NoError(t, err)
	there, err := s.RolloutStore().Load(s.ctx())
	require.NoError(t, err)
	halted, _, err := there.Advance(s.now.Add(2*time.Minute), &control.Shares{Tenants: 0.5})
	require.NoError(t, err)
	require.NoError(t, s.RolloutStore().Save(s.ctx(), halted, nil))
	_, err = s.ResumeRollout(s.ctx(), by(second), control.ResumeRolloutInput{Expected: 2})
	require.ErrorIs(t, err, access.ErrApproval)
	_, err = s.AbortRollout(s.ctx(), by(first), control.AbortRolloutInput{Expected: 2})
	require.NoError(t, err)
}

func TestARollOutThatWasApprovedGoesOnByWhoeverMayPublish(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{Rollouts: true, SecondPerson: access.SecondPerson{MaxShare: 0.05}})
	s.publish(document, 0)
	require.NoError(t, s.approve(second, s.propose(less, 1)))
	s.startRollout(less, 1)
	there, err := s.RolloutStore().Load(s.ctx())
	require.NoError(t, err)
	halted, _, err := there.Advance(s.now.Add(2*time.Minute), &control.Shares{Tenants: 0.5})
	require.NoError(t, err)
	require.NoError(t, s.RolloutStore().Save(s.ctx(), halted, nil))
	_, err = s.ResumeRollout(s.ctx(), by(publisher), control.ResumeRolloutInput{Expected: 2})
	require.NoError(t, err)
}
