package rollout_test

import (
	"crypto/sha256"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/rollout"
)

// requireForgotten says that a roll-out has ended, and keeps of its documents what they are told by.
func requireForgotten(t *testing.T, s *rollout.State) {
	t.Helper()
	require.Empty(t, s.Old)
	require.Empty(t, s.New)
	old, following := sha256.Sum256([]byte(oldPolicy)), sha256.Sum256([]byte(newPolicy))
	require.Equal(t, [][]byte{old[:], following[:]}, [][]byte{s.OldHash, s.NewHash})
}

func TestARollOutThatHasEndedKeepsNoDocuments(t *testing.T) {
	t.Parallel()
	for _, end := range []func(s *scene){
		func(s *scene) {
			for range 2 {
				s.measure(1)
				s.after(time.Hour)
			}
		},
		func(s *scene) {
			s.documents = append(s.documents, oldPolicy)
			s.after(time.Minute)
		},
	} {
		s := newScene(t, oldPolicy)
		require.NoError(t, s.start(rollout.Plan{{For: 10 * time.Minute}}, newPolicy))
		there, err := s.Load(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{oldPolicy, newPolicy}, []string{string(there.State.Old), string(there.State.New)})
		end(s)
		there, err = s.Load(t.Context())
		require.NoError(t, err)
		require.False(t, there.State.Active())
		requireForgotten(t, there.State)
	}
}
