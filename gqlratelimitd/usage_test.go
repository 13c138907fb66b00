package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

func TestTheCommandShowsWhatTheDaemonKeepsOfUsage(t *testing.T) {
	t.Parallel()
	bin, data := buildCommand(t), t.TempDir()
	daemon := start(t, data)
	token := daemon.issue("ada", daemon.token)
	day := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -2)
	keep(t, data, day)
	run := func(want int, args ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), filepath.Join(bin, "gqlratelimit"), append([]string{"usage"}, args...)...)
		command.Env = append(os.Environ(), "RATELIMIT_DAEMON="+daemon.url, "RATELIMIT_TOKEN="+token)
		printed, _ := command.CombinedOutput()
		require.Equal(t, want, command.ProcessState.ExitCode(), string(printed))
		return string(printed)
	}
	date := day.Format(time.DateOnly)
	require.Contains(t, run(0, "-tenant", "acme/1", "-by", "unit", "-window", "day", "-last", "3d"), date+"  points  40       10          30   exact\n")
	require.Contains(t, run(0, "-tenant", "acme/1", "-by", "limit", "-window", "day", "-last", "3d"), date+"  =cmd  3        instance\n")
	require.Contains(t, run(0, "-by", "unit", "-last", "3d"), "acme/1  points  40")
	require.Contains(t, run(2, "-tenant", "acme/1", "-window", "minute", "-last", "30d"), "more than 2881 minutes: ask for a shorter range, or for the window hour")
}

// keep has the file of a daemon have what was used on a day.
func keep(t *testing.T, data string, day time.Time) {
	t.Helper()
	hour := day.Unix() / 3600
	count(t, data, func(tx *store.UsageTx) error {
		_, err := tx.KeepUsage(store.UsageState{HoursFrom: hour})
		require.NoError(t, err)
		require.NoError(t, tx.PutUsagePass(store.UsagePass{Began: 60 * hour, Collected: 60 * (hour + 48)}))
		_, err = tx.PutUsage(store.UsageHours, []store.UsageCount{{Tenant: "acme/1", At: hour, Unit: "points", Charged: 40, GivenBack: 10}})
		require.NoError(t, err)
		_, err = tx.PutRefused([]store.RefusedCount{{Tenant: "acme/1", Hour: hour, Name: "=cmd", Refused: 3}})
		return err
	})
}

// count has the file of a daemon have counts.
func count(t *testing.T, data string, write func(tx *store.UsageTx) error) {
	t.Helper()
	db, err := store.Open(t.Context(), store.Config{URL: (&options{Data: data}).databaseURL()})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	require.NoError(t, db.Count(t.Context(), write))
}
