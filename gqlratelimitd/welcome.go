package main

import (
	"fmt"
	"net"
	"strings"
)

// urlOf is where a daemon is asked that listens on an address, by who is on the same machine.
func urlOf(address string, tls bool) string {
	scheme := "http"
	if tls {
		scheme = "https"
	}
	if host, port, err := net.SplitHostPort(address); err == nil && (host == "" || net.ParseIP(host).IsUnspecified()) {
		address = net.JoinHostPort("localhost", port)
	}
	return scheme + "://" + address
}

// issueLines exchange a one-time token, in a shell.
func issueLines(url, token string) string {
	return fmt.Sprintf(`  curl -X POST %s/v1/tokens -H 'Authorization: Bearer %s' \
    -H 'Ratelimit-Reason: first token' -d '{"subject": "me", "roles": ["admin"]}'
`, url, token)
}

// welcome says where the daemon is, and what to do next.
func (d *daemon) welcome() {
	// It is one write, of which nothing can stand between lines of others.
	w := &strings.Builder{}
	defer func() { fmt.Fprint(d.console.out, w) }()
	url := urlOf(d.listener.Addr().String(), d.options.TLS.Certificate != "")
	fmt.Fprintf(w, "gqlratelimitd serves %s\n", url)
	if d.options.Database == "" {
		fmt.Fprintf(w, "Everything is kept in %s\n", d.options.Data)
	}
	switch {
	case len(d.options.Proxies) > 0:
		fmt.Fprintf(w, "Addresses of clients are those that the proxies of %v forward.\n", d.options.Proxies)
	case d.options.PlainText:
		fmt.Fprintln(w, "All clients of a proxy are one address: with -proxies NETWORKS each has its own.")
	}
	if d.relay == nil {
		fmt.Fprintln(w, "Changes stay here: with -redis URL changes reach every instance.")
	}
	if d.token == "" {
		return
	}
	fmt.Fprintf(w, `
There is no token yet. This one is good for an hour, for one thing, to issue yourself another:

%s
Its answer has your token. With that, publish the first policy, which is a file of yours:

  curl -X PUT %s/v1/ratelimit/policies -H 'Authorization: Bearer TOKEN' -H 'If-None-Match: *' \
    -H 'Ratelimit-Reason: first policy' --data-binary @policy.yaml

docs/guide/control-plane.md has a short policy, and goes on from there.
`, issueLines(url, d.token), url)
}
