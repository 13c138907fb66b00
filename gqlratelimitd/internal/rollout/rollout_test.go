package rollout_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/digest"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/rollout"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

const (
	oldPolicy    = "version: 1\ndefault: free\ntiers: {free: {limits: {minute: {capacity: 100, per: minute}}}}\n"
	newPolicy    = "version: 1\ndefault: free\ntiers: {free: {limits: {minute: {capacity: 50, per: minute}}}}\n"
	shadowPolicy = "version: 1\ndefault: free\nmode: shadow\ntiers: {free: {limits: {minute: {capacity: 100, per: minute}}}}\n"
)

// memory is a store that keeps states as bytes, as a database does.
type memory struct {
	state     []byte
	documents []string
	reasons   []string
	fail      error
}

func (m *memory) Load(context.Context) (*rollout.State, uint64, []byte, error) {
	var state *rollout.State
	if m.state != nil {
		state = new(rollout.State)
		if err := json.Unmarshal(m.state, state); err != nil {
			return nil, 0, nil, err
		}
	}
	return state, uint64(len(m.documents)), []byte(m.documents[len(m.documents)-1]), m.fail
}

func (m *memory) Save(ctx context.Context, next *rollout.State, publish *rollout.Publication) error {
	was, newest, _, err := m.Load(ctx)
	if err != nil {
		return err
	}
	if was == nil && next.Version != 1 || was != nil && next.Version != was.Version+1 || publish != nil && publish.Expected != newest {
		return rollout.ErrConflict
	}
	if publish != nil {
		m.documents, m.reasons = append(m.documents, string(publish.Document)), append(m.reasons, publish.Reason)
	}
	m.state, err = json.Marshal(next)
	return err
}

// scene is a driver with a clock and digests of the test.
type scene struct {
	*testing.T
	*memory
	driver *rollout.Driver
	now    time.Time
	seen   []digest.Digest
}

func newScene(t *testing.T, document string) *scene {
	t.Helper()
	s := &scene{T: t, memory: &memory{documents: []string{document}}, now: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)}
	s.restart()
	return s
}

// restart has another daemon take over.
func (s *scene) restart() {
	var err error
	s.driver, err = rollout.New(rollout.Config{
		Store: s.memory, Now: func() time.Time { return s.now }, Digests: func(context.Context) ([]digest.Digest, error) { return s.seen, nil },
	})
	require.NoError(s, err)
}

func (s *scene) start(plan rollout.Plan, document string) error {
	_, err := s.driver.Start(s.Context(), rollout.StartInput{
		ID: fmt.Sprint("r", len(s.documents)), Seed: "seed", Document: []byte(document), Plan: plan, Reason: "less for free", Expected: uint64(len(s.documents)),
	})
	return err
}

// after looks once a time has passed.
func (s *scene) after(d time.Duration) *rollout.State {
	s.Helper()
	s.now = s.now.Add(d)
	require.NoError(s, s.driver.Look(s.Context()))
	state, _, _, err := s.Load(s.Context())
	require.NoError(s, err)
	return state
}

// measure has an instance see a hundred tenants, of whom some are newly refused.
func (s *scene) measure(newly int) {
	state, newest, _, err := s.Load(s.Context())
	require.NoError(s, err)
	d := digest.Digest{Candidate: state.ID, Policy: &digest.Policy{Revision: newest}}
	for i := range 100 {
		hash := digest.HashTenant(nil, fmt.Sprint("tenant-", i))
		d.Groups.Tenants.Seen.Add(hash)
		if i < newly {
			d.Groups.Tenants.NewlyRefused.Add(hash)
			d.Groups.Tenants.WouldRefuse.Add(hash)
		}
	}
	s.seen = []digest.Digest{d}
}

func (s *scene) newest() *tiers.Snapshot {
	s.Helper()
	snapshot, err := tiers.Load([]byte(s.documents[len(s.documents)-1]), uint64(len(s.documents)))
	require.NoError(s, err)
	return snapshot
}

