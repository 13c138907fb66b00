package main

import (
	"fmt"
	"net"
	"strings"
)

// welcome says where the daemon is, and what to do next.
func (d *daemon) welcome() {
	// It is one write, of which nothing can stand between lines of others.
	w := &strings.Builder{}
	defer func() { fmt.Fprint(d.console.out, w) }()
	scheme := "http"
	if d.options.TLS.Certificate != "" {
		scheme = "https"
	}
	url := scheme + "://" + d.listener.Addr().String()
	if host, port, err := net.SplitHostPort(d.listener.Addr().String()); err == nil && net.ParseIP(host).IsUnspecified() {
		url = scheme + "://localhost:" + port
	}
	fmt.Fprintf(w, "gqlratelimitd serves %s\n", url)
	if d.options.Database == "" {
		fmt.Fprintf(w, "Everything is kept in %s.\n", d.options.Data)
	}
	fmt.Fprintf(w, "The audit log is verified with the key %s; checkpoints are kept in %s.\n", d.public, d.options.Audit.Checkpoints)
	if d.relay == nil {
		fmt.Fprintln(w, "Changes stay here, and previews have nothing to go by: with -redis URL changes reach every instance.")
	}
	if d.token == "" {
		return
	}
	fmt.Fprintf(w, `
There is no token yet. This one is good for an hour, for one thing, to issue yourself another:

  curl -X POST %s/v1/tokens -H 'Authorization: Bearer %s' \
    -H 'Ratelimit-Reason: first token' -d '{"subject": "me", "roles": ["publisher", "operator", "auditor"]}'

With the token that it answers, publish the first policy:

  curl -X PUT %s/v1/ratelimit/policies -H 'Authorization: Bearer TOKEN' -H 'If-None-Match: *' \
    -H 'Ratelimit-Reason: first policy' --data-binary @policy.yaml

docs/guide/control-plane.md goes on from there.
`, url, d.token, url)
}
