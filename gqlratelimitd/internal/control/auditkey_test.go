package control_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit/audittest"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
)

func TestTheAuditLogOfAControlPlaneKeepsTheContract(t *testing.T) {
	t.Parallel()
	audittest.Run(t, func(t *testing.T) audit.Log {
		t.Helper()
		return newScene(t, control.Config{}).AuditLog()
	})
}

// auditKey makes a key of a log.
func auditKey(t testing.TB, name string) (*audit.Key, string) {
	t.Helper()
	private, _, err := audit.NewKey(name)
	require.NoError(t, err)
	key, err := audit.ParseKey(private)
	require.NoError(t, err)
	return key, private
}

func (s *scene) signer(key *audit.Key) *audit.Signer {
	s.Helper()
	signer, err := audit.NewSigner(s.AuditLog(), audit.SignerConfig{Key: key})
	require.NoError(s, err)
	return signer
}

func TestASignerRunsOnTheStoreAndItsKeyIsRotated(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	old, _ := auditKey(t, "log.example.org")
	next, private := auditKey(t, "log.example.org")
	s.publish(document, 0)
	first, err := s.signer(old).Sign(s.ctx(), s.now)
	require.NoError(t, err)
	require.NotEmpty(t, first)

	before := s.dump()
	other, _ := auditKey(t, "other.example.org")
	for _, wrong := range []control.RotateAuditKeyInput{{Old: old}, {}, {Old: old, Next: old}, {Old: old, Next: other}, {Old: next, Next: old}, {Next: other}} {
		_, err = s.RotateAuditKey(s.ctx(), by(operator), wrong)
		requireInvalid(t, err, "key", "")
		require.Equal(t, before, s.dump())
	}
	_, err = s.RotateAuditKey(s.ctx(), by(publisher), control.RotateAuditKeyInput{Old: old, Next: next})
	require.ErrorIs(t, err, access.ErrDenied)
	answer, err := s.RotateAuditKey(s.ctx(), by(operator), control.RotateAuditKeyInput{Old: old, Next: next})
	require.NoError(t, err)
	require.Equal(t, next.Public(), answer.Key)
	require.NotContains(t, s.dump(), private)

	_, err = s.signer(old).Sign(s.ctx(), s.now)
	require.ErrorIs(t, err, audit.ErrOtherKey)
	s.publish(document, 1)
	last, err := s.signer(next).Sign(s.ctx(), s.now.Add(time.Minute))
	require.NoError(t, err)
	require.NotEqual(t, first, last)
	// The first public key is all that a verifier needs.
	var export bytes.Buffer
	require.NoError(t, s.ReadAudit(s.ctx(), auditor, func(r audit.Reader) error { return audit.Export(s.ctx(), r, &export) }))
	report, err := audit.Verify(&export, audit.VerifyConfig{Keys: []string{old.Public()}, Kept: [][]byte{first}})
	require.NoError(t, err)
	require.Equal(t, int64(3), report.Newest.Size)
}
