package access_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
)

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "The CA"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(240 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	certificate, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return authority{certificate, key}
}

// client is a certificate of a client.
func (a authority) client(t testing.TB, change func(*x509.Certificate)) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "deploy", Locality: []string{"Berlin"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	change(template)
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	require.NoError(t, err)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// gate is a server with TLS that says who comes in.
type gate struct {
	*httptest.Server
	actor access.Actor
	err   error
}

func newGate(t testing.TB, a *access.Authenticator, ca authority, auth tls.ClientAuthType) *gate {
	t.Helper()
	g := &gate{}
	g.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		g.actor, g.err = a.Authenticate(r)
	}))
	pool := x509.NewCertPool()
	pool.AddCert(ca.certificate)
	g.TLS = &tls.Config{ClientCAs: pool, ClientAuth: auth, MinVersion: tls.VersionTLS13}
	g.Config.ErrorLog = log.New(new(strings.Builder), "", 0)
	g.StartTLS()
	t.Cleanup(g.Close)
	return g
}

// come makes a request with a certificate.
func (g *gate) come(t testing.TB, certificate *tls.Certificate, headers ...string) error {
	t.Helper()
	config := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS13}
	config.RootCAs.AddCert(g.Certificate())
	if certificate != nil {
		config.Certificates = []tls.Certificate{*certificate}
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
	defer client.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.URL, nil)
	require.NoError(t, err)
	if len(headers) > 0 {
		r.Header["Authorization"] = headers
	}
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

func TestAClientCertificateIsAnActor(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	spiffe, err := url.Parse("spiffe://example.org/deploy")
	require.NoError(t, err)
	d := newDoor(t, access.AuthConfig{Certificates: []access.CertificateRule{
		{URI: "spiffe://example.org/deploy", Roles: []access.Role{access.Publisher}},
		{DNS: "support.example.org", Roles: []access.Role{access.TenantAdmin}, Tenants: []string{"acme"}},
		{Subject: "CN=deploy,L=Berlin", Roles: []access.Role{access.Viewer}},
	}})
	d.now = time.Now()
	g := newGate(t, d.Authenticator, ca, tls.VerifyClientCertIfGiven)
	for name, c := range map[string]struct {
		change  func(*x509.Certificate)
		subject string
		roles   []access.Role
		tenants []string
	}{
		"by URI":               {func(c *x509.Certificate) { c.URIs = []*url.URL{spiffe} }, "spiffe://example.org/deploy", []access.Role{access.Publisher}, nil},
		"by DNS name":          {func(c *x509.Certificate) { c.DNSNames = []string{"x", "support.example.org"} }, "support.example.org", []access.Role{access.TenantAdmin}, []string{"acme"}},
		"by the whole subject": {func(*x509.Certificate) {}, "CN=deploy,L=Berlin", []access.Role{access.Viewer}, nil},
	} {
		require.NoError(t, g.come(t, ca.client(t, c.change)), name)
		require.NoError(t, g.err, name)
		require.Equal(t, access.Actor{
			Subject: c.subject, Issuer: "CN=The CA", Method: access.MethodCertificate, Roles: c.roles, Tenants: c.tenants, Address: g.actor.Address, Agent: "Go-http-client/1.1",
		}, g.actor, name)
	}
	for name, change := range map[string]func(*x509.Certificate){
		"nearly the subject":    func(c *x509.Certificate) { c.Subject.Locality = []string{"Berlin", "X"} },
		"a name with a comma":   func(c *x509.Certificate) { c.Subject = pkix.Name{CommonName: "deploy,L=Berlin"} },
		"nearly the DNS name":   func(c *x509.Certificate) { c.Subject = pkix.Name{}; c.DNSNames = []string{"*.example.org"} },
		"the DNS name as CN":    func(c *x509.Certificate) { c.Subject = pkix.Name{CommonName: "support.example.org"} },
		"the URI as a DNS name": func(c *x509.Certificate) { c.Subject = pkix.Name{CommonName: "spiffe://example.org/deploy"} },
	} {
		require.NoError(t, g.come(t, ca.client(t, change)), name)
		requireReason(t, access.ReasonUnknown, g.err)
	}
}

func TestWhomARuleNamesIsOnePersonWhicheverAuthorityHasSigned(t *testing.T) {
	t.Parallel()
	one := access.Actor{Subject: "spiffe://example.org/ada", Issuer: "CN=Issuing CA 1", Method: access.MethodCertificate, Roles: []access.Role{access.Publisher}}
	renewed := one
	renewed.Issuer = "CN=Issuing CA 2"
	require.Equal(t, one.Person(), renewed.Person())
	other := one
	other.Subject = "spiffe://example.org/bob"
	require.NotEqual(t, one.Person(), other.Person())
}

func TestOnlyACertificateThatTheHandshakeHasVerifiedCounts(t *testing.T) {
	t.Parallel()
	ca, stranger := newAuthority(t), newAuthority(t)
	d := newDoor(t, access.AuthConfig{Certificates: []access.CertificateRule{{Subject: "CN=deploy,L=Berlin", Roles: []access.Role{access.Viewer}}}})
	d.now = time.Now()
	same := func(*x509.Certificate) {}
	verified := newGate(t, d.Authenticator, ca, tls.VerifyClientCertIfGiven)
	require.Error(t, verified.come(t, stranger.client(t, same)), "the handshake fails")
	require.Error(t, verified.come(t, ca.client(t, func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} })))
	require.NoError(t, verified.come(t, nil))
	requireReason(t, access.ReasonMissing, verified.err)
	// A server that asks for certificates and does not verify them lets nobody in.
	careless := newGate(t, d.Authenticator, ca, tls.RequireAnyClientCert)
	for _, from := range []authority{stranger, ca} {
		require.NoError(t, careless.come(t, from.client(t, same)))
		requireReason(t, access.ReasonMissing, careless.err)
	}
	// A connection may be older than its certificate.
	d.now = time.Now().Add(2 * time.Hour)
	require.NoError(t, verified.come(t, ca.client(t, same)))
	requireReason(t, access.ReasonExpired, verified.err)
	d.now = time.Now().Add(-2 * time.Hour)
	require.NoError(t, verified.come(t, ca.client(t, same)))
	requireReason(t, access.ReasonExpired, verified.err)
}

func TestATokenThatDoesNotHoldIsNotHealedByACertificate(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	d := newDoor(t, access.AuthConfig{Certificates: []access.CertificateRule{{Subject: "CN=deploy,L=Berlin", Roles: []access.Role{access.Viewer}}}})
	d.now = time.Now()
	g := newGate(t, d.Authenticator, ca, tls.VerifyClientCertIfGiven)
	certificate := ca.client(t, func(*x509.Certificate) {})
	_, text := access.NewBootstrapToken(d.now)
	require.NoError(t, g.come(t, certificate, "Bearer "+text))
	requireReason(t, access.ReasonUnknown, g.err, text)
	_, text = d.tokens.add(t, publisher("ada"), access.TokenRequest{Subject: "ci", Roles: []access.Role{access.Publisher}}, d.now)
	require.NoError(t, g.come(t, certificate, "Bearer "+text))
	require.NoError(t, g.err)
	require.Equal(t, access.MethodToken, g.actor.Method, "the token says who, the certificate only carries it")
}
