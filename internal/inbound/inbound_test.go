package inbound_test

import (
	"net/http"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/inbound"
)

func TestAnUpgradeIsReadAsTheListThatItIs(t *testing.T) {
	t.Parallel()
	for _, lines := range [][]string{
		{"websocket"}, {"WebSocket"}, {"foo, websocket"}, {"websocket,foo/1"}, {"foo,\twebsocket ,bar"}, {"h2c", "websocket"}, {" websocket"},
	} {
		require.True(t, inbound.Upgrades(http.Header{"Upgrade": lines}), lines)
	}
	for _, lines := range [][]string{nil, {""}, {"x"}, {"h2c"}, {"websockets"}, {"web socket"}, {"websocket/13"}, {"foo websocket"}} {
		require.False(t, inbound.Upgrades(http.Header{"Upgrade": lines}), lines)
	}
}

func TestANetworkIsAPrefixOfIPv6AndAnAddressOfIPv4(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		addr string
		bits int
		want string
	}{
		{"192.0.2.7", inbound.ClientBits, "192.0.2.7"},
		{"2001:db8:1:2:3:4:5:6", inbound.ClientBits, "2001:db8:1:2::/64"},
		{"2001:db8:1:ffff:3:4:5:6", inbound.SiteBits, "2001:db8:1::/48"},
		{"fe80::1%eth0", inbound.ClientBits, "fe80::/64"},
		{"2001:db8::1", 128, "2001:db8::1/128"},
	} {
		require.Equal(t, c.want, inbound.Network(netip.MustParseAddr(c.addr), c.bits))
	}
	require.Equal(t, "invalid IP", inbound.Network(netip.Addr{}, inbound.ClientBits))
}

func TestThePeerOfAUnixSocketIsInvalid(t *testing.T) {
	t.Parallel()
	require.False(t, inbound.Peer(&http.Request{RemoteAddr: "@"}).IsValid())
	require.Equal(t, netip.MustParseAddr("192.0.2.7"), inbound.Peer(&http.Request{RemoteAddr: "192.0.2.7:4711"}))
}
