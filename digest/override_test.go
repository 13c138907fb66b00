package digest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/digest"
	"github.com/gqlgen-ratelimit/ratelimit/event"
)

func TestADigestHasTheOverridesUnderWhichSomethingWasDecided(t *testing.T) {
	t.Parallel()
	c, err := digest.New(digest.Config{})
	require.NoError(t, err)
	now := time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC)
	decide := func(at time.Time, tenant string, uses ...event.OverrideUse) {
		c.Count(event.Verdict{At: at, Tenant: tenant, Outcome: "admitted", Overrides: uses})
	}
	use := func(user string, changed bool) event.OverrideUse {
		return event.OverrideUse{Override: event.Override{Level: "user", Owner: user, Limit: "minute", Actor: "ada (gqlratelimitd #17)", Reason: "secret", SetAt: now.Add(-time.Hour)}, Changed: changed}
	}
	decide(now, "acme", use("zoe", true))
	decide(now.Add(time.Second), "acme", use("zoe", false))
	decide(now, "globex", event.OverrideUse{Override: event.Override{Level: "tenant", Actor: "on\x1bcall", SetAt: now}})
	decide(now, "initech")
	d := c.Collect(now.Add(time.Second)).Digest
	zoe := digest.Override{
		Tenant: "acme", Level: "user", Limit: "minute", Actor: "ada (gqlratelimitd #17)", SetAt: now.Add(-time.Hour), Held: now.Add(time.Second), Changed: now,
	}
	want := []digest.Override{zoe, {Tenant: "globex", Level: "tenant", Actor: `on\x1bcall`, SetAt: now, Held: now}}
	require.Equal(t, want, d.Overrides)
	require.NotContains(t, string(d.Encode()), "zoe", "users are not named")
	require.NotContains(t, string(d.Encode()), "secret")
	var read digest.Digest
	require.NoError(t, read.Decode(d.Encode()))
	require.Equal(t, want, read.Overrides)
	require.Equal(t, want, c.Collect(now.Add(29*time.Second)).Digest.Overrides)
	decide(now.Add(30*time.Second), "acme", use("zoe", false))
	c.Collect(now.Add(31 * time.Second))
	zoe.Held = now.Add(30 * time.Second)
	require.Equal(t, []digest.Override{zoe}, c.Collect(now.Add(61*time.Second)).Digest.Overrides, "under the other one nothing was decided for a minute")
}

func TestHoweverManyOverridesThereAreADigestIsBoundedAndEachComesInTurn(t *testing.T) {
	t.Parallel()
	c, err := digest.New(digest.Config{})
	require.NoError(t, err)
	now := time.Now()
	seen := map[string]bool{}
	for range 400 {
		for i := range 200 {
			use := event.OverrideUse{Override: event.Override{Level: "tenant", Actor: strings.Repeat("a", 1000), SetAt: now}}
			c.Count(event.Verdict{At: now, Tenant: fmt.Sprint(i), Outcome: "admitted", Overrides: []event.OverrideUse{use}})
		}
		d := c.Collect(now).Digest
		require.NotEmpty(t, d.Overrides)
		size := 0
		for _, o := range d.Overrides {
			seen[o.Tenant] = true
			size += len(o.Actor)
		}
		require.Less(t, size, 8<<10)
		require.LessOrEqual(t, len(d.Encode()), digest.MaxDigest)
	}
	require.Greater(t, len(seen), 190)
	for i := range 100_000 {
		use := event.OverrideUse{Override: event.Override{Level: "tenant", Actor: fmt.Sprint(i), SetAt: now}}
		c.Count(event.Verdict{At: now, Tenant: fmt.Sprint(i), Outcome: "admitted", Overrides: []event.OverrideUse{use}})
	}
	d := c.Collect(now).Digest
	require.LessOrEqual(t, len(d.Encode()), digest.MaxDigest)
}
