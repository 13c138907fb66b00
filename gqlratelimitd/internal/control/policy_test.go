package control_test

import (
	"crypto/ed25519"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// less is document with less of a limit, and more one with more of it.
var (
	less = strings.Replace(document, "1000,", "10,", 1)
	more = strings.Replace(document, "1000,", "2000,", 1)
)

// tryPublish publishes if it is allowed.
func (s *scene) tryPublish(who access.Actor, document string, expected uint64) (*control.Published, error) {
	s.Helper()
	return s.Publish(s.ctx(), by(who), control.PublishInput{Document: []byte(document), Expected: expected})
}

func TestOnePersonPublishesLowersAndReverts(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	for expected, document := range []string{document, less, more} {
		_, err := s.tryPublish(administrator, document, uint64(expected))
		require.NoError(t, err)
	}
	// Further back than to the revision before.
	reverted, err := s.Revert(s.ctx(), by(administrator), control.RevertInput{To: 1, Expected: 3})
	require.NoError(t, err)
	require.Equal(t, uint64(4), reverted.Number)
	newest, err := s.Policy(s.ctx(), administrator, 0)
	require.NoError(t, err)
	require.Equal(t, document, string(newest.Document))
}

func TestADocumentThatDoesNotCompileIsRefusedWithAllOfItsMistakes(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	before := s.dump()
	for _, document := range []string{"", "version: 1\ndefault: none\ntiers: {free: {limits: {minute: {capacity: 0, per: fortnight}}}}\n", strings.Repeat("#", tiers.DefaultMaxDocument+1)} {
		_, err := s.Publish(s.ctx(), by(administrator), control.PublishInput{Document: []byte(document)})
		requireInvalid(t, err, "document", "")
		var wrong *tiers.PolicyError
		require.ErrorAs(t, err, &wrong)
		_, err = s.Lint(s.ctx(), viewer, []byte(document))
		requireInvalid(t, err, "document", "")
		require.Equal(t, before, s.dump())
	}
	_, err := s.Publish(s.ctx(), by(administrator), control.PublishInput{Document: []byte(document), Expected: policy.MaxNumber})
	requireInvalid(t, err, "expected revision", "no revision has a number above")
}

func TestWhatIsPublishedIsWhatAnInstanceServes(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	// The tier holds more than an operation may cost: it is odd, and holds.
	odd := "version: 1\ndefault: free\ntiers: {free: {maxCost: 100, limits: {minute: {capacity: 10, per: minute}}}}\n"
	answer, err := s.Publish(s.ctx(), by(administrator), control.PublishInput{Document: []byte(odd)})
	require.NoError(t, err)
	require.Len(t, answer.Warnings, 1)
	warnings, err := s.Lint(s.ctx(), viewer, []byte(odd))
	require.NoError(t, err)
	require.Equal(t, answer.Warnings, warnings)

	r, err := s.Policy(s.ctx(), viewer, 0)
	require.NoError(t, err)
	require.Equal(t, &policy.Revision{
		Number: 1, Document: []byte(odd), Hash: policy.HashOf([]byte(odd)), Author: "ada (https://login.example.org)", Reason: "why",
		Published: s.now.Truncate(time.Millisecond), Signature: r.Signature,
	}, r)
	_, err = r.Load()
	require.NoError(t, err)
	list, err := s.Policies(s.ctx(), viewer, 0, 10)
	require.NoError(t, err)
	answer.Warnings = nil
	require.Equal(t, []control.Published{*answer}, list)
	_, err = s.Policy(s.ctx(), viewer, 2)
	require.ErrorIs(t, err, control.ErrNotFound)
	_, err = s.Policy(s.ctx(), customer("acme"), 0)
	require.ErrorIs(t, err, access.ErrDenied)
	_, err = s.Policies(s.ctx(), customer("acme"), 0, 1)
	require.ErrorIs(t, err, access.ErrDenied)
	_, err = s.Lint(s.ctx(), customer("acme"), []byte(odd))
	require.ErrorIs(t, err, access.ErrDenied)
}

func TestARevertIsANewRevisionOfOldBytes(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	s.publish(document, 0)
	s.publish(strings.Replace(document, "1000,", "2000,", 1), 1)
	answer, err := s.Revert(s.ctx(), by(operator), control.RevertInput{To: 1, Expected: 2})
	require.NoError(t, err)
	require.Equal(t, uint64(3), answer.Number)
	newest, err := s.Policy(s.ctx(), viewer, 0)
	require.NoError(t, err)
	require.Equal(t, document, string(newest.Document))
	for _, to := range []uint64{0, 4} {
		_, err = s.Revert(s.ctx(), by(operator), control.RevertInput{To: to, Expected: 3})
		require.ErrorIs(t, err, control.ErrNotFound)
	}
}

func TestWhereThereAreKeysNothingUnsignedIsPublished(t *testing.T) {
	t.Parallel()
	public, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	_, other, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	s := newScene(t, control.Config{Keys: []ed25519.PublicKey{public}})
	signed := func(key ed25519.PrivateKey, at time.Time, change func(r *policy.Revision)) *control.Signed {
		r := &policy.Revision{Number: 1, Hash: policy.HashOf([]byte(document)), Author: "ada of the keys", Reason: "why", Published: at}
		change(r)
		r.Sign(key)
		return &control.Signed{Author: "ada of the keys", Published: at, Signature: r.Signature}
	}
	same := func(*policy.Revision) {}
	before := s.dump()
	for name, in := range map[string]*control.Signed{
		"nobody":         nil,
		"another key":    signed(other, s.now, same),
		"another number": signed(private, s.now, func(r *policy.Revision) { r.Number = 2 }),
		"another reason": signed(private, s.now, func(r *policy.Revision) { r.Reason = "because" }),
		"other bytes":    signed(private, s.now, func(r *policy.Revision) { r.Hash = policy.HashOf(nil) }),
		"long ago":       signed(private, s.now.Add(-time.Hour), same),
		"to come":        signed(private, s.now.Add(time.Hour), same),
		"too short":      {Author: "ada", Published: s.now, Signature: []byte("short")},
	} {
		_, err := s.Publish(s.ctx(), by(administrator), control.PublishInput{Document: []byte(document), Signed: in})
		requireInvalid(t, err, "signature", "")
		require.Equal(t, before, s.dump(), name)
	}
	_, err = s.Publish(s.ctx(), by(administrator), control.PublishInput{Document: []byte(document), Signed: signed(private, s.now.Add(time.Minute), same)})
	require.NoError(t, err)
	r, err := s.Policy(s.ctx(), viewer, 1)
	require.NoError(t, err)
	require.NoError(t, r.Verify([]ed25519.PublicKey{public}))
	require.Equal(t, "ada of the keys", r.Author)
	// The log says who it was all the same.
	require.Equal(t, "ada", s.entries()[0].Actor.Subject)
	_, err = s.Revert(s.ctx(), by(operator), control.RevertInput{To: 1, Expected: 1})
	requireInvalid(t, err, "signature", "not signed")
}

func TestAConfigurationWithMistakesSaysThemAll(t *testing.T) {
	t.Parallel()
	_, err := control.New(control.Config{Parse: tiers.ParseConfig{MaxDocument: -1}, Keys: []ed25519.PublicKey{[]byte("short")}})
	for _, want := range []string{"Config.Store is nil", "MaxDocument is -1", "Keys[0] has 5 bytes"} {
		require.ErrorContains(t, err, want)
	}
}
