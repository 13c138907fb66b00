package control_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/internal/policydiff"
)

func TestWhatIsNoPolicyIsNotCompared(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	s.publish(document, 0)
	for _, wrong := range []string{"", "version: 2", "{"} {
		_, err := s.Diff(s.ctx(), administrator, control.DiffInput{Document: []byte(wrong)})
		require.ErrorIs(t, err, control.ErrInvalid)
	}
}

func TestWhoMayNotReadPoliciesIsToldBeforeAnythingIsRead(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	confined := administrator
	confined.Tenants = []string{"acme"}
	for _, who := range []access.Actor{customer("acme"), confined, {}} {
		_, err := s.Diff(s.ctx(), who, control.DiffInput{Document: []byte("{")})
		require.ErrorIs(t, err, access.ErrDenied)
	}
}

func TestADiffIsWithTheRevisionThatIsNamedOrTheNewest(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	_, err := s.Diff(s.ctx(), administrator, control.DiffInput{Document: []byte(document)})
	require.ErrorIs(t, err, control.ErrNotFound)
	s.publish(less, 0)
	s.publish(document, 1)
	same, err := s.Diff(s.ctx(), viewer, control.DiffInput{Document: []byte(document)})
	require.NoError(t, err)
	require.Empty(t, same.Changes)
	require.Equal(t, uint64(2), same.Against)
	other, err := s.Diff(s.ctx(), viewer, control.DiffInput{Document: []byte(document), Against: 1})
	require.NoError(t, err)
	require.Equal(t, []policydiff.Change{{Tier: "free", What: "tenant limit minute", Old: "10 points per minute", New: "1000 points per minute"}}, other.Changes)
	_, err = s.Diff(s.ctx(), viewer, control.DiffInput{Document: []byte(document), Against: 7})
	require.ErrorIs(t, err, control.ErrNotFound)
}
