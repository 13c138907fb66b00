package relay_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/relay"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/policy/directory"
	"github.com/gqlgen-ratelimit/ratelimit/policy/directory/redisdirectory"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisfeed"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisswitch"
)

var later = time.Now().Add(time.Hour).Truncate(time.Millisecond).UTC()

func TestWhatHasChangedIsBroughtToRedisAndItsMessagesAreRemoved(t *testing.T) {
	t.Parallel()
	both(t, func(s *scene) {
		t := s.TB
		s.publish(1)
		s.publish(2)
		s.assign("acme", `{"tier":"pro"}`)
		s.assign("gone", `{"tier":"pro"}`)
		s.assign("gone", "")
		first := s.override("acme", 500, later)
		r, _ := s.start(s.config())
		s.carried(r)
		require.EqualValues(t, 2, s.newest())
		require.JSONEq(t, `{"tier":"pro"}`, s.record("acme"))
		require.Empty(t, s.record("gone"))
		o := s.there("acme")
		require.Equal(t, fmt.Sprintf("ada (gqlratelimitd #%d)", first), o.Actor)
		require.Equal(t, []any{int64(500), "why", later}, []any{o.Capacity, o.Reason, o.Expires.UTC()})

		// And what changes from now on, with a hint and without.
		s.publish(3)
		r.Wake()
		s.assign("acme", `{"tier":"max"}`)
		s.override("acme", 0, time.Time{})
		s.carried(r)
		s.eventually(func() bool {
			return s.newest() == 3 && s.record("acme") == `{"tier":"max"}` && s.there("acme") == nil
		})
		s.assign("acme", "")
		s.eventually(func() bool { return s.record("acme") == "" })
		require.Empty(t, s.entries(), "a relay audits nothing of its own")
		status := r.Status()
		require.True(t, status.Leads)
		require.Empty(t, status.Refused)
	})
}

func TestWhatARedisLosesIsPutBack(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	const tenants = 300
	for i := range tenants {
		s.assign(fmt.Sprintf("tenant-%d", i), `{"tier":"pro"}`)
		if i%10 == 0 {
			s.override(fmt.Sprintf("tenant-%d", i), int64(i+1), later)
		}
	}
	s.publish(1)
	r, _ := s.start(s.config())
	s.carried(r)
	whole := func() bool {
		for i := range tenants {
			name := fmt.Sprintf("tenant-%d", i)
			if s.record(name) == "" || i%10 == 0 && s.capacity(name) != int64(i+1) {
				return false
			}
		}
		return s.newest() == 1
	}
	require.True(t, whole())
	require.NoError(t, s.client.FlushAll(t.Context()).Err())
	s.assign("one-more", `{"tier":"pro"}`)
	s.eventually(func() bool {
		record, err := s.directory.Tenant(t.Context(), fmt.Sprint("tenant-", tenants-1))
		if err != nil {
			require.ErrorIs(t, err, directory.ErrEmpty)
			return false
		}
		require.NotNil(t, record, "its record is not back yet, and nobody may take it for a tenant without one")
		return true
	})
	s.eventually(whole, "after a flush")

	s.server.Kill()
	s.assign("meanwhile", `{"tier":"pro"}`)
	s.publish(2)
	s.eventually(func() bool { return r.Status().Failure != "" && r.Status().Waiting == 2 })
	require.NoError(t, s.server.Restart())
	s.eventually(func() bool { return s.record("meanwhile") != "" && s.newest() == 2 }, "after a crash")
	require.NoError(t, s.feed.Restore(t.Context(), revision(1)))
	s.carried(r)
	require.EqualValues(t, 2, s.newest(), "nothing older is there")
	s.eventually(func() bool { return r.Status().Failure == "" && r.Status().Lag == 0 })
	for i := 0; i < tenants; i += 10 {
		name := fmt.Sprintf("tenant-%d", i)
		s.eventually(func() bool { return s.record(name) != "" && s.capacity(name) == int64(i+1) }, name)
	}
}