func TestAPolicyIsTriedThenHasAGrowingShareThenAll(t *testing.T) {
	t.Parallel()
	s := newScene(t, oldPolicy)
	require.NoError(t, s.start(rollout.Gradual(), newPolicy))
	var percents []int
	for {
		stage, staged := s.newest().Stage()
		if !staged {
			break
		}
		percents = append(percents, stage.Percent)
		s.measure(2)
		require.Equal(t, rollout.Running, s.after(time.Hour).Phase)
		// Another daemon goes on where the one before was.
		s.restart()
		s.measure(2)
		s.after(7 * 24 * time.Hour)
	}
	require.Equal(t, []int{0, 1, 5, 25, 50}, percents)
	require.Equal(t, newPolicy, s.documents[len(s.documents)-1])
	require.Len(t, s.documents, 7, "each step is a revision")
	require.Contains(t, s.reasons[0], "roll-out r1: step 1 of 6: a candidate, which refuses nobody. less for free")
	require.Equal(t, rollout.Done, s.after(0).Phase)
}

func TestNoStepEndsBeforeItsTime(t *testing.T) {
	t.Parallel()
	s := newScene(t, oldPolicy)
	require.NoError(t, s.start(rollout.Plan{{For: time.Hour}}, newPolicy))
	s.measure(1)
	require.Equal(t, 0, s.after(time.Hour-time.Second).Step)
	require.Len(t, s.documents, 2)
	require.Equal(t, rollout.Done, s.after(time.Second).Phase)
}

func TestItHaltsAboveFivePercentAndGoesOnWhenSomebodySaysSo(t *testing.T) {
	t.Parallel()
	s := newScene(t, oldPolicy)
	require.NoError(t, s.start(rollout.Plan{{Percent: 50, For: 10 * time.Hour}}, newPolicy))
	s.measure(2)
	require.Equal(t, rollout.Running, s.after(time.Hour).Phase)
	s.measure(3)
	state := s.after(time.Hour)
	require.Equal(t, rollout.Halted, state.Phase, "3 of the 50 who are not in the share are 6 %")
	require.Contains(t, state.Why, "6.0 % of tenants")
	require.Equal(t, rollout.Halted, s.after(30*24*time.Hour).Phase)
	require.Len(t, s.documents, 2, "a halt leaves what is live")

	_, err := s.driver.Halt(t.Context(), "again")
	require.ErrorIs(t, err, rollout.ErrNotNow)
	_, err = s.driver.Resume(t.Context())
	require.NoError(t, err)
	require.Equal(t, rollout.Running, s.after(2*time.Hour).Phase, "what was measured is accepted")
	s.measure(4)
	require.Equal(t, rollout.Halted, s.after(time.Hour).Phase, "and nothing above")
	_, err = s.driver.Resume(t.Context())
	require.NoError(t, err)
	s.after(2 * time.Hour)
	require.Equal(t, rollout.Done, s.after(3*time.Hour).Phase, "it goes on for as long as was left")
}

func TestWhatNobodyHasMeasuredDoesNotGoOn(t *testing.T) {
	t.Parallel()
	s := newScene(t, oldPolicy)
	require.NoError(t, s.start(rollout.Plan{{For: time.Hour}}, newPolicy))
	s.measure(1)
	s.seen[0].Candidate = "another"
	state := s.after(2 * time.Hour)
	require.Equal(t, rollout.Halted, state.Phase)
	require.Contains(t, state.Why, "nobody has measured")
}

func TestWhatWasCountedBeforeTheStepDoesNotHaltIt(t *testing.T) {
	t.Parallel()
	s := newScene(t, oldPolicy)
	require.NoError(t, s.start(rollout.Plan{{For: time.Hour}}, newPolicy))
	s.measure(50)
	require.Equal(t, rollout.Running, s.after(digest.Window).Phase)
	require.Equal(t, rollout.Halted, s.after(time.Second).Phase)
}

func TestLessThanATenthOfAPercentIsRemarkedOn(t *testing.T) {
	t.Parallel()
	s := newScene(t, oldPolicy)
	require.NoError(t, s.start(rollout.Gradual(), newPolicy))
	s.measure(0)
	require.Contains(t, s.after(time.Hour).Remark(), "less than 0.1 %")
	s.measure(1)
	require.Empty(t, s.after(time.Hour).Remark())
}

func TestToAbortIsANewRevisionOfTheOldDocument(t *testing.T) {
	t.Parallel()
	s := newScene(t, oldPolicy)
	require.NoError(t, s.start(rollout.Gradual(), newPolicy))
	state, err := s.driver.Abort(t.Context(), "support is flooded")
	require.NoError(t, err)
	require.Equal(t, rollout.Aborted, state.Phase)
	require.Equal(t, []string{oldPolicy, oldPolicy}, []string{s.documents[0], s.documents[2]})
	require.Equal(t, uint64(3), state.Revision)
	_, err = s.driver.Resume(t.Context())
	require.ErrorIs(t, err, rollout.ErrNotNow)
}

