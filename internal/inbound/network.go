package inbound

import (
	"net/http"
	"net/netip"
)

// ClientBits is the prefix of IPv6 that counts as one client: a host has a /64 to itself (RFC 4291, section 2.5.4), and could
// otherwise choose a fresh budget 2^64 times.
const ClientBits = 64

// HouseholdBits is the prefix of IPv6 that one household is given at least (RIPE-690, section 4.2), and 256 telephones
// share at most.
const HouseholdBits = 56

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
// zone, and of an IPv4 address the address itself. An IPv6 address that leads to an IPv4 address counts as that.
func Network(addr netip.Addr, bits int) string {
	addr = embedded(addr.Unmap().WithZone(""))
	if addr.Is6() {
		prefix, err := addr.Prefix(bits)
		if err == nil {
			return prefix.String()
		}
	}
	return addr.String()
}
