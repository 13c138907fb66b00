package graph_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/event/webhook"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/seal"
)

// webhooks is what endpoints take.
func webhooks(t *testing.T) *control.WebhookConfig {
	t.Helper()
	box, err := seal.New(seal.NewKey())
	require.NoError(t, err)
	sender, err := webhook.NewSender(webhook.SenderConfig{})
	require.NoError(t, err)
	return &control.WebhookConfig{Box: box, CheckURL: sender.CheckURL, Changed: func() {}}
}

// onHook is the input of a change of the endpoint of the scene.
func (s *scene) onHook(also map[string]any) map[string]any {
	in := map[string]any{"tenant": "acme", "id": s.hook.ID, "expectedRevision": s.hook.Revision}
	maps.Copy(in, also)
	return in
}

// of names the endpoint of the scene in a query.
func (s *scene) of(query string) string { return strings.ReplaceAll(query, "HOOK", s.hook.ID) }

func TestASecretOfAnEndpointIsToldOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	ask := func(mutation string) map[string]any {
		a := s.ask("tenant-admin", mutation, nil)
		require.Empty(t, a.Errors, a.Body)
		return a.Data["answer"].(map[string]any)
	}
	const register = `mutation { answer: registerWebhook(input: {tenant: "acme", url: "https://example.com/x", reason: "why", idempotencyKey: "k"}) { secret webhook { id url revision } } }`
	first, again := ask(register), ask(register)
	require.True(t, strings.HasPrefix(first["secret"].(string), "whsec_"))
	require.Nil(t, again["secret"])
	require.Equal(t, first["webhook"].(map[string]any)["id"], again["webhook"].(map[string]any)["id"])
	list := s.ask("everything", `{ webhooks(tenant: "acme") { nodes { id url types waiting dead } } audit(first: 100) { nodes { record } } }`, nil)
	require.Empty(t, list.Errors, list.Body)
	require.Equal(t, "https://example.com/x", hookNamed(list, first["webhook"].(map[string]any)["id"])["url"])
	require.NotContains(t, list.Body, first["secret"])
	require.Equal(t, "NOT_FOUND", s.ask("another-admin", s.of(`{ failedDeliveries(tenant: "other", id: "HOOK") { message } }`), nil).code())
	require.Equal(t, "INVALID", s.ask("operator", `mutation { registerWebhook(input: {tenant: "acme", url: "http://example.com/", reason: "why"}) { secret } }`, nil).code())
}

// hookNamed is an endpoint of a list.
func hookNamed(a *answer, id any) map[string]any {
	for _, node := range a.Data["webhooks"].(map[string]any)["nodes"].([]any) {
		if hook := node.(map[string]any); hook["id"] == id {
			return hook
		}
	}
	return nil
}
