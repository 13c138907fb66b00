package ratelimit

import (
	"net/http"
	"net/netip"

	"github.com/gqlgen-ratelimit/ratelimit/internal/inbound"
)

// ProxyConfig says which proxies stand in front of the server, so that it knows the addresses of clients. The zero value
// trusts none: the peer of a connection is the client, whatever the headers say.
type ProxyConfig struct {
	// Trusted are the networks whose word on the address of a client is taken. One that no peer can ever be of is a
	// mistake, such as ::ffff:10.0.0.0/104: IPv4 addresses are compared as such, as 10.0.0.0/8.
	Trusted []netip.Prefix
	// Header is the one in which trusted proxies append addresses, with or without a port, separated by commas. Empty means
	// X-Forwarded-For.
	Header string
}

// Client returns the address of the client of a request that came from the peer: IPv4 addresses in IPv6 as IPv4. It is
// invalid if the peer is. Forwarded addresses are read from the right as long as a trusted proxy has written them, so
// that no client can choose its address by sending the header itself.
func (c *ProxyConfig) Client(peer netip.Addr, header http.Header) netip.Addr {
	return (*inbound.Proxies)(c).Client(peer, header)
}

// validate reports every mistake.
func (c *ProxyConfig) validate(fail failFunc) { (*inbound.Proxies)(c).Check(fail) }
