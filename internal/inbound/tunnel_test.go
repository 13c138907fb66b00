package inbound_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/inbound"
)

func TestAnAddressThatLeadsToIPv4CountsAsThat(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"::ffff:198.51.100.7": "198.51.100.7",
		// NAT64, of which each client was one /64 with all others.
		"64:ff9b::198.51.100.7": "198.51.100.7",
		"64:ff9b::10.0.0.7":     "10.0.0.7",
		"64:ff9b:0:0:0:1::1":    "64:ff9b::/64",
		// RFC 8215 leaves its form to the network.
		"64:ff9b:1::198.51.100.7": "64:ff9b:1::/64",
		// 6to4, of which each IPv4 address has a /48.
		"2002:c633:6407::1":          "198.51.100.7",
		"2002:c633:6407:ffff::9":     "198.51.100.7",
		"2002:a00:7::1":              "2002:a00:7::/64",
		"2002:7f00:1::1":             "2002:7f00:1::/64",
		"2002:ffff:ffff::1":          "2002:ffff:ffff::/64",
		"2001:0:c000:201::39cc:9bf8": "198.51.100.7",
		// Teredo: the server, 192.0.2.1 above, is the client's to choose.
		"2001:0:a00:1::39cc:9bf8":  "198.51.100.7",
		"2001:0:c000:201::f5ff:ff": "2001:0:c000:201::/64",
		"2001:1::39cc:9bf8":        "2001:1::/64",
	} {
		require.Equal(t, want, inbound.Network(netip.MustParseAddr(address), inbound.ClientBits), address)
	}
}
