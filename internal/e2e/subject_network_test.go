package e2e_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
)

// subjectOf is who pays for an operation from the address.
func subjectOf(t *testing.T, cfg ratelimit.PeerConfig, address string) ratelimit.Subject {
	t.Helper()
	subject, err := ratelimit.ByPeer(cfg)(t.Context(), &ratelimit.Request{Client: netip.MustParseAddr(address)})
	require.NoError(t, err)
	return subject
}

func TestANetworkOfManyClientsHasFewBudgets(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[int]ratelimit.PeerConfig{
		256:    {},
		1:      {IPv6Site: 48},
		65_536: {IPv6Site: ratelimit.None},
		4096:   {IPv6Client: 60, IPv6Site: ratelimit.None},
		16:     {IPv6Client: 52},
	} {
		budgets := map[string]bool{}
		for i := range 65_536 {
			budgets[subjectOf(t, cfg, fmt.Sprintf("2001:db8:1:%x::1", i)).Tenant] = true
		}
		require.Len(t, budgets, want, "budgets that a /48 has under %+v", cfg)
	}
}

func TestAClientIsAUserOfItsSite(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		address, tenant, user string
		cfg                   ratelimit.PeerConfig
	}{
		{address: "203.0.113.7", tenant: "ip:203.0.113.7", user: "203.0.113.7"},
		{address: "2001:db8:1:203::9", tenant: "ip:2001:db8:1:200::/56", user: "2001:db8:1:203::/64"},
		{address: "2001:db8:1:203::9", tenant: "ip:2001:db8:1::/48", user: "2001:db8:1:203::/64", cfg: ratelimit.PeerConfig{IPv6Site: 48}},
		{address: "2001:db8:1:203::9", tenant: "ip:2001:db8:1:203::/64", user: "2001:db8:1:203::9/128", cfg: ratelimit.PeerConfig{IPv6Client: 128, IPv6Site: 64}},
		{address: "2001:db8:1:203::9", tenant: "ip:2001:db8:1:203::/64", user: "2001:db8:1:203::/64", cfg: ratelimit.PeerConfig{IPv6Site: ratelimit.None}},
	} {
		subject := subjectOf(t, c.cfg, c.address)
		require.Equal(t, c.tenant, subject.Tenant)
		require.Equal(t, c.user, subject.User)
	}
}

func TestPrefixesThatAreWrongRefuseEverybodyAndSayWhy(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]ratelimit.PeerConfig{
		"PeerConfig.IPv6Client is 129, want 1 to 128 bits":    {IPv6Client: 129},
		"PeerConfig.IPv6Client is -1, want 1 to 128 bits":     {IPv6Client: -1},
		"PeerConfig.IPv6Site is 65, want 1 to 64 bits":        {IPv6Site: 65},
		"PeerConfig.IPv6Site is 49, want 1 to 48 bits":        {IPv6Client: 48, IPv6Site: 49},
		"PeerConfig.IPv6Site is -2, want 1 to 128 bits":       {IPv6Client: 200, IPv6Site: -2},
		"PeerConfig.IPv6Client is 200, want 1 to 128 bits of": {IPv6Client: 200, IPv6Site: -2},
	} {
		_, err := ratelimit.ByPeer(cfg)(t.Context(), &ratelimit.Request{Client: netip.MustParseAddr("203.0.113.7")})
		require.ErrorContains(t, err, want)
		require.NotErrorIs(t, err, ratelimit.ErrNoSubject)
	}
}
