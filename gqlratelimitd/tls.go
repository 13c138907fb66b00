package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// tls is the configuration of TLS, nil for none.
func (d *daemon) tls() (*tls.Config, error) {
	files := d.options.TLS
	if files.Certificate == "" {
		return nil, nil
	}
	if err := privateKey(files.Key); err != nil {
		return nil, err
	}
	certificate, err := tls.LoadX509KeyPair(files.Certificate, files.Key)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	if files.ClientCA == "" {
		return config, nil
	}
	text, err := os.ReadFile(files.ClientCA)
	if err != nil {
		return nil, err
	}
	config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.VerifyClientCertIfGiven
	if !config.ClientCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate in PEM", files.ClientCA)
	}
	return config, nil
}
