package e2e_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// logging is a fixture with what it logs.
func logging(t *testing.T, configure func(*ratelimit.Config)) (*fixture, *sharedLog) {
	t.Helper()
	var log sharedLog
	return newFixture(t, func(cfg *ratelimit.Config) {
		cfg.Observe.Logger = slog.New(slog.NewTextHandler(&log, nil))
		if configure != nil {
			configure(cfg)
		}
	}), &log
}

// said is how often a line of the log has the text.
func (l *sharedLog) said(text string) int { return strings.Count(l.String(), text) }

func TestATierThatThePolicyDoesNotHaveIsSaidOnce(t *testing.T) {
	t.Parallel()
	carried := "glod"
	f, log := logging(t, func(cfg *ratelimit.Config) {
		cfg.Subject = func(context.Context, *ratelimit.Request) (ratelimit.Subject, error) {
			return ratelimit.Subject{Tenant: "acme", Tier: carried}, nil
		}
	})
	for range 3 {
		f.post(request{Query: cheapQuery})
	}
	require.Equal(t, 1, log.said("a subject carries a tier that the policy does not have"))
	require.Equal(t, 1, log.said("carried=glod tier=free"))
	carried = strings.Repeat("x", 500)
	f.post(request{Query: cheapQuery})
	require.Equal(t, 2, log.said("a subject carries a tier"), "another one")
	require.NotContains(t, log.String(), strings.Repeat("x", 65))
	carried = "free"
	f.post(request{Query: cheapQuery})
	require.Equal(t, 2, log.said("a subject carries a tier"), "a tier of the policy")
}

func TestAChargeInAUnitThatNoLimitCountsIsSaidOnce(t *testing.T) {
	t.Parallel()
	f, log := logging(t, nil)
	require.Equal(t, 1, log.said("limits in these units are charged by ratelimit.Charge alone"))
	unit := bucket.Unit("export")
	f.resolver.OnExport = func(ctx context.Context, rows int) error { return ratelimit.Charge(ctx, unit, int64(rows)) }
	for range 3 {
		f.post(request{Query: `{ export(rows: 1) }`})
	}
	require.Equal(t, 1, log.said("ratelimit.Charge is given a unit that no limit of the policy counts"))
	require.Equal(t, 1, log.said("unit=export units=[exports]"))
	for _, unit = range []bucket.Unit{"exports", bucket.Points} {
		f.post(request{Query: `{ export(rows: 1) }`})
	}
	require.Equal(t, 1, log.said("ratelimit.Charge is given"))
}

func TestAnOverrideRecordThatChangesNothingIsSaidOnce(t *testing.T) {
	t.Parallel()
	f, log := logging(t, nil)
	f.override(bucket.Override{Limit: "minuet", Capacity: 500})
	f.override(bucket.Override{Limit: "minute", Capacity: 500})
	for range 3 {
		f.post(request{Query: cheapQuery})
	}
	require.Equal(t, 1, log.said("an override record changes nothing"))
	require.Equal(t, 1, log.said("limit=minuet actor=audited-actor"))
}
