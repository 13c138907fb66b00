package control_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/seal"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/webhook"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/webhook/delivery"
)

const (
	hookURL   = "https://hooks.example.com/in?token=hunter2"
	onWebhook = "^webhook [a-z2-7]{26}$"
)

// webhooks is what a scene has for endpoints.
func (s *scene) webhooks() *control.WebhookConfig {
	s.Helper()
	box, err := seal.New(seal.NewKey())
	require.NoError(s, err)
	sender, err := webhook.NewSender(webhook.SenderConfig{})
	require.NoError(s, err)
	return &control.WebhookConfig{Box: box, CheckURL: sender.CheckURL, Changed: func() { s.hooks++ }}
}

// registered registers an endpoint of acme.
func registered(s *scene) {
	s.Helper()
	var err error
	s.hook, err = s.RegisterWebhook(s.ctx(), by(customer("acme")), control.RegisterWebhookInput{Tenant: "acme", URL: hookURL})
	require.NoError(s, err)
	s.hooks = 0
}

// onHook calls something on the endpoint of the scene, whose revision is off by so many.
func onHook(call func(*scene, control.Request, control.WebhookInput) (any, error), off uint64) func(*scene, control.Request) (any, error) {
	return func(s *scene, r control.Request) (any, error) {
		return call(s, r, control.WebhookInput{Tenant: "acme", ID: s.hook.ID, Expected: s.hook.Revision + off})
	}
}

func removeHook(s *scene, r control.Request, in control.WebhookInput) (any, error) {
	return s.RemoveWebhook(s.ctx(), r, in)
}

func rotateHook(s *scene, r control.Request, in control.WebhookInput) (any, error) {
	return s.RotateWebhook(s.ctx(), r, in)
}

func testHook(s *scene, r control.Request, in control.WebhookInput) (any, error) {
	return s.TestWebhook(s.ctx(), r, in)
}

func replayHook(s *scene, r control.Request, in control.WebhookInput) (any, error) {
	return s.ReplayWebhook(s.ctx(), r, control.ReplayWebhookInput{WebhookInput: in})
}

// in is the endpoint of the scene as it was seen last.
func (s *scene) in() control.WebhookInput {
	return control.WebhookInput{Tenant: s.hook.Tenant, ID: s.hook.ID, Expected: s.hook.Revision}
}

// signs says whether a message to the endpoint now is verified with a secret.
func (s *scene) signs(secret string) bool {
	s.Helper()
	to, err := s.WebhookEndpoint(s.ctx(), s.hook.ID)
	require.NoError(s, err)
	require.Equal(s, hookURL, to.URL)
	header := http.Header{}
	require.NoError(s, webhook.Sign(header, "msg_1", s.now, []byte("{}"), to.Secrets...))
	verifier, err := standardwebhooks.NewWebhook(secret)
	require.NoError(s, err)
	return verifier.VerifyIgnoringTimestamp([]byte("{}"), header) == nil
}

func TestWhileASecretRotatesMessagesHaveSignaturesWithBoth(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	registered(s)
	first := s.hook
	require.True(t, s.signs(first.Secret))
	second, err := s.RotateWebhook(s.ctx(), by(customer("acme")), s.in())
	require.NoError(t, err)
	require.NotEqual(t, first.Secret, second.Secret)
	require.Equal(t, s.now.Add(control.SecretOverlap), second.OverlapUntil)
	s.hook = second
	require.True(t, s.signs(first.Secret))
	require.True(t, s.signs(second.Secret))
	s.now = s.now.Add(control.SecretOverlap - time.Second)
	require.True(t, s.signs(first.Secret))
	third, err := s.RotateWebhook(s.ctx(), by(customer("acme")), s.in())
	require.NoError(t, err)
	require.False(t, s.signs(first.Secret))
	require.True(t, s.signs(second.Secret))
	s.now = s.now.Add(control.SecretOverlap)
	require.False(t, s.signs(second.Secret))
	require.True(t, s.signs(third.Secret))
	known, err := s.Webhook(s.ctx(), customer("acme"), "acme", s.hook.ID)
	require.NoError(t, err)
	require.Zero(t, known.OverlapUntil)
}

