package clients_test

import (
	"net/http"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/event/webhook"
)

func TestWebhooksAreThoseOfTheLibraryOfStandardWebhooks(t *testing.T) {
	secret, now, body := webhook.NewSecret(), time.Now(), []byte(`{"type":"ratelimit.decision.refused.v1"}`)
	theirs, err := standardwebhooks.NewWebhook(secret.Reveal())
	require.NoError(t, err)

	header := http.Header{}
	require.NoError(t, webhook.Sign(header, "msg_1", now, body, webhook.NewSecret(), secret))
	require.NoError(t, theirs.Verify(body, header))
	require.Error(t, theirs.Verify(append(body, ' '), header))

	signature, err := theirs.Sign("msg_1", now, body)
	require.NoError(t, err)
	header.Set(webhook.HeaderSignature, signature)
	require.NoError(t, webhook.Verifier{Secrets: []webhook.Secret{secret}}.Verify(header, body, now))
}
