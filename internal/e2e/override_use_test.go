package e2e_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/digest"
	"github.com/gqlgen-ratelimit/ratelimit/event"
)

func TestADigestSaysWhenAnOverrideLastChangedWhatAServerDecides(t *testing.T) {
	t.Parallel()
	collector, err := digest.New(digest.Config{})
	require.NoError(t, err)
	f := newFixture(t, func(cfg *ratelimit.Config) { cfg.Observe.Observer = event.All(collector) })
	listed := func() map[string]digest.Override {
		found := map[string]digest.Override{}
		batch := collector.Collect(time.Now())
		for _, o := range batch.Digest.Overrides {
			require.Equal(t, []string{"free", "tenant", "audited-actor"}, []string{o.Tenant, o.Level, o.Actor})
			require.NotZero(t, o.SetAt)
			if found[o.Limit].Changed.IsZero() {
				found[o.Limit] = o
			}
		}
		return found
	}
	post := func(status int) {
		t.Helper()
		require.Equal(t, status, f.post(request{Query: half}).Status)
	}
	post(http.StatusOK)
	require.Empty(t, listed(), "nobody has overridden anything")
	f.override(bucket.Override{Limit: "minute", Capacity: 500})
	post(http.StatusOK)
	require.True(t, listed()["minute"].Changed.IsZero(), "the policy would have admitted it too")
	for range 5 {
		post(http.StatusOK)
	}
	held := listed()["minute"]
	require.False(t, held.Changed.IsZero(), "the policy would have refused it")

	_, err = f.store.ClearOverrides(t.Context(), "free")
	require.NoError(t, err)
	f.override(bucket.Override{Unlimited: true})
	post(http.StatusOK)
	lifted := listed()[""]
	require.False(t, lifted.Held.IsZero())
	require.True(t, lifted.Changed.IsZero(), "nothing is counted, so that nobody knows")
	_, err = f.store.ClearOverrides(t.Context(), "free")
	require.NoError(t, err)
	f.override(bucket.Override{Blocked: true})
	post(http.StatusForbidden)
	require.False(t, listed()[""].Changed.IsZero(), "a block changes each decision")
}
