package webhook_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/event/webhook"
)

func ExampleVerifier() {
	secret, err := webhook.ParseSecret(os.Getenv("WEBHOOK_SECRET"))
	if err != nil {
		secret = webhook.NewSecret() // In an example only.
	}
	verifier := webhook.Verifier{Secrets: []webhook.Secret{secret}}
	receive := func(w http.ResponseWriter, r *http.Request) {
		id, body, err := verifier.Read(r)
		if err != nil {
			http.Error(w, "not signed", http.StatusUnauthorized)
			return
		}
		fmt.Println(id, string(body)) // Put it where it is worked on later, once for each id.
		w.WriteHeader(http.StatusNoContent)
	}

	body := `{"type":"ratelimit.decision.refused.v1"}`
	signed := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	if err := webhook.Sign(signed.Header, "msg_1", time.Now(), []byte(body), secret); err != nil {
		fmt.Println(err)
	}
	receive(httptest.NewRecorder(), signed)
	forged := httptest.NewRecorder()
	receive(forged, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)))
	fmt.Println(forged.Code)
	// Output:
	// msg_1 {"type":"ratelimit.decision.refused.v1"}
	// 401
}

func ExampleSender() {
	send := func(ctx context.Context, url, id string, secret webhook.Secret, body []byte) error {
		sender, err := webhook.NewSender(webhook.SenderConfig{})
		if err != nil {
			return err
		}
		result := sender.Send(ctx, webhook.Endpoint{URL: url, Secrets: []webhook.Secret{secret}}, webhook.Message{ID: id, Body: body})
		fmt.Println(result.Outcome, result.Reason)
		return nil
	}
	if err := send(context.Background(), "https://169.254.169.254/latest/meta-data", "msg_1", webhook.NewSecret(), []byte("{}")); err != nil {
		fmt.Println(err)
	}
	// Output: failed url
}

func ExampleSenderConfig() {
	cfg := webhook.SenderConfig{
		AllowNetworks: []netip.Prefix{netip.MustParsePrefix("10.20.0.0/16")},
		AllowPlain:    []string{"hooks.internal"}, // without TLS
	}
	sender, err := webhook.NewSender(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(sender.CheckURL("http://hooks.internal/a"), sender.CheckURL("http://elsewhere.internal/a") != nil)
	// Output: <nil> true
}

func ExampleDelivery() {
	ctx, now, message := context.Background(), time.Now(), webhook.Message{ID: "msg_1", Body: []byte("{}")}
	endpoint := webhook.Endpoint{URL: "https://10.0.0.1/", Secrets: []webhook.Secret{webhook.NewSecret()}}
	sender, err := webhook.NewSender(webhook.SenderConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	d := webhook.Begin(message, now)
	d = d.After(sender.Send(ctx, endpoint, d.Message), time.Now(), rand.Float64())
	fmt.Println(d.State, d.Attempts, d.Reason)
	// Output: waiting 1 url
}