func TestARedisThatIsRestoredFromAnOldBackupIsBroughtUpToDate(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.assign("acme", `{"tier":"pro"}`)
	s.assign("gone", `{"tier":"pro"}`)
	s.override("acme", 500, later)
	s.override("gone", 500, later)
	s.publish(1)
	r, _ := s.start(s.config())
	s.carried(r)
	backup := map[string]string{}
	for _, key := range s.client.Keys(t.Context(), "*").Val() {
		backup[key] = s.client.Dump(t.Context(), key).Val()
	}
	s.publish(2)
	s.assign("acme", `{"tier":"max"}`)
	s.assign("gone", "")
	s.override("acme", 900, later)
	s.override("gone", 0, time.Time{})
	current := func() bool {
		return s.newest() == 2 && s.record("acme") == `{"tier":"max"}` && s.record("gone") == "" && s.capacity("acme") == 900 && s.there("gone") == nil
	}
	s.eventually(current)
	for key, value := range backup {
		require.NoError(t, s.client.RestoreReplace(t.Context(), key, 0, value).Err())
	}
	require.False(t, current())
	s.eventually(current)
	require.Empty(t, s.unmanaged(), "what was set here in the past is not somebody else's")
	require.Empty(t, s.entries())
}

func TestAnOverrideThatWasSetWithoutTheDaemonStaysAndIsAuditedOnce(t *testing.T) {
	t.Parallel()
	both(t, func(s *scene) {
		t := s.TB
		// A name that stands in its key as a hash is known from the database.
		s.assign("überall", `{"tier":"pro"}`)
		s.foreign("überall", 7)
		s.foreign("nobody@knows", 7)
		s.foreign("acme", 70)
		s.override("mixed", 500, later)
		r, stop := s.start(s.config())
		s.carried(r)
		s.eventually(func() bool { return len(s.unmanaged()) == 2 })
		require.Len(t, s.entries(), 2)
		for _, entry := range s.entries() {
			require.Contains(t, entry, `"override.observe"`)
			require.Contains(t, entry, `"oncall"`)
			require.Contains(t, entry, "3 a.m.")
		}
		require.Equal(t, 1, r.Status().Unnamed)
		s.eventually(func() bool { return r.Status().Unmanaged == 2 })

		// While no daemon is there, the command changes what the daemon has set. That holds, and is seen when one is there again.
		stop()
		s.foreign("mixed", 9)
		r, _ = s.start(s.config())
		s.carried(r)
		s.eventually(func() bool { return len(s.unmanaged()) == 3 })
		require.EqualValues(t, 9, s.capacity("mixed"))
		require.EqualValues(t, 70, s.capacity("acme"))
		require.Len(t, s.entries(), 3, "those that were seen before are not audited again")

		// Who sets an override here afterwards replaces it.
		s.override("mixed", 600, later)
		s.eventually(func() bool { return s.capacity("mixed") == 600 && len(s.unmanaged()) == 2 })
		// Who removes one here removes nothing that somebody else has set.
		s.override("acme", 100, later)
		s.eventually(func() bool { return s.capacity("acme") == 100 && len(s.unmanaged()) == 1 })
		s.foreign("acme", 71)
		s.override("acme", 0, time.Time{})
		s.eventually(func() bool { return len(s.unmanaged()) == 2 })
		require.EqualValues(t, 71, s.capacity("acme"))
		require.Len(t, s.entries(), 4)

		// And one that is gone is not shown any more.
		_, err := s.overrides.ClearOverrides(t.Context(), "acme")
		require.NoError(t, err)
		s.override("acme", 1, later)
		s.eventually(func() bool { return len(s.unmanaged()) == 1 })
	})
}

func TestAnOverrideEndsByTheClockOfRedis(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	past := time.Now().Add(-time.Minute).Truncate(time.Millisecond).UTC()
	s.override("over", 500, past)
	soon := time.Now().Add(300 * time.Millisecond).Truncate(time.Millisecond).UTC()
	s.override("soon", 500, soon)
	s.override("clock", 500, later)
	cfg := s.config()
	// The clock of the daemon is far ahead: what it takes to be over is set all the same, because for Redis it is not.
	cfg.Now = func() time.Time { return time.Now().Add(12 * time.Hour) }
	r, _ := s.start(cfg)
	s.carried(r)
	require.Nil(t, s.there("over"))
	require.EqualValues(t, 500, s.capacity("clock"))
	s.eventually(func() bool { return s.there("soon") == nil })
	require.Empty(t, r.Status().Refused)
	require.NoError(t, s.client.FlushAll(t.Context()).Err())
	s.eventually(func() bool { return s.capacity("clock") == 500 })
	require.Nil(t, s.there("soon"))
}

func TestARevisionThatRedisHasAboveThatOfTheDatabaseStaysAndIsShown(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	require.NoError(t, s.feed.Publish(t.Context(), revision(7), 0))
	s.publish(1)
	r, _ := s.start(s.config())
	s.carried(r)
	require.EqualValues(t, 7, s.newest())
	require.Len(t, r.Status().Refused, 1)
	require.Contains(t, r.Status().Refused[0].Error, "revision 7")
	for n := uint64(2); n <= 8; n++ {
		s.publish(n)
	}
	s.eventually(func() bool { return s.newest() == 8 && len(r.Status().Refused) == 0 })
}

func TestATenantWithTooManyOverridesHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for i := range 128 {
		_, err := s.overrides.SetOverride(t.Context(), "full", bucket.Override{Owner: bucket.Owner{Level: bucket.User, Name: fmt.Sprint(i)}, Blocked: true, Actor: "a", Reason: "b"})
		require.NoError(t, err)
	}
	s.override("full", 500, later)
	s.override("other", 500, later)
	r, _ := s.start(s.config())
	s.eventually(func() bool { return s.capacity("other") == 500 && len(r.Status().Refused) == 1 })
	require.Equal(t, []string{store.OverridesMessage, "full"}, []string{r.Status().Refused[0].Kind, r.Status().Refused[0].Name})
	_, err := s.overrides.ClearOverrides(t.Context(), "full")
	require.NoError(t, err)
	s.override("full", 501, later)
	s.eventually(func() bool { return s.capacity("full") == 501 && len(r.Status().Refused) == 0 })
}

func TestAMessageThatANewerDaemonHasWrittenStaysAndHoldsUpNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.change(func(tx *store.Tx) error { return tx.Enqueue("unheard of", "", 1) })
	s.publish(1)
	r, _ := s.start(s.config())
	s.eventually(func() bool { return s.newest() == 1 && r.Status().Waiting == 1 })
	s.publish(2)
	s.eventually(func() bool { return s.newest() == 2 })
}

func TestMistakesOfTheConfigurationAreReportedAllAtOnce(t *testing.T) {
	t.Parallel()
	_, err := relay.New(relay.Config{Interval: time.Hour, Sweep: time.Millisecond, Lease: -1})
	for _, part := range []string{"Config.Store", "Config.Client", "Config.Interval", "Config.Sweep", "Config.Lease"} {
		require.ErrorContains(t, err, part)
	}
}

func TestTheRightsThatTheGuideNamesAreEnough(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	rules, err := bucket.ACLRules("", false)
	require.NoError(t, err)
	feed, err := redisfeed.ACLRules("", "")
	require.NoError(t, err)
	records, err := redisdirectory.ACLRules("", "")
	require.NoError(t, err)
	modes, err := redisswitch.ACLRules("")
	require.NoError(t, err)
	user := []any{"ACL", "SETUSER", "daemon", "on", ">secret"}
	for _, rule := range slices.Concat(rules, feed, records, modes, []string{"+scan"}) {
		user = append(user, rule)
	}
	require.NoError(t, s.client.Do(t.Context(), user...).Err())
	cfg := s.config()
	cfg.Client = redistest.ConnectWith(t, s.server.Addr, redisclient.Config{Username: "daemon", Password: "secret"})
	s.publish(1)
	s.assign("acme", `{"tier":"pro"}`)
	s.override("acme", 500, later)
	s.foreign("other", 7)
	s.foreignMode(event.ModeSwitch{AtMost: "shadow"})
	r, _ := s.start(cfg)
	s.carried(r)
	s.override("acme", 0, time.Time{})
	s.assign("acme", "")
	own, err := redisswitch.New(redisswitch.Config{Client: cfg.Client})
	require.NoError(t, err)
	require.NoError(t, own.Set(t.Context(), event.ModeSwitch{AtMost: "off", Until: later, Reason: "why", By: "ada"}))
	s.eventually(func() bool { return len(s.noted()) == 1 })
	s.carried(r)
	s.eventually(func() bool { return s.there("acme") == nil && len(s.unmanaged()) == 1 })
	denied, err := s.client.Do(t.Context(), "ACL", "LOG").Slice()
	require.NoError(t, err)
	require.Empty(t, denied)
}

func TestEachMasterOfAClusterIsLookedAt(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	cluster := redistest.StartCluster(t)
	var err error
	client := redistest.ConnectWith(t, "", redisclient.Config{Addresses: cluster.Addrs, Cluster: true})
	s.overrides, err = bucket.NewRedis(bucket.RedisConfig{Client: client})
	require.NoError(t, err)
	for i := range 30 {
		s.foreign(fmt.Sprint("tenant-", i), 7)
	}
	s.override("acme", 500, later)
	cfg := s.config()
	cfg.Client = client
	r, _ := s.start(cfg)
	s.carried(r)
	require.Len(t, s.unmanaged(), 30)
	require.EqualValues(t, 500, s.capacity("acme"))
}