func TestNeitherTheDatabaseNorTheAuditLogHasASecretOrAURL(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	r := by(customer("acme"))
	r.Key = "key"
	in := control.RegisterWebhookInput{Tenant: "acme", URL: hookURL}
	first, err := s.RegisterWebhook(s.ctx(), r, in)
	require.NoError(t, err)
	again, err := s.RegisterWebhook(s.ctx(), r, in)
	require.NoError(t, err)
	require.Equal(t, first.ID, again.ID)
	require.Empty(t, again.Secret, "it is shown once")
	require.Empty(t, again.URL)
	s.hook = first
	rotated, err := s.RotateWebhook(s.ctx(), by(operator), s.in())
	require.NoError(t, err)
	dump := s.dump()
	for _, e := range s.entries() {
		text, err := json.Marshal(e)
		require.NoError(t, err)
		dump += string(text)
	}
	require.Contains(t, dump, "https://hooks.example.com/…", "the log says where to")
	for _, secret := range []string{first.Secret[6:], rotated.Secret[6:], "hunter2"} {
		require.NotContains(t, dump, secret)
	}
	// A copy of the database with another key: nothing but removing it is possible.
	other := newScene(t, control.Config{})
	stolen, err := control.New(control.Config{Store: s.db, Webhooks: other.webhooks()})
	require.NoError(t, err)
	_, err = stolen.WebhookEndpoint(s.ctx(), first.ID)
	require.ErrorIs(t, err, seal.ErrOtherKey)
	require.ErrorIs(t, stolen.CheckWebhookKey(s.ctx()), seal.ErrOtherKey)
	require.NoError(t, s.CheckWebhookKey(s.ctx()))
	found, err := stolen.Webhooks(s.ctx(), operator, "acme", "", 10)
	require.NoError(t, err)
	require.Empty(t, found[0].URL)
	_, err = stolen.RemoveWebhook(s.ctx(), by(operator), control.WebhookInput{Tenant: "acme", ID: first.ID, Expected: rotated.Revision})
	require.NoError(t, err)
}

func TestAnOperatorOfATenantHasTheEndpointsOfItsTenantAndNoOthers(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	registered(s)
	other := administrator
	other.Tenants = []string{"globex"}
	for _, actor := range []access.Actor{customer("globex"), other, viewer} {
		_, err := s.Webhooks(s.ctx(), actor, "acme", "", 10)
		require.ErrorIs(t, err, access.ErrDenied)
		_, err = s.FailedDeliveries(s.ctx(), actor, "acme", s.hook.ID, 10)
		require.ErrorIs(t, err, access.ErrDenied)
	}
	// By the name of a tenant of one's own, the endpoint of another one is not there.
	for _, call := range []func() error{
		func() error { _, err := s.Webhook(s.ctx(), customer("globex"), "globex", s.hook.ID); return err },
		func() error {
			_, err := s.FailedDeliveries(s.ctx(), customer("globex"), "globex", s.hook.ID, 1)
			return err
		},
		func() error {
			_, err := s.RotateWebhook(s.ctx(), by(customer("globex")), control.WebhookInput{Tenant: "globex", ID: s.hook.ID, Expected: s.hook.Revision})
			return err
		},
		func() error {
			_, err := s.RemoveWebhook(s.ctx(), by(customer("globex")), control.WebhookInput{Tenant: "globex", ID: s.hook.ID, Expected: s.hook.Revision})
			return err
		},
	} {
		require.ErrorIs(t, call(), control.ErrNotFound)
	}
	found, err := s.Webhooks(s.ctx(), operator, "acme", "", 10)
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, hookURL, found[0].URL)
	require.Equal(t, control.WebhookTypes(), found[0].Types)
}

func TestAnEndpointThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	for _, in := range []control.RegisterWebhookInput{
		{Tenant: "acme"},
		{Tenant: "acme", URL: "http://example.com/"},
		{Tenant: "acme", URL: "https://me:pw@example.com/"},
		{Tenant: "acme", URL: "https://example.com/", Types: []string{"ratelimit.policy.applied.v1"}},
		{Tenant: "acme", URL: "https://example.com/", Description: strings.Repeat("x", 257)},
	} {
		_, err := s.RegisterWebhook(s.ctx(), by(customer("acme")), in)
		require.ErrorIs(t, err, control.ErrInvalid)
		require.NotContains(t, err.Error(), "pw")
	}
	for range store.MaxWebhooks {
		registered(s)
	}
	_, err := s.RegisterWebhook(s.ctx(), by(customer("acme")), control.RegisterWebhookInput{Tenant: "acme", URL: hookURL})
	requireInvalid(t, err, "tenant", "remove one")
	_, err = s.ChangeWebhook(s.ctx(), by(operator), control.ChangeWebhookInput{WebhookInput: s.in()})
	require.ErrorIs(t, err, control.ErrInvalid, "nothing is changed")
	bare, err := control.New(control.Config{Store: s.db})
	require.NoError(t, err)
	_, err = bare.Webhooks(s.ctx(), operator, "acme", "", 1)
	require.ErrorIs(t, err, control.ErrNoRedis)
	_, err = bare.TestWebhook(s.ctx(), by(operator), s.in())
	require.ErrorIs(t, err, control.ErrNoRedis)
	_, err = control.New(control.Config{Store: s.db, Webhooks: &control.WebhookConfig{}})
	require.ErrorContains(t, err, "Config.Webhooks")
}

