package webhook_test

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/webhook"
)

// names answers with the addresses of a name, the next list at each question, and the last one from then on.
type names struct {
	lists [][]string
	asked atomic.Int64
}

func (n *names) LookupNetIP(context.Context, string, string) (all []netip.Addr, err error) {
	i := min(int(n.asked.Add(1)), len(n.lists)) - 1
	for _, text := range n.lists[i] {
		all = append(all, netip.MustParseAddr(text))
	}
	return all, nil
}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// endpoint is a server with TLS on a loopback address, and the configuration of a sender that may reach it under the name example.com.
func endpoint(t *testing.T, handler http.HandlerFunc) (to webhook.Endpoint, cfg webhook.SenderConfig) {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	require.NoError(t, err)
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	return webhook.Endpoint{URL: "https://example.com:" + u.Port() + "/hook", Secrets: []webhook.Secret{webhook.NewSecret()}},
		webhook.SenderConfig{AllowNetworks: loopback, Ports: []uint16{uint16(port)}, RootCAs: roots, Resolver: &names{lists: [][]string{{"127.0.0.1"}}}}
}

func sender(t *testing.T, cfg webhook.SenderConfig) *webhook.Sender {
	t.Helper()
	s, err := webhook.NewSender(cfg)
	require.NoError(t, err)
	return s
}

var message = webhook.Message{ID: "msg_1", Body: []byte(`{"n":1}`)}

func TestAMessageArrivesSignedAndIsDeliveredWithAny2xx(t *testing.T) {
	var to webhook.Endpoint
	var cfg webhook.SenderConfig
	var ids []string
	to, cfg = endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		verifier, err := standardwebhooks.NewWebhook(to.Secrets[0].Reveal())
		if err != nil {
			t.Error(err)
		}
		id := r.Header.Get(standardwebhooks.HeaderWebhookID)
		body, err := io.ReadAll(r.Body)
		if err != nil || verifier.Verify(body, r.Header) != nil || string(body) != `{"n":1}` || r.Header.Get("Content-Type") != "application/cloudevents+json" {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		ids = append(ids, id)
		w.WriteHeader(299)
	})
	s := sender(t, cfg)
	for range 2 {
		require.Equal(t, webhook.Result{Outcome: webhook.Delivered, Status: 299}, s.Send(t.Context(), to, message))
	}
	require.Equal(t, []string{"msg_1", "msg_1"}, ids)
}

func TestAnAnswerSaysWhatBecomesOfAMessage(t *testing.T) {
	for status, want := range map[int]webhook.Outcome{
		301: webhook.Failed, 302: webhook.Failed, 304: webhook.Failed, 307: webhook.Failed, 308: webhook.Failed, 400: webhook.Failed, 404: webhook.Failed,
		410: webhook.Gone, 429: webhook.Slow, 500: webhook.Failed, 502: webhook.Slow, 503: webhook.Failed, 504: webhook.Slow,
	} {
		hits := 0
		to, cfg := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
			hits++
			w.Header().Set("Location", "/elsewhere")
			w.Header().Set("Retry-After", "90")
			w.WriteHeader(status)
		})
		r := sender(t, cfg).Send(t.Context(), to, message)
		require.Equal(t, want, r.Outcome, status)
		require.Equal(t, webhook.ReasonStatus, r.Reason, status)
		require.Equal(t, status, r.Status)
		require.Equal(t, 1, hits, "a redirect is not followed")
		if want != webhook.Gone {
			require.Equal(t, 90*time.Second, r.RetryAfter, status)
		}
	}
}

func TestRetryAfterIsBounded(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"999999999": webhook.MaxRetryAfter, "99999999999999999999": 0, "-5": 0, "soon": 0, "Fri, 01 Jan 2100 00:00:00 GMT": webhook.MaxRetryAfter,
		"Fri, 01 Jan 2010 00:00:00 GMT": 0,
	} {
		to, cfg := endpoint(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", text)
			w.WriteHeader(http.StatusTooManyRequests)
		})
		require.Equal(t, want, sender(t, cfg).Send(t.Context(), to, message).RetryAfter, text)
	}
}

