package inbound

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Proxies are what stands between clients and the server. The exported packages document the fields in their ProxyConfig.
type Proxies struct {
	Trusted []netip.Prefix
	Header  string
}

const forwardedFor = "X-Forwarded-For"

// Client returns the address of the client of a request that came from the peer: IPv4 addresses in IPv6 as IPv4. It is
// invalid if the peer is. Forwarded addresses are read from the right as long as a trusted proxy has written them, so
// that no client can choose its address by sending the header itself.
func (p *Proxies) Client(peer netip.Addr, header http.Header) netip.Addr {
	client := peer.Unmap()
	if !p.Trusts(client) {
		return client
	}
	name := p.Header
	if name == "" {
		name = forwardedFor
	}
	for _, line := range slices.Backward(header.Values(name)) {
		for rest := line; rest != "" && p.Trusts(client); {
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

// Trusts reports whether the address is that of a proxy. Networks have no zones, and link-local peers always have one.
func (p *Proxies) Trusts(addr netip.Addr) bool {
	addr = addr.WithZone("")
	return slices.ContainsFunc(p.Trusted, func(network netip.Prefix) bool { return network.Contains(addr) })
}

// Check reports every mistake to fail.
func (p *Proxies) Check(fail func(format string, args ...any)) {
	for i, network := range p.Trusted {
		if why := unreachable(network); why != "" {
			fail("Proxies.Trusted[%d] is %v, which no peer is ever of: %s", i, network, why)
		}
	}
	switch {
	case p.Header == "":
	case len(p.Trusted) == 0:
		fail("Proxies.Header is %.40q, which nobody reads: list the proxies that write it in Proxies.Trusted", p.Header)
	case http.CanonicalHeaderKey(p.Header) == "Forwarded":
		fail("Proxies.Header is Forwarded, whose form (for=…;by=…) is not read: have the proxies write %s", forwardedFor)
	case strings.IndexFunc(p.Header, notInToken) >= 0:
		fail("Proxies.Header is %.40q, which is not the name of a header", p.Header)
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