// Who has written the wrong address learns so before three days are over.
func TestAnEndpointSaysWhyWhatWaitsWasNotBrought(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	registered(s)
	_, err := s.TestWebhook(s.ctx(), by(customer("acme")), s.in())
	require.NoError(t, err)
	failing := func() string {
		t.Helper()
		known, err := s.Webhook(s.ctx(), customer("acme"), "acme", s.hook.ID)
		require.NoError(t, err)
		require.EqualValues(t, 1, known.Waiting)
		return known.Failing
	}
	require.Empty(t, failing(), "it was not tried yet")
	d := s.db.Deliveries()
	for _, attempt := range []struct {
		result webhook.Result
		want   string
	}{
		{webhook.Result{Outcome: webhook.Failed, Reason: webhook.ReasonURL}, "url"},
		{webhook.Result{Outcome: webhook.Failed, Reason: webhook.ReasonStatus, Status: 503}, "status 503"},
	} {
		due, err := d.Due(s.ctx(), s.now, time.Minute, 10, 10)
		require.NoError(t, err)
		require.Len(t, due, 1)
		r := due[0]
		r.Delivery = r.Delivery.After(attempt.result, s.now, 0)
		require.NoError(t, d.Done(s.ctx(), r))
		require.Equal(t, attempt.want, failing())
		s.now = s.now.Add(time.Hour)
	}
}

func TestWhatHasFailedIsListedAndReplayedUnderItsID(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	registered(s)
	sent, err := s.TestWebhook(s.ctx(), by(customer("acme")), s.in())
	require.NoError(t, err)
	d := s.db.Deliveries()
	fail := func() {
		t.Helper()
		due, err := d.Due(s.ctx(), s.now, time.Minute, 10, 10)
		require.NoError(t, err)
		require.Len(t, due, 1)
		r := due[0]
		r.Delivery.Attempts = webhook.MaxAttempts - 1
		r.Delivery = r.Delivery.After(webhook.Result{Outcome: webhook.Failed, Reason: webhook.ReasonStatus, Status: 500}, s.now, 0)
		require.NoError(t, d.Done(s.ctx(), r))
	}
	fail()
	failed, err := s.FailedDeliveries(s.ctx(), customer("acme"), "acme", s.hook.ID, 10)
	require.NoError(t, err)
	require.Equal(t, []control.FailedDelivery{{
		Message: sent.Message, Type: "ratelimit.webhook.test.v1", Attempts: webhook.MaxAttempts, Failed: s.now, Reason: "status", Status: 500,
	}}, failed)
	known, err := s.Webhook(s.ctx(), customer("acme"), "acme", s.hook.ID)
	require.NoError(t, err)
	require.Equal(t, []int64{0, 1}, []int64{known.Waiting, known.Dead})
	_, err = s.ReplayWebhook(s.ctx(), by(customer("acme")), control.ReplayWebhookInput{WebhookInput: s.in(), Messages: []string{"msg_other"}})
	require.ErrorIs(t, err, control.ErrNotFound)
	s.hooks = 0
	done, err := s.ReplayWebhook(s.ctx(), by(customer("acme")), control.ReplayWebhookInput{WebhookInput: s.in(), Messages: []string{sent.Message}})
	require.NoError(t, err)
	require.Equal(t, 1, done.Replayed)
	require.Equal(t, 1, s.hooks, "who brings it is told")
	fail()
}

func TestAnEndpointThatIsGoneIsSwitchedOffAndTheLogSaysSo(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	registered(s)
	before := len(s.entries())
	for range 2 {
		require.NoError(t, s.WebhookGone(s.ctx(), s.hook.ID))
	}
	entries := s.entries()
	require.Len(t, entries, before+1, "once")
	e := entries[before]
	require.Equal(t, []string{"webhook.disable", "acme", "webhook " + s.hook.ID, "system"}, []string{e.Action, e.Tenant, e.Target, e.Actor.Method})
	require.Contains(t, string(e.After), `"disabled":"gone"`)
	known, err := s.Webhook(s.ctx(), customer("acme"), "acme", s.hook.ID)
	require.NoError(t, err)
	require.Equal(t, "gone", known.Disabled)
	_, err = s.TestWebhook(s.ctx(), by(operator), s.in())
	require.ErrorIs(t, err, store.ErrConflict, "it was seen otherwise")
	on := true
	in := control.WebhookInput{Tenant: "acme", ID: s.hook.ID, Expected: known.Revision}
	_, err = s.TestWebhook(s.ctx(), by(operator), in)
	requireInvalid(t, err, "id", "switched off")
	back, err := s.ChangeWebhook(s.ctx(), by(customer("acme")), control.ChangeWebhookInput{WebhookInput: in, Enabled: &on})
	require.NoError(t, err)
	require.Empty(t, back.Disabled)
	require.NoError(t, s.WebhookGone(context.Background(), "nobody"))
	err = s.db.Change(s.ctx(), func(tx *store.Tx) error { return tx.PutDelivery(delivery.Record{Endpoint: "nobody"}) })
	require.ErrorIs(t, err, store.ErrNoWebhook)
}
