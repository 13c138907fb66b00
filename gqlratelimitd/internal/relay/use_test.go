package relay_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/digest"
	"github.com/gqlgen-ratelimit/ratelimit/digest/redisdigest"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

// useOf is how an instance tells of a record that it has judged by.
func useOf(o *bucket.Override, changed bool) event.OverrideUse {
	return event.OverrideUse{Changed: changed, Override: event.Override{
		Level: o.Owner.Level.String(), Owner: o.Owner.Name, Limit: o.Limit, Actor: o.Actor, Reason: o.Reason, SetAt: o.SetAt,
	}}
}

func TestWhatInstancesDecideUnderAnOverrideSaysWhenItMattered(t *testing.T) {
	t.Parallel()
	both(t, func(s *scene) {
		t := s.TB
		s.override("acme", 500, later)
		s.foreign("globex", 70)
		cfg := s.config()
		cfg.Uses = 20 * time.Millisecond
		r, _ := s.start(cfg)
		s.carried(r)
		s.eventually(func() bool { return len(s.unmanaged()) == 1 && s.there("acme") != nil })
		before := len(s.entries())

		collector, err := digest.New(digest.Config{})
		require.NoError(t, err)
		decided := time.Now().UTC().Truncate(time.Microsecond)
		count := func(tenant string, at time.Time, changed bool) {
			collector.Count(event.Verdict{At: at, Tenant: tenant, Outcome: "admitted", Overrides: []event.OverrideUse{useOf(s.there(tenant), changed)}})
		}
		count("acme", decided, true)
		count("acme", decided.Add(time.Hour), false)
		count("globex", decided, false)
		writer, err := redisdigest.Start(redisdigest.WriterConfig{Config: redisdigest.Config{Client: s.client}, Collector: collector})
		require.NoError(t, err)
		t.Cleanup(func() { _ = writer.Close() })
		found := map[string]store.ListedOverride{}
		s.eventually(func() bool {
			require.NoError(t, s.db.Read(t.Context(), func(v *store.View) error {
				list, err := v.FindOverrides(&store.OverrideQuery{Now: time.Now()}, 10)
				for _, o := range list {
					found[o.Tenant] = o
				}
				return err
			}))
			return !found["acme"].Held.IsZero() && !found["globex"].Held.IsZero()
		})
		require.Equal(t, decided, found["acme"].Mattered)
		require.True(t, found["acme"].Held.Before(time.Now().Add(time.Minute)), "nothing has held in the future")
		require.Equal(t, decided, found["globex"].Held)
		require.True(t, found["globex"].Mattered.IsZero())
		require.Len(t, s.entries(), before, fmt.Sprint("an observation is no change: ", s.entries()))
	})
}
