package inbound

import "net/netip"

// NoSite is the value of Levels.Site for no level above the client.
const NoSite = -1

// Levels say how many bits of an IPv6 address make one client, and how many the site that the client is in. Zero means
// [ClientBits], and [HouseholdBits] or as many as a client has.
type Levels struct {
	Client int
	// Site is NoSite where a client is its own site.
	Site int
}

// Names returns the client that has the address and its site. Of IPv4 both are the address.
func (l Levels) Names(addr netip.Addr) (client, site string) {
	return Network(addr, l.client()), Network(addr, l.site())
}

func (l Levels) client() int {
	if l.Client == 0 {
		return ClientBits
	}
	return l.Client
}

func (l Levels) site() int {
	switch l.Site {
	case 0:
		return min(HouseholdBits, l.client())
	case NoSite:
		return l.client()
	default:
		return l.Site
	}
}

// Check tells fail every mistake, in fields of these names.
func (l Levels) Check(client, site string, fail func(format string, args ...any)) {
	const bits = 128
	if l.Client < 0 || l.Client > bits {
		fail("%s is %d, want 1 to %d bits of an IPv6 address, or 0 for %d", client, l.Client, bits, ClientBits)
	}
	if most := min(max(1, l.client()), bits); l.Site < NoSite || l.Site > most {
		fail("%s is %d, want 1 to %d bits, at most those of a client, 0 for %d, or None for no level above the client",
			site, l.Site, most, min(HouseholdBits, most))
	}
}
