package bucket

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// LoadTLS returns a configuration for [ClientConfig.TLS] from files in PEM: certificates of the authorities
// to trust in the place of those of the system, and for servers that ask for one a certificate of the client
// with its key. Empty names leave a part away. It reads the files once. The error names the file.
func LoadTLS(caFile, certFile, keyFile string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	var errs []error
	if caFile != "" {
		text, err := os.ReadFile(caFile)
		config.RootCAs = x509.NewCertPool()
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("bucket: authorities to trust: %w", err))
		case !config.RootCAs.AppendCertsFromPEM(text):
			errs = append(errs, fmt.Errorf("bucket: authorities to trust: no certificate in PEM in %s", caFile))
		}
	}
	switch {
	case (certFile == "") != (keyFile == ""):
		errs = append(errs, errors.New("bucket: a certificate of the client and its key belong together; give both files or none"))
	case certFile != "":
		pair, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			errs = append(errs, fmt.Errorf("bucket: certificate of the client in %s and its key in %s: %w", certFile, keyFile, err))
		}
		config.Certificates = []tls.Certificate{pair}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return config, nil
}
