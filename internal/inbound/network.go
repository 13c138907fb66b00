package inbound

import (
	"net/http"
	"net/netip"
)

// ClientBits is the prefix of IPv6 that counts as one client: a household or a host usually has a /64 to itself, and could
// otherwise choose a fresh budget 2^64 times.
const ClientBits = 64

// SiteBits is the prefix of IPv6 that one organisation, or one tunnel, is given at most (RFC 6177), and has 65 536 times
// [ClientBits] in it.
const SiteBits = 48

// Peer is the address of the TCP peer of a request. It is invalid where the listener has none, as on a Unix socket.
func Peer(r *http.Request) netip.Addr {
	addrPort, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return addrPort.Addr()
}

// Network returns the name of the network that an address belongs to: of an IPv6 address the prefix of so many bits, without a
// zone, and of an IPv4 address the address itself.
func Network(addr netip.Addr, bits int) string {
	if addr.Is6() {
		prefix, err := addr.WithZone("").Prefix(bits)
		if err == nil {
			return prefix.String()
		}
	}
	return addr.String()
}
