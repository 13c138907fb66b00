package redisclient

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// LoadTLS returns a configuration for [Config.TLS] from files in PEM: certificates of the authorities
// to trust in the place of those of the system, and for servers that ask for one a certificate of the client
// with its key. Empty names leave a part away. It reads the files once. The error names the file.
func LoadTLS(caFile, certFile, keyFile string) (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	var errs []error
	if caFile != "" {
		text, err := os.ReadFile(caFile)
		cfg.RootCAs = x509.NewCertPool()
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("redisclient: authorities to trust: %w", err))
		case !cfg.RootCAs.AppendCertsFromPEM(text):
			errs = append(errs, fmt.Errorf("redisclient: authorities to trust: no certificate in PEM in %s", caFile))
		}
	}
	switch {
	case (certFile == "") != (keyFile == ""):
		errs = append(errs, errors.New("redisclient: a certificate of the client and its key belong together; give both files or none"))
	case certFile != "":
		pair, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			errs = append(errs, fmt.Errorf("redisclient: certificate of the client in %s and its key in %s: %w", certFile, keyFile, err))
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return cfg, nil
}
