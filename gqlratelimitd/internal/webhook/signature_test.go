package webhook_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/webhook"
)

// What the libraries of Standard Webhooks (libraries/go/webhook_test.go of 2025-07-11) expect of a signature.
const (
	vectorSecret    = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" // #nosec G101 -- it is published.
	vectorID        = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	vectorSeconds   = 1614265330
	vectorBody      = `{"test": 2432232314}`
	vectorSignature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
)

func parsed(t *testing.T, text string) webhook.Secret {
	t.Helper()
	s, err := webhook.ParseSecret(text)
	require.NoError(t, err)
	return s
}

func TestASignatureIsThatOfStandardWebhooks(t *testing.T) {
	header := http.Header{}
	require.NoError(t, webhook.Sign(header, vectorID, time.Unix(vectorSeconds, 0), []byte(vectorBody), parsed(t, vectorSecret)))
	require.Equal(t, vectorSignature, header.Get("webhook-signature"))
	require.Equal(t, fmt.Sprint(vectorSeconds), header.Get("webhook-timestamp"))
	require.Equal(t, vectorID, header.Get("webhook-id"))
}

func TestWhileASecretIsChangedBothVerify(t *testing.T) {
	old, young := webhook.NewSecret(), webhook.NewSecret()
	header := http.Header{}
	require.NoError(t, webhook.Sign(header, "msg_1", time.Now(), []byte("{}"), old, young))
	verify := func(secret webhook.Secret, body string) error {
		verifier, err := standardwebhooks.NewWebhook(secret.Reveal())
		require.NoError(t, err)
		return verifier.Verify([]byte(body), header)
	}
	for _, s := range []webhook.Secret{old, young} {
		require.NoError(t, verify(s, "{}"))
		require.Error(t, verify(s, "{ }"))
	}
	require.Error(t, verify(webhook.NewSecret(), "{}"))
}

func TestAnIDWithADotIsNoneBecauseDotsStandBetweenWhatIsSigned(t *testing.T) {
	for _, id := range []string{"", "msg.1", "msg 1", "msg\n1", strings.Repeat("x", 129)} {
		require.ErrorContains(t, webhook.Sign(http.Header{}, id, time.Now(), nil, webhook.NewSecret()), "write 1 to 128 characters")
	}
	require.Error(t, webhook.Sign(http.Header{}, "msg_1", time.Now(), nil))
	require.Error(t, webhook.Sign(http.Header{}, "msg_1", time.Now(), nil, webhook.Secret{}))
}

func TestASecretIsShownByRevealAlone(t *testing.T) {
	secret := webhook.NewSecret()
	text := secret.Reveal()
	require.Equal(t, secret, parsed(t, text))
	var out bytes.Buffer
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "secret", secret, "in", struct{ S webhook.Secret }{secret})
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, verb+verb, secret, struct{ S webhook.Secret }{secret})
	}
	written, err := json.Marshal(map[string]any{"s": secret})
	require.NoError(t, err)
	out.Write(written)
	require.Contains(t, out.String(), "[hidden]")
	require.NotContains(t, out.String(), strings.TrimPrefix(text, "whsec_"))
}

func TestASecretHas24To64Bytes(t *testing.T) {
	for _, text := range []string{"", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS", "whsec_AAAA", "whsec_" + strings.Repeat("AAAA", 22)} {
		_, err := webhook.ParseSecret(text)
		require.Error(t, err, text)
		if len(text) > 10 {
			require.NotContains(t, err.Error(), text[6:])
		}
	}
}