func TestAnAddressThatIsNotPublicIsNeverReached(t *testing.T) {
	for _, address := range []string{
		"127.0.0.1", "::1", "0.0.0.0", "::", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.1.1", "169.254.169.254", "100.64.0.1", "100.100.100.200",
		"168.63.129.16", "192.0.0.192", "224.0.0.1", "240.0.0.1", "255.255.255.255", "198.18.0.1", "203.0.113.1", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1",
		"fec0::1", "::ffff:127.0.0.1", "::127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::169.254.169.254", "64:ff9b:1::1", "2002:7f00:1::", "2001:0:4136:e378:8000:63bf:3fff:fdd2",
		"2001:db8::1",
	} {
		to, cfg := endpoint(t, func(http.ResponseWriter, *http.Request) { t.Error("reached by " + address) })
		cfg.AllowNetworks = nil
		cfg.Resolver = &names{lists: [][]string{{address}}}
		r := sender(t, cfg).Send(t.Context(), to, message)
		require.Equal(t, webhook.ReasonURL, r.Reason, address)
		// As a literal, and beside a public one.
		literal := to
		literal.URL = "https://" + net.JoinHostPort(address, strconv.Itoa(int(cfg.Ports[0])))
		require.Equal(t, webhook.ReasonURL, sender(t, cfg).Send(t.Context(), literal, message).Reason, address)
		cfg.Resolver = &names{lists: [][]string{{"93.184.215.14", address}}}
		require.Equal(t, webhook.ReasonURL, sender(t, cfg).Send(t.Context(), to, message).Reason, address)
	}
}

// nameless is a resolver that finds nothing.
type nameless struct{ err error }

func (n nameless) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return nil, n.err
}

func TestATenantIsNotToldWhichNamesTheNetworkOfTheOperatorHas(t *testing.T) {
	to, cfg := endpoint(t, func(http.ResponseWriter, *http.Request) { t.Error("reached") })
	cfg.AllowNetworks = nil
	cfg.Resolver = &names{lists: [][]string{{"10.0.0.7"}}}
	inside := sender(t, cfg).Send(t.Context(), to, message).Reason
	for _, err := range []error{
		nil,
		&net.DNSError{Err: "no such host", Name: "db.internal", IsNotFound: true},
		&net.DNSError{Err: "server misbehaving", Name: "db.internal", IsTemporary: true},
		&net.DNSError{Err: "i/o timeout", Name: "db.internal", IsTimeout: true},
		fmt.Errorf("lookup: %w", context.DeadlineExceeded),
	} {
		cfg.Resolver = nameless{err}
		require.Equal(t, inside, sender(t, cfg).Send(t.Context(), to, message).Reason, "%v", err)
	}
}

func TestMetadataIsRefusedAlsoWhereItsNetworkIsAllowed(t *testing.T) {
	to, cfg := endpoint(t, func(http.ResponseWriter, *http.Request) { t.Error("reached") })
	cfg.AllowNetworks = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	for _, address := range []string{"169.254.169.254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "fd00:ec2::254", "168.63.129.16"} {
		cfg.Resolver = &names{lists: [][]string{{address}}}
		require.Equal(t, webhook.ReasonURL, sender(t, cfg).Send(t.Context(), to, message).Reason, address)
	}
}

func TestANameThatChangesItsAddressIsResolvedOnceAnAttempt(t *testing.T) {
	hits := 0
	to, cfg := endpoint(t, func(http.ResponseWriter, *http.Request) { hits++ })
	// The server stands at 127.0.0.1. The first answer may be reached and the second may not: who asked twice would be at the second.
	cfg.AllowNetworks = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	rebinding := &names{lists: [][]string{{"127.0.0.1"}, {"127.0.0.2"}}}
	cfg.Resolver = rebinding
	s := sender(t, cfg)
	require.Equal(t, webhook.Delivered, s.Send(t.Context(), to, message).Outcome)
	require.EqualValues(t, 1, rebinding.asked.Load())
	// It is resolved and vetted anew at each attempt, and no connection of the first one is used.
	require.Equal(t, webhook.ReasonURL, s.Send(t.Context(), to, message).Reason)
	require.Equal(t, 1, hits)
}

