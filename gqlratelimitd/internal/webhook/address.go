package webhook

import (
	"net/netip"
	"slices"
)

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

var (
	// special are the blocks of IPv4 that are not the public internet (the IANA special-purpose registry), and multicast.
	special = prefixes("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
		"192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4")
	// public6 is what of IPv6 is given out, and special6 what of that is not the public internet: Teredo and other protocols, documentation,
	// 6to4, which lead to an IPv4 address that stands in them.
	public6  = netip.MustParsePrefix("2000::/3")
	special6 = prefixes("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
	// nat64 leads to the IPv4 address at its end (RFC 6052), which is judged in its place: in networks of IPv6 alone each IPv4 host has one.
	nat64 = netip.MustParsePrefix("64:ff9b::/96")
	// metadata are addresses at which clouds give credentials to whoever asks from inside. Some of them are public.
	metadata = prefixes("169.254.169.254/32", "169.254.170.2/32", "169.254.170.23/32", "168.63.129.16/32", "100.100.100.200/32", "192.0.0.192/32",
		"fd00:ec2::254/128", "fd00:ec2::23/128", "fd20:ce::254/128")
)

// reachable says whether an address is a public one, or one that the operator allows. Metadata of clouds is neither.
func reachable(address netip.Addr, allowed []netip.Prefix) bool {
	if address.Zone() != "" {
		return false
	}
	address = address.Unmap()
	if nat64.Contains(address) {
		bytes := address.As16()
		address = netip.AddrFrom4([4]byte(bytes[12:]))
	}
	in := func(blocks []netip.Prefix) bool {
		return slices.ContainsFunc(blocks, func(block netip.Prefix) bool { return block.Contains(address) })
	}
	switch {
	case !address.IsValid(), in(metadata):
		return false
	case in(allowed):
		return true
	case address.Is4():
		return !in(special)
	default:
		return public6.Contains(address) && !in(special6)
	}
}
