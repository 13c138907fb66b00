package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// StartTLS starts a server that speaks nothing but TLS, with certificates that are made for it, and stops
// it when the test ends. It returns what its clients need: it refuses those without a certificate,
// unless the options say --tls-auth-clients no.
func StartTLS(t testing.TB, options ...string) (*Server, *tls.Config) {
	t.Helper()
	dir := t.TempDir()
	config, err := certify(dir)
	if err != nil {
		t.Fatalf("redistest: certificates: %v", err)
	}
	server, err := launch(dir, config, func(ports []int) ([]string, error) {
		args := append([]string{
			"--port", "0", "--tls-port", strconv.Itoa(ports[0]),
			"--tls-ca-cert-file", filepath.Join(dir, "ca.pem"),
			"--tls-cert-file", filepath.Join(dir, "server.pem"),
			"--tls-key-file", filepath.Join(dir, "server.key"),
		}, common(dir)...)
		return append(args, options...), nil
	})
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	t.Cleanup(server.Kill)
	return server, config.Clone()
}

// certificateLife is longer than any test.
const certificateLife = 24 * time.Hour

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// certify writes the certificates of a server into the directory and returns the configuration of its
// clients.
func certify(dir string) (*tls.Config, error) {
	var own authority
	ca, _, err := own.sign("test authority")
	if err != nil {
		return nil, err
	}
	server, serverKey, err := own.sign("test server")
	if err != nil {
		return nil, err
	}
	client, clientKey, err := own.sign("test client")
	if err != nil {
		return nil, err
	}
	for name, text := range map[string][]byte{"ca.pem": ca, "server.pem": server, "server.key": serverKey} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return nil, err
		}
	}
	pair, err := tls.X509KeyPair(client, clientKey)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(own.certificate)
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, Certificates: []tls.Certificate{pair}}, nil
}

// sign returns a certificate for the loopback and its key. The first is that of the authority itself.
func (a *authority) sign(name string) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    now.Add(-time.Hour), NotAfter: now.Add(certificateLife),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
	}
	if a.certificate == nil {
		template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
		template.ExtKeyUsage = nil
		a.certificate, a.key = template, private
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &private.PublicKey, a.key)
	if err != nil {
		return nil, nil, err
	}
	if template.IsCA {
		if a.certificate, err = x509.ParseCertificate(der); err != nil {
			return nil, nil, err
		}
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), nil
}