func TestThereIsOneRollOutAtATime(t *testing.T) {
	t.Parallel()
	s := newScene(t, oldPolicy)
	require.NoError(t, s.start(rollout.Gradual(), newPolicy))
	require.ErrorIs(t, s.start(rollout.Gradual(), newPolicy), rollout.ErrNotNow)
	_, err := s.driver.Halt(t.Context(), "wait")
	require.NoError(t, err)
	require.ErrorIs(t, s.start(rollout.Gradual(), newPolicy), rollout.ErrNotNow, "one that is halted is one")
	_, err = s.driver.Abort(t.Context(), "no")
	require.NoError(t, err)
	require.NoError(t, s.start(rollout.Gradual(), newPolicy))
}

func TestARevisionOfSomebodyElseEndsIt(t *testing.T) {
	t.Parallel()
	for _, halted := range []bool{false, true} {
		s := newScene(t, oldPolicy)
		require.NoError(t, s.start(rollout.Gradual(), newPolicy))
		if halted {
			_, err := s.driver.Halt(t.Context(), "wait")
			require.NoError(t, err)
		}
		s.documents = append(s.documents, "somebody else's")
		_, err := s.driver.Abort(t.Context(), "no")
		require.ErrorIs(t, err, rollout.ErrConflict, "it would undo what is newer")
		state := s.after(time.Second)
		require.Equal(t, rollout.Superseded, state.Phase)
		require.Contains(t, state.Why, "revision 3 was published")
		require.Len(t, s.documents, 3)
	}
}

func TestThePlanOfAWeekOfShadowAndAWeekOfWarn(t *testing.T) {
	t.Parallel()
	s := newScene(t, shadowPolicy)
	require.NoError(t, s.start(rollout.ShadowThenWarn(), newPolicy))
	s.measure(1)
	s.after(7 * 24 * time.Hour)
	stage, _ := s.newest().Stage()
	require.Equal(t, tiers.Stage{ID: "r1", Seed: "seed", Percent: 100, Warn: true}, stage)
	s.measure(6)
	require.Equal(t, rollout.Halted, s.after(time.Hour).Phase, "who is warned would be refused")
	_, err := s.driver.Resume(t.Context())
	require.NoError(t, err)
	s.after(time.Hour)
	require.Equal(t, rollout.Done, s.after(7*24*time.Hour).Phase)

	for _, enforces := range []string{oldPolicy, "mode: warn\nenforceFrom: 2100-01-01\n" + oldPolicy} {
		require.ErrorContains(t, newScene(t, enforces).start(rollout.ShadowThenWarn(), newPolicy), "enforces limits, which would not hold")
	}
}

func TestWhatIsWrongWithARollOutIsSaidAndChangesNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t, oldPolicy)
	for wrong, plan := range map[string]rollout.Plan{
		"0 steps": {}, "100 percent": {{Percent: 100, For: time.Hour}}, "lasts 1s": {{For: time.Second}}, "want 5 to 99": {{Percent: 5, For: time.Hour}, {Percent: 1, For: time.Hour}},
	} {
		require.ErrorContains(t, s.start(plan, newPolicy), wrong)
	}
	require.ErrorContains(t, s.start(rollout.Gradual(), "version: 1\n"), "default")
	_, err := s.driver.Start(t.Context(), rollout.StartInput{Expected: 5})
	require.ErrorIs(t, err, rollout.ErrConflict)
	require.Len(t, s.documents, 1)
	_, err = s.driver.Abort(t.Context(), "")
	require.ErrorIs(t, err, rollout.ErrNotNow)
	_, err = rollout.New(rollout.Config{Interval: time.Hour})
	for _, field := range []string{"Store", "Digests", "Interval"} {
		require.ErrorContains(t, err, "Config."+field)
	}
}

func TestADriverLooksUntilItsContextEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &memory{documents: []string{oldPolicy}, fail: errors.New("the database is away")}
		failures := 0
		driver, err := rollout.New(rollout.Config{
			Store: m, Digests: func(context.Context) ([]digest.Digest, error) { return nil, nil }, Failed: func(error) { failures++ },
		})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { driver.Run(ctx); close(ended) }()
		// The bubble has a clock of its own.
		time.Sleep(25 * time.Second) //nolint:forbidigo // in a synctest bubble
		cancel()
		<-ended
		require.Equal(t, 3, failures)
	})
}