func TestOnlyTLSToAllowedPortsAndBelievedCertificates(t *testing.T) {
	to, cfg := endpoint(t, func(http.ResponseWriter, *http.Request) { t.Error("reached") })
	for _, text := range []string{
		"http://example.com/", "https://example.com/", "https://example.com:22/", "ftp://example.com/", "https://", "https:example.com", "//example.com/",
		"https://user:pw@example.com/", "https://example.com/#x", "https://[fe80::1%25eth0]/", "https://example.com:99999/", "https://example.com/" + strings.Repeat("x", 2048), "https://exa mple/",
	} {
		err := sender(t, cfg).CheckURL(text)
		require.Error(t, err, text)
		require.NotContains(t, err.Error(), "pw")
	}
	require.NoError(t, sender(t, cfg).CheckURL(to.URL))
	require.NoError(t, sender(t, webhook.SenderConfig{}).CheckURL("https://example.com/x?token=1"))
	require.NoError(t, sender(t, webhook.SenderConfig{AllowPlain: []string{"inside"}}).CheckURL("http://INSIDE/"))
	cfg.RootCAs = x509.NewCertPool()
	require.Equal(t, webhook.ReasonUnreachable, sender(t, cfg).Send(t.Context(), to, message).Reason)
}

func TestTheProxyOfTheEnvironmentIsIgnored(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	t.Setenv("ALL_PROXY", "http://127.0.0.1:1")
	to, cfg := endpoint(t, func(http.ResponseWriter, *http.Request) {})
	require.Equal(t, webhook.Delivered, sender(t, cfg).Send(t.Context(), to, message).Outcome)
}

func TestAnEndpointThatNeverAnswersEndsWithItsTime(t *testing.T) {
	hold := make(chan struct{})
	to, cfg := endpoint(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-hold
	})
	t.Cleanup(func() { close(hold) })
	cfg.Timeout = time.Second
	r := sender(t, cfg).Send(t.Context(), to, message)
	require.Equal(t, webhook.Failed, r.Outcome)
	require.Equal(t, webhook.ReasonTimeout, r.Reason)
}

func TestAnAnswerThatNeverEndsIsNotRead(t *testing.T) {
	left := make(chan struct{})
	to, cfg := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		defer close(left)
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	})
	require.Equal(t, webhook.Delivered, sender(t, cfg).Send(t.Context(), to, message).Outcome)
	<-left
}

func TestHeadersOfAnAnswerAreBounded(t *testing.T) {
	to, cfg := endpoint(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 64<<10)) })
	require.Equal(t, webhook.ReasonUnreachable, sender(t, cfg).Send(t.Context(), to, message).Reason)
}

func TestAMessageThatIsTooLargeOrUnsignedDoesNotLeave(t *testing.T) {
	to, cfg := endpoint(t, func(http.ResponseWriter, *http.Request) { t.Error("reached") })
	s := sender(t, cfg)
	require.Equal(t, webhook.Refused, s.Send(t.Context(), to, webhook.Message{ID: "a", Body: make([]byte, webhook.MaxBody+1)}).Outcome)
	require.Equal(t, webhook.Refused, s.Send(t.Context(), to, webhook.Message{ID: "a.b"}).Outcome)
	to.Secrets = nil
	require.Equal(t, webhook.Refused, s.Send(t.Context(), to, message).Outcome)
}

func TestEveryMistakeOfASenderIsSaidAtOnce(t *testing.T) {
	_, err := webhook.NewSender(webhook.SenderConfig{
		AllowNetworks: make([]netip.Prefix, 1), AllowPlain: []string{"http://X"}, Ports: []uint16{0}, Timeout: time.Hour, UserAgent: "a\nb",
	})
	for _, field := range []string{"AllowNetworks[0]", "AllowPlain", "Ports", "Timeout", "UserAgent"} {
		require.ErrorContains(t, err, field)
	}
}
