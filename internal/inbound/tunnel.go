package inbound

import "net/netip"

var (
	// nat64 is the well-known prefix of translators (RFC 6052, section 2.1). The last 32 bits are the IPv4 address.
	nat64 = netip.MustParsePrefix("64:ff9b::/96")
	// sixToFour is the prefix of 6to4 (RFC 3056, section 2): whoever has the IPv4 address in the next 32 bits has the /48.
	sixToFour = netip.MustParsePrefix("2002::/16")
	// teredo is the prefix of Teredo (RFC 4380, section 4). The last 32 bits are the inverted IPv4 address of the client.
	teredo = netip.MustParsePrefix("2001::/32")
)

// embedded returns the IPv4 address that stands in an IPv6 address, and otherwise the address. An answer reaches such an IPv6
// address over that IPv4 address, so that nobody can open a connection from it and choose another. RFC 8215 leaves the form
// of addresses below 64:ff9b:1::/48 to the network, so that these count as other IPv6 addresses do.
func embedded(addr netip.Addr) netip.Addr {
	if !addr.Is6() {
		return addr
	}
	b := addr.As16()
	switch {
	case nat64.Contains(addr):
		return netip.AddrFrom4([4]byte(b[12:]))
	case sixToFour.Contains(addr):
		return publicOr(netip.AddrFrom4([4]byte(b[2:6])), addr)
	case teredo.Contains(addr):
		return publicOr(netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]}), addr)
	default:
		return addr
	}
}

// publicOr returns the IPv4 address if it can be reached from everywhere. A tunnel leads nowhere else (RFC 3964, section 5),
// so that another one in it was made up, and must not spend what belongs to a host of that name in the own network.
func publicOr(inner, outer netip.Addr) netip.Addr {
	if inner.IsGlobalUnicast() && !inner.IsPrivate() {
		return inner
	}
	return outer
}
