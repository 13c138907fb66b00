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

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/event/webhook"
)

// What the libraries of Standard Webhooks (libraries/go/webhook_test.go of 2025-07-11) expect of a signature.
const (
	vectorSecret    = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" // #nosec G101 -- it is published.
	vectorID        = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	vectorSeconds   = 1614265330
	vectorBody      = `{"test": 2432232314}`
	vectorSignature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	otherSignature  = "v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc="
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

func TestAVerifierTakesWhatStandardWebhooksTakesAndNothingElse(t *testing.T) {
	now := time.Unix(vectorSeconds, 0)
	for name, test := range map[string]struct {
		change func(http.Header)
		body   string
		at     time.Time
		want   error
	}{
		"as signed":                       {},
		"without an id":                   {change: func(h http.Header) { h.Del("webhook-id") }, want: webhook.ErrSignature},
		"with two ids":                    {change: func(h http.Header) { h.Add("webhook-id", vectorID) }, want: webhook.ErrSignature},
		"without a time":                  {change: func(h http.Header) { h.Del("webhook-timestamp") }, want: webhook.ErrSignature},
		"with another time":               {change: func(h http.Header) { h.Set("webhook-timestamp", "1614265331") }, want: webhook.ErrSignature},
		"with a time written otherwise":   {change: func(h http.Header) { h.Set("webhook-timestamp", "+1614265330") }, want: webhook.ErrSignature},
		"without a signature":             {change: func(h http.Header) { h.Del("webhook-signature") }, want: webhook.ErrSignature},
		"with another signature":          {change: func(h http.Header) { h.Set("webhook-signature", otherSignature) }, want: webhook.ErrSignature},
		"with half a signature":           {change: func(h http.Header) { h.Set("webhook-signature", "v1,") }, want: webhook.ErrSignature},
		"with the signature as version 2": {change: func(h http.Header) { h.Set("webhook-signature", "v2"+vectorSignature[2:]) }, want: webhook.ErrSignature},
		"with another body":               {body: vectorBody + " ", want: webhook.ErrSignature},
		"among other signatures": {change: func(h http.Header) {
			h.Set("webhook-signature", strings.Join([]string{otherSignature, "v2" + otherSignature[2:], "junk", vectorSignature, otherSignature}, " "))
		}},
		"at the end of its time":       {at: now.Add(5 * time.Minute)},
		"after its time":               {at: now.Add(5*time.Minute + 1), want: webhook.ErrTime},
		"by a clock that is ahead":     {at: now.Add(-5 * time.Minute)},
		"by one that is too far ahead": {at: now.Add(-5*time.Minute - 1), want: webhook.ErrTime},
	} {
		t.Run(name, func(t *testing.T) {
			header := http.Header{}
			secret := parsed(t, vectorSecret)
			require.NoError(t, webhook.Sign(header, vectorID, now, []byte(vectorBody), secret))
			if test.change != nil {
				test.change(header)
			}
			body, at := vectorBody, now
			if test.body != "" {
				body = test.body
			}
			if !test.at.IsZero() {
				at = test.at
			}
			err := webhook.Verifier{Secrets: []webhook.Secret{secret}}.Verify(header, []byte(body), at)
			require.ErrorIs(t, err, test.want)
		})
	}
}

func TestWhileASecretIsChangedBothVerify(t *testing.T) {
	old, young := webhook.NewSecret(), webhook.NewSecret()
	header := http.Header{}
	now := time.Now()
	require.NoError(t, webhook.Sign(header, "msg_1", now, []byte("{}"), old, young))
	for _, s := range []webhook.Secret{old, young} {
		require.NoError(t, webhook.Verifier{Secrets: []webhook.Secret{s}}.Verify(header, []byte("{}"), now))
	}
	require.ErrorIs(t, webhook.Verifier{Secrets: []webhook.Secret{webhook.NewSecret()}}.Verify(header, []byte("{}"), now), webhook.ErrSignature)
	require.ErrorIs(t, webhook.Verifier{}.Verify(header, []byte("{}"), now), webhook.ErrSignature)
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
