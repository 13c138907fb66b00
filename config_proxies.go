package ratelimit

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
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

const forwardedFor = "X-Forwarded-For"

// Client returns the address of the client of a request that came from the peer: IPv4 addresses in IPv6 as IPv4. It is
// invalid if the peer is. Forwarded addresses are read from the right as long as a trusted proxy has written them, so
// that no client can choose its address by sending the header itself.
func (c *ProxyConfig) Client(peer netip.Addr, header http.Header) netip.Addr {
	client := peer.Unmap()
	if !c.trusts(client) {
		return client
	}
	name := c.Header
	if name == "" {
		name = forwardedFor
	}
	for _, line := range slices.Backward(header.Values(name)) {
		for rest := line; rest != "" && c.trusts(client); {
			comma := strings.LastIndexByte(rest, ',')
			next, ok := parseHop(rest[comma+1:])
			if !ok {
				// What a trusted proxy wrote cannot be read: the last address that is certain counts.
				return client
			}
			client, rest = next, rest[:max(0, comma)]
		}
	}
	return client
}

func parseHop(hop string) (netip.Addr, bool) {
	hop = strings.Trim(hop, " \t")
	if addrPort, err := netip.ParseAddrPort(hop); err == nil {
		return addrPort.Addr().Unmap(), true
	}
	addr, err := netip.ParseAddr(strings.Trim(hop, "[]"))
	return addr.Unmap(), err == nil
}

// trusts says whether the address is that of a proxy. Networks have no zones, and link-local peers always have one.
func (c *ProxyConfig) trusts(addr netip.Addr) bool {
	addr = addr.WithZone("")
	return slices.ContainsFunc(c.Trusted, func(network netip.Prefix) bool { return network.Contains(addr) })
}

// validate reports every mistake.
func (c *ProxyConfig) validate(fail failFunc) {
	for i, network := range c.Trusted {
		if why := unreachable(network); why != "" {
			fail("Proxies.Trusted[%d] is %v, which no peer is ever of: %s", i, network, why)
		}
	}
	switch {
	case c.Header == "":
	case len(c.Trusted) == 0:
		fail("Proxies.Header is %.40q, which nobody reads: list the proxies that write it in Proxies.Trusted", c.Header)
	case http.CanonicalHeaderKey(c.Header) == "Forwarded":
		fail("Proxies.Header is Forwarded, whose form (for=…;by=…) is not read: have the proxies write %s", forwardedFor)
	case strings.IndexFunc(c.Header, notInToken) >= 0:
		fail("Proxies.Header is %.40q, which is not the name of a header", c.Header)
	}
}

// notInToken says that a name of a header cannot have the character (RFC 9110, section 5.6.2).
func notInToken(r rune) bool {
	return r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
}

// unreachable says why no peer is ever of the network, empty if one can be.
func unreachable(network netip.Prefix) string {
	if !network.IsValid() {
		return "it is the zero value, or has more bits than the address"
	}
	first := network.Masked().Addr()
	switch {
	case first.Is4In6() || first.Is6() && network.Addr().Is4In6():
		if bits := network.Bits() - 96; bits >= 0 {
			return "IPv4 addresses are compared as such; write " + netip.PrefixFrom(network.Addr().Unmap(), bits).String()
		}
		return "IPv4 addresses are compared as such; list their networks as IPv4"
	case network.IsSingleIP() && first.IsUnspecified():
		return "it is no address of a host"
	case first.IsMulticast() && network.Bits() >= multicastBits(first):
		return "it is a group of hosts, which opens no connection"
	case first == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "it is the address of a broadcast"
	default:
		return ""
	}
}

// multicastBits is from how many bits on a network with this address has groups alone.
func multicastBits(addr netip.Addr) int {
	if addr.Is4() {
		return 4
	}
	return 8
}
