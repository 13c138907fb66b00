package relay_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisswitch"
)

// foreignMode sets a switch without the daemon, as the command does.
func (s *scene) foreignMode(m event.ModeSwitch) {
	s.Helper()
	m.Until, m.Reason, m.By = later, "3 a.m.\x1b", "oncall"
	require.NoError(s, s.modes().Set(context.Background(), m))
}

func (s *scene) modes() *redisswitch.Switches {
	s.Helper()
	switches, err := redisswitch.New(redisswitch.Config{Client: s.client})
	require.NoError(s, err)
	return switches
}

// noted are the fingerprints of switches that the audit log has.
func (s *scene) noted() (found []string) {
	s.Helper()
	require.NoError(s, s.db.Read(context.Background(), func(v *store.View) (err error) {
		found, err = v.NotedSwitches()
		return err
	}))
	return found
}

func TestASwitchSetWithoutTheDaemonIsAuditedOnce(t *testing.T) {
	t.Parallel()
	both(t, func(s *scene) {
		t := s.TB
		s.foreignMode(event.ModeSwitch{Tenant: "acme", AtMost: "off"})
		list, err := s.modes().List(t.Context())
		require.NoError(t, err)
		// One that the daemon has set is noted as it is set.
		s.change(func(tx *store.Tx) error { return tx.NoteSwitch(list[0].Fingerprint()) })
		_, stop := s.start(s.config())
		// It is seen while the daemon runs, although nothing else happens.
		s.foreignMode(event.ModeSwitch{AtMost: "shadow"})
		s.foreignMode(event.ModeSwitch{Tenant: "other", Operation: "Query.*", AtMost: "off"})
		s.eventually(func() bool { return len(s.noted()) == 3 })
		require.Len(t, s.entries(), 2)
		require.Contains(t, s.entries()[0], `"mode.observe"`)
		require.Contains(t, s.entries()[0], "mode of all")
		require.Contains(t, s.entries()[0], "3 a.m.?")
		require.Contains(t, s.entries()[1], "mode of operation Query.* of tenant other")

		// And when one is there again: it stands in the place of another one.
		stop()
		s.foreignMode(event.ModeSwitch{Tenant: "acme", AtMost: "warn"})
		_, err = s.modes().End(t.Context(), "", "")
		require.NoError(t, err)
		r, _ := s.start(s.config())
		s.eventually(func() bool { return len(s.noted()) == 2 })
		require.Len(t, s.entries(), 3, "those that were seen before are not audited again")
		require.Empty(t, r.Status().Refused)
		require.NoError(t, s.client.Set(t.Context(), "rl:main:modes", "nonsense", 0).Err())
		s.eventually(func() bool { return len(r.Status().Refused) == 1 })
		require.Len(t, s.noted(), 2)
	})
}
