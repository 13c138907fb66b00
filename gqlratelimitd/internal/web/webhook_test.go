package web_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/seal"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/web"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/webhook"
)

const (
	hooks    = "/v1/orgs/acme/ratelimit/webhooks"
	hookHere = `{"url": "https://hooks.example.com/in"}`
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

// hook is an endpoint as it is answered.
type hook struct {
	ID, URL, Secret, Disabled string
	Revision                  uint64
	Types                     []string
}

// hooked registers an endpoint of acme, and returns its id. Its revision is 1 in a scene in which nothing else has changed.
func hooked(s *scene) string {
	s.Helper()
	var made hook
	s.read(s.want(http.StatusCreated, s.ask(http.MethodPost, hooks, s.admin, because(), hookHere)), &made)
	return made.ID
}

// webhookGoods are requests of who may do something about endpoints.
func webhookGoods() map[string]map[access.Action]good {
	const list, one = "/v1/orgs/{org}/ratelimit/webhooks", "/v1/orgs/{org}/ratelimit/webhooks/{id}"
	at := func(action access.Action, status int, more, body string) map[access.Action]good {
		g := good{path: hooks + "/{id}" + more, status: status, h: on(`"1"`), body: body, before: hooked}
		if action == access.ReadWebhook {
			g.h = nil
		}
		return map[access.Action]good{action: g}
	}
	return map[string]map[access.Action]good{
		"GET " + list:              {access.ReadWebhook: {status: 200, path: hooks}},
		"POST " + list:             {access.RegisterWebhook: {status: 201, path: hooks, h: because(), body: hookHere}},
		"GET " + one:               at(access.ReadWebhook, 200, "", ""),
		"PATCH " + one:             at(access.ChangeWebhook, 200, "", `{"description": "ours"}`),
		"DELETE " + one:            at(access.RemoveWebhook, 200, "", ""),
		"POST " + one + "/secret":  at(access.RotateWebhook, 200, "/secret", ""),
		"POST " + one + "/test":    at(access.TestWebhook, 202, "/test", ""),
		"GET " + one + "/failures": at(access.ReadWebhook, 200, "/failures", ""),
		"POST " + one + "/replay":  at(access.ReplayWebhook, 202, "/replay", "{}"),
	}
}

// webhookAttempts are those of endpoints.
func (s *scene) webhookAttempts() (all []attempt) {
	const list, one = "/v1/orgs/{org}/ratelimit/webhooks", "/v1/orgs/{org}/ratelimit/webhooks/{id}"
	var made hook
	s.read(s.want(http.StatusCreated, s.ask(http.MethodPost, hooks, s.admin, because(), hookHere)), &made)
	here, now := hooks+"/"+made.ID, `"`+jsonOf(made.Revision)+`"`
	hugeJSON := `"` + strings.Repeat("x", web.MaxJSON) + `"`
	all = []attempt{
		{status: 200, route: "GET " + list, path: hooks},
		{status: 400, route: "GET " + list, path: hooks + "?nothing=1"},
		{status: 201, route: "POST " + list, path: hooks, h: because(), body: hookHere},
		{status: 400, route: "POST " + list, path: hooks, h: because(), body: `{"uri": "x"}`},
		{status: 413, route: "POST " + list, path: hooks, h: because(), body: hugeJSON},
		{status: 422, route: "POST " + list, path: hooks, h: because(), body: `{"url": "http://example.com/"}`},
		{status: 200, route: "GET " + one, path: here},
		{status: 400, route: "GET " + one, path: here + "?nothing=1"},
		{status: 404, route: "GET " + one, path: hooks + "/nobody"},
		{status: 200, route: "GET " + one + "/failures", path: here + "/failures"},
		{status: 400, route: "GET " + one + "/failures", path: here + "/failures?nothing=1"},
		{status: 404, route: "GET " + one + "/failures", path: hooks + "/nobody/failures"},
	}
	// changes are in an order in which the last one leaves another revision behind.
	for _, change := range []struct {
		route, more, body string
		status            int
	}{
		{"POST " + one + "/test", "/test", "", 202},
		{"POST " + one + "/replay", "/replay", "{}", 202},
		{"POST " + one + "/secret", "/secret", "", 200},
	} {
		all = append(all, refusals(change.route, hooks, here, change.more, now, change.body)...)
		all = append(all, attempt{status: change.status, route: change.route, path: here + change.more, h: on(now), body: change.body})
	}
	all = append(all, attempt{status: 413, route: "POST " + one + "/replay", path: here + "/replay", h: on(now), body: hugeJSON})
	// The secret has another revision now: that of the endpoint that was registered beside, and its own.
	then := `"` + jsonOf(made.Revision+2) + `"`
	all = append(all, refusals("PATCH "+one, hooks, here, "", then, `{"description": "x"}`)...)
	all = append(all, attempt{status: 413, route: "PATCH " + one, path: here, h: on(then), body: hugeJSON})
	all = append(all, refusals("DELETE "+one, hooks, here, "", then, "")...)
	return append(all,
		attempt{status: 200, route: "PATCH " + one, path: here, h: on(then), body: `{"enabled": false}`},
		attempt{status: 200, route: "DELETE " + one, path: here, h: on(`"` + jsonOf(made.Revision+3) + `"`)},
	)
}

func jsonOf(n uint64) string {
	text, _ := json.Marshal(n)
	return string(text)
}

// refusals are those that all changes of an endpoint have.
func refusals(route, list, here, more, now, body string) []attempt {
	return []attempt{
		{status: 400, route: route, path: here + more + "?nothing=1", h: on(now), body: body},
		{status: 404, route: route, path: list + "/nobody" + more, h: on(now), body: body},
		{status: 412, route: route, path: here + more, h: on(`"999"`), body: body},
		{status: 422, route: route, path: here + more, h: header{"If-Match": now}, body: body},
		{status: 428, route: route, path: here + more, h: because(), body: body},
	}
}

func TestAnOperatorIsShownTheSecretOfAnEndpointOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t, plenty).start()
	_, token := s.issue(s.admin, "carl", []string{"acme"}, access.Operator)
	var made, again, read, rotated hook
	s.read(s.want(201, s.ask(http.MethodPost, hooks, token, because("Idempotency-Key", "k"), hookHere)), &made)
	require.True(t, strings.HasPrefix(made.Secret, "whsec_"))
	s.read(s.want(201, s.ask(http.MethodPost, hooks, token, because("Idempotency-Key", "k"), hookHere)), &again)
	require.Equal(t, []string{made.ID, "", ""}, []string{again.ID, again.Secret, again.URL})
	a := s.want(200, s.ask(http.MethodGet, hooks+"/"+made.ID, token, nil, ""))
	s.read(a, &read)
	require.Equal(t, []string{"https://hooks.example.com/in", ""}, []string{read.URL, read.Secret})
	require.Equal(t, control.WebhookTypes(), read.Types)
	s.read(s.want(200, s.ask(http.MethodPost, hooks+"/"+made.ID+"/secret", token, on(a.Header.Get("ETag")), "")), &rotated)
	require.NotEqual(t, made.Secret, rotated.Secret)
	s.problem(403, s.ask(http.MethodGet, "/v1/orgs/globex/ratelimit/webhooks", token, nil, ""))
	alone := newSceneOf(t, plenty, false).start()
	alone.problem(503, alone.ask(http.MethodGet, hooks, alone.admin, nil, ""))
}
