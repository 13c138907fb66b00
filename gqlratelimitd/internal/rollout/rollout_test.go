package rollout_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
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

func (m *memory) Load(context.Context) (rollout.Situation, error) {
	there := rollout.Situation{Newest: uint64(len(m.documents))}
	if m.state != nil {
		there.State = new(rollout.State)
		if err := json.Unmarshal(m.state, there.State); err != nil {
			return there, err
		}
	}
	return there, m.fail
}

func (m *memory) Save(ctx context.Context, next *rollout.State, publish *rollout.Publication) error {
	there, err := m.Load(ctx)
	if err != nil {
		return err
	}
	was := there.State
	if was == nil && next.Version != 1 || was != nil && next.Version != was.Version+1 || publish != nil && publish.Expected != there.Newest {
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
	unread error
	// moved are the states that the driver tells.
	moved []string
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
		Store: s.memory, Now: func() time.Time { return s.now }, Moved: func(next *rollout.State) { s.moved = append(s.moved, fmt.Sprint(next.Phase, " ", next.Step)) }, Digests: func(context.Context) ([]digest.Digest, error) { return s.seen, s.unread },
	})
	require.NoError(s, err)
}

func (s *scene) start(plan rollout.Plan, document string) error {
	return s.startWith(rollout.StartInput{
		ID: fmt.Sprint("r", len(s.documents)), Seed: "seed", Before: []byte(s.documents[len(s.documents)-1]), Document: []byte(document), Plan: plan, Reason: "less for free", Expected: uint64(len(s.documents)),
	})
}

func (s *scene) startWith(in rollout.StartInput) error {
	_, err := s.change(func(there rollout.Situation) (*rollout.State, *rollout.Publication, error) {
		return there.Start(in, tiers.ParseConfig{}, s.now)
	})
	return err
}

// change is a change that somebody makes.
func (s *scene) change(by func(rollout.Situation) (*rollout.State, *rollout.Publication, error)) (*rollout.State, error) {
	s.Helper()
	there, err := s.Load(s.Context())
	require.NoError(s, err)
	next, publication, err := by(there)
	if err != nil {
		return nil, err
	}
	return next, s.Save(s.Context(), next, publication)
}

func (s *scene) halt(why string) (*rollout.State, error) {
	return s.change(func(there rollout.Situation) (*rollout.State, *rollout.Publication, error) {
		return there.Halt(s.now, why)
	})
}

func (s *scene) resume() (*rollout.State, error) {
	return s.change(func(there rollout.Situation) (*rollout.State, *rollout.Publication, error) {
		return there.Resume(s.now)
	})
}

func (s *scene) abort(why string) (*rollout.State, error) {
	return s.change(func(there rollout.Situation) (*rollout.State, *rollout.Publication, error) { return there.Abort(why) })
}

// after looks once a time has passed.
func (s *scene) after(d time.Duration) *rollout.State {
	s.Helper()
	s.now = s.now.Add(d)
	require.NoError(s, s.driver.Look(s.Context()))
	there, err := s.Load(s.Context())
	require.NoError(s, err)
	return there.State
}

