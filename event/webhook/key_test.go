package webhook_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/event/webhook"
)

// verifiedBySpec reads a message as the text of Standard Webhooks 1.0.0 says, with nothing of this package: a list of signatures with spaces between, of which
// those of version v1a are Ed25519 of id.timestamp.body, and a public key that is base64 behind whpk_.
func verifiedBySpec(t *testing.T, public string, header http.Header, body string) bool {
	t.Helper()
	require.Equal(t, "whpk_", public[:5])
	key, err := base64.StdEncoding.DecodeString(public[5:])
	require.NoError(t, err)
	require.Len(t, key, 32)
	content := header.Get("webhook-id") + "." + header.Get("webhook-timestamp") + "." + body
	for _, one := range strings.Split(header.Get("webhook-signature"), " ") {
		if parts := strings.SplitN(one, ",", 2); parts[0] == "v1a" {
			signature, err := base64.StdEncoding.DecodeString(parts[1])
			require.NoError(t, err)
			return ed25519.Verify(key, []byte(content), signature)
		}
	}
	return false
}

func TestASignatureWithAKeyIsThatOfStandardWebhooks(t *testing.T) {
	key, secret, now, header := webhook.NewPrivateKey(), webhook.NewSecret(), time.Now(), http.Header{}
	require.NoError(t, webhook.Sign(header, "msg_1", now, []byte(vectorBody), key, secret))
	require.True(t, verifiedBySpec(t, key.Public().String(), header, vectorBody))
	require.False(t, verifiedBySpec(t, key.Public().String(), header, vectorBody+" "))
	require.False(t, verifiedBySpec(t, webhook.NewPrivateKey().Public().String(), header, vectorBody))
	verify := func(v webhook.Verifier, body string) error { return v.Verify(header, []byte(body), now) }
	require.NoError(t, verify(webhook.Verifier{Keys: []webhook.PublicKey{{}, key.Public()}}, vectorBody))
	require.NoError(t, verify(webhook.Verifier{Secrets: []webhook.Secret{secret}}, vectorBody), "either is enough")
	require.ErrorIs(t, verify(webhook.Verifier{Keys: []webhook.PublicKey{key.Public()}}, vectorBody+" "), webhook.ErrSignature)
	require.ErrorIs(t, verify(webhook.Verifier{Keys: []webhook.PublicKey{webhook.NewPrivateKey().Public()}}, vectorBody), webhook.ErrSignature)
	require.ErrorIs(t, webhook.Verifier{Keys: []webhook.PublicKey{key.Public()}}.Verify(header, []byte(vectorBody), now.Add(time.Hour)), webhook.ErrTime)
	require.Error(t, webhook.Sign(header, "msg_1", now, nil, webhook.PrivateKey{}))
}

func TestWhatIsSentIsSignedWithKeysAndSecrets(t *testing.T) {
	to, cfg := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X", "")
		w.WriteHeader(map[bool]int{true: 204, false: 401}[strings.HasPrefix(r.Header.Get("Webhook-Signature"), "v1a,") && strings.Contains(r.Header.Get("Webhook-Signature"), " v1,")])
	})
	to.Keys = []webhook.PrivateKey{webhook.NewPrivateKey()}
	require.Equal(t, webhook.Delivered, sender(t, cfg).Send(t.Context(), to, message).Outcome)
}

func TestAPrivateKeyIsShownByRevealAlone(t *testing.T) {
	key := webhook.NewPrivateKey()
	again, err := webhook.ParsePrivateKey(key.Reveal())
	require.NoError(t, err)
	require.Equal(t, key.Public(), again.Public())
	written, err := json.Marshal(map[string]any{"k": key})
	require.NoError(t, err)
	out := bytes.NewBuffer(written)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
		fmt.Fprintf(out, verb+verb, key, struct{ K webhook.PrivateKey }{key})
	}
	require.NotContains(t, out.String(), key.Reveal()[5:20])
	read, err := webhook.ParsePublicKey(key.Public().String())
	require.NoError(t, err)
	require.Equal(t, key.Public(), read)
}

func TestKeysThatAreNoneAreRefused(t *testing.T) {
	seed := base64.StdEncoding.EncodeToString(make([]byte, 32))
	of32, err := webhook.ParsePrivateKey("whsk_" + seed)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(of32.Reveal(), "whsk_"+seed[:40]))
	other := base64.StdEncoding.EncodeToString(make([]byte, 64))
	for _, text := range []string{"", seed, "whsk_", "whsk_AAAA", "whsk_" + seed[1:], "whsk_" + other, "whpk_" + seed} {
		_, err := webhook.ParsePrivateKey(text)
		require.Error(t, err, text)
		require.NotContains(t, err.Error(), "AAAA")
	}
	for _, text := range []string{"", seed, "whpk_", "whpk_AAAA", "whsk_" + seed} {
		_, err := webhook.ParsePublicKey(text)
		require.Error(t, err, text)
	}
}
