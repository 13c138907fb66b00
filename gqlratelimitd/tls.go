package main

import "crypto/tls"

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
	return &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}, nil
}
