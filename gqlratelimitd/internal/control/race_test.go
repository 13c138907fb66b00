package control_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

func TestOfManyRepeatsAtOnceOneIsDoneAndAllAreAnsweredTheSame(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	r := by(administrator)
	r.Key = "key"
	answers := make([]*control.Published, 16)
	var clients sync.WaitGroup
	for i := range answers {
		clients.Go(func() {
			var err error
			answers[i], err = s.Publish(s.ctx(), r, control.PublishInput{Document: []byte(document)})
			require.NoError(t, err)
		})
	}
	clients.Wait()
	for _, answer := range answers {
		require.Equal(t, answers[0], answer)
	}
	require.Len(t, s.entries(), 1)
}

func TestWhatWasJudgedByAPolicyThatHasChangedMeanwhileIsJudgedAgain(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	s.publish(document, 0)
	o := overrideInput(0, false)
	o.Override.Expires = s.now.Add(time.Hour)
	// The limit is gone while the override is looked at.
	s.tick = func() { s.publish("version: 1\ndefault: free\ntiers: {free: {maxCost: 5}}\n", 1) }
	_, err := s.SetOverride(s.ctx(), by(operator), o)
	requireInvalid(t, err, "limit", "no limit")
	s.tick = func() { s.publish(document, 2) }
	_, err = s.SetOverride(s.ctx(), by(operator), o)
	require.NoError(t, err)
}

func TestAPolicyThatThisDaemonCannotReadStopsNobodyInAnEmergency(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{Modes: modesOf(t)})
	newer := []byte("version: 2\n")
	require.NoError(t, s.db.Change(s.ctx(), func(tx *store.Tx) error {
		return tx.Publish(&policy.Revision{Number: 1, Document: newer, Hash: policy.HashOf(newer), Published: s.now}, 0)
	}))
	_, err := s.SetOverride(s.ctx(), by(operator), overrideInput(0, false))
	require.NoError(t, err)
	_, err = s.SwitchMode(s.ctx(), by(operator), control.SwitchInput{Scope: control.ScopeOperation, Name: "Query.x", Mode: bucket.Off, Until: time.Now().Add(time.Hour)})
	require.NoError(t, err)
	_, err = s.put(`{"tier":"pro"}`, 0)
	require.NoError(t, err)
	_, err = s.allocate(2, map[string]*tiers.Limit{"a": perMinute(1)})
	requireInvalid(t, err, "allocations", "no policy to judge by")
	_, err = s.Revert(s.ctx(), by(operator), control.RevertInput{To: 1, Expected: 1})
	requireInvalid(t, err, "document", "version 2 is unknown")
	s.publish(strings.Replace(document, "1000,", "2000,", 1), 1)
	_, err = s.allocate(2, map[string]*tiers.Limit{"a": perMinute(1)})
	require.NoError(t, err)
}