// measure has an instance see a hundred tenants, of whom some are newly refused.
func (s *scene) measure(newly int) {
	there, err := s.Load(s.Context())
	require.NoError(s, err)
	d := digest.Digest{Candidate: there.State.ID, Policy: &digest.Policy{Revision: there.Newest}}
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

	_, err := s.halt("again")
	require.ErrorIs(t, err, rollout.ErrNotNow)
	_, err = s.resume()
	require.NoError(t, err)
	require.Equal(t, rollout.Running, s.after(2*time.Hour).Phase, "what was measured is accepted")
	s.measure(4)
	require.Equal(t, rollout.Halted, s.after(time.Hour).Phase, "and nothing above")
	_, err = s.resume()
	require.NoError(t, err)
	s.after(2 * time.Hour)
	require.Equal(t, rollout.Done, s.after(3*time.Hour).Phase, "it goes on for as long as was left")
	require.Equal(t, []string{"halted 0", "halted 0", "done 1"}, s.moved, "and not what was measured in between")
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

func TestWhileDigestsCannotBeReadItStaysWhereItIs(t *testing.T) {
	t.Parallel()
	s := newScene(t, oldPolicy)
	require.NoError(t, s.start(rollout.Plan{{For: time.Hour}}, newPolicy))
	s.measure(1)
	s.after(30 * time.Minute)
	digests := s.seen
	s.seen, s.unread = nil, errors.New("the Redis is away")
	s.now = s.now.Add(10 * time.Hour)
	require.ErrorIs(t, s.driver.Look(t.Context()), s.unread)
	require.Len(t, s.documents, 2, "what was measured before says nothing about now")
	s.seen = digests
	require.ErrorIs(t, s.driver.Look(t.Context()), s.unread, "of one instance")
	require.Len(t, s.documents, 3, "the others were read")

	s = newScene(t, oldPolicy)
	require.NoError(t, s.start(rollout.Plan{{For: time.Hour}}, newPolicy))
	s.documents, s.unread = append(s.documents, "somebody else's"), errors.New("the Redis is away")
	require.ErrorIs(t, s.driver.Look(t.Context()), s.unread)
	there, err := s.Load(t.Context())
	require.NoError(t, err)
	require.Equal(t, rollout.Superseded, there.State.Phase)
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
	state, err := s.abort("support is flooded")
	require.NoError(t, err)
	require.Equal(t, rollout.Aborted, state.Phase)
	require.Equal(t, []string{oldPolicy, oldPolicy}, []string{s.documents[0], s.documents[2]})
	require.Equal(t, uint64(3), state.Revision)
	_, err = s.resume()
	require.ErrorIs(t, err, rollout.ErrNotNow)
	requireForgotten(t, state)
}

func TestThereIsOneRollOutAtATime(t *testing.T) {
	t.Parallel()
	s := newScene(t, oldPolicy)
	require.NoError(t, s.start(rollout.Gradual(), newPolicy))
	require.ErrorIs(t, s.start(rollout.Gradual(), newPolicy), rollout.ErrNotNow)
	_, err := s.halt("wait")
	require.NoError(t, err)
	require.ErrorIs(t, s.start(rollout.Gradual(), newPolicy), rollout.ErrNotNow, "one that is halted is one")
	_, err = s.abort("no")
	require.NoError(t, err)
	require.NoError(t, s.start(rollout.Gradual(), newPolicy))
}

func TestARevisionOfSomebodyElseEndsIt(t *testing.T) {
	t.Parallel()
	for _, halted := range []bool{false, true} {
		s := newScene(t, oldPolicy)
		require.NoError(t, s.start(rollout.Gradual(), newPolicy))
		if halted {
			_, err := s.halt("wait")
			require.NoError(t, err)
		}
		s.documents = append(s.documents, "somebody else's")
		_, err := s.abort("no")
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
	_, err := s.resume()
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
	require.ErrorIs(t, s.startWith(rollout.StartInput{Expected: 5}), rollout.ErrConflict)
	require.Len(t, s.documents, 1)
	_, err := s.abort("")
	require.ErrorIs(t, err, rollout.ErrNotNow)
	_, err = rollout.New(rollout.Config{Interval: time.Hour})
	for _, field := range []string{"Store", "Digests", "Interval"} {
		require.ErrorContains(t, err, "Config."+field)
	}
}

func TestAPlanIsReadyMadeOrStepsOfOnesOwn(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]rollout.Plan{
		"gradual": rollout.Gradual(), "shadow-then-warn": rollout.ShadowThenWarn(),
		"0:168h, 5:24h,50:90m": {{For: 168 * time.Hour}, {Percent: 5, For: 24 * time.Hour}, {Percent: 50, For: 90 * time.Minute}},
		"0:1h,warn:24h":        {{For: time.Hour}, {Percent: 100, Warn: true, For: 24 * time.Hour}},
	} {
		plan, err := rollout.ParsePlan(text)
		require.NoError(t, err)
		require.Equal(t, want, plan)
	}
	for _, text := range []string{"", "fast", "5", "5:", ":1h", "x:1h", "5:1", "5:1h,", "5:1h;6:1h", strings.Repeat("1:1h,", 1000)} {
		_, err := rollout.ParsePlan(text)
		require.ErrorContains(t, err, "rollout: a plan", text)
		require.Less(t, len(err.Error()), 300)
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
