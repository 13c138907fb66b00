package e2e_test

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/policy/directory"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// withDirectory returns a server whose policy has one tier, around which stands a directory.
func withDirectory(t *testing.T, records *directory.Memory, configure func(*ratelimit.Config), around func(tiers.Source) tiers.Source) *inProcess {
	t.Helper()
	d, err := directory.Open(t.Context(), oneLimit(t, 1000, tiers.Tier{}), records, directory.Config{
		Observe: directory.ObserveConfig{Logger: discard},
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = d.Close() })
	return newInProcess(t, bucket.NewMemory(bucket.MemoryConfig{}), func(cfg *ratelimit.Config) {
		cfg.Policy = around(d)
		if configure != nil {
			configure(cfg)
		}
	})
}

func itself(s tiers.Source) tiers.Source { return s }

func putRecord(t *testing.T, records *directory.Memory, document string, expected uint64) uint64 {
	t.Helper()
	revision, err := records.Put(t.Context(), "free", []byte(document), expected)
	require.NoError(t, err)
	return revision
}

func TestARecordOfATenantHoldsWithinASecondAndOnlyForIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		records := directory.NewMemory()
		revision := putRecord(t, records, `{"maxCost": 5}`, 0)
		for _, around := range [...]func(tiers.Source) tiers.Source{
			itself,
			func(s tiers.Source) tiers.Source { return tiers.NewModeSwitch(tiers.NewRollout(s)) },
		} {
			server := withDirectory(t, records, nil, around)
			require.Contains(t, server.post(request{Query: half}).Body, "COST_LIMIT_EXCEEDED")
			require.NotContains(t, server.post(request{Query: half, Tenant: "other"}).Body, "COST_LIMIT_EXCEEDED")
			revision = putRecord(t, records, `{"blocked": true}`, revision)
			time.Sleep(time.Second) //nolint:forbidigo // the clock of a synctest bubble
			require.Contains(t, server.post(request{Query: half}).Body, "TENANT_BLOCKED")
			revision = putRecord(t, records, `{"maxCost": 5}`, revision)
			time.Sleep(time.Second) //nolint:forbidigo // the clock of a synctest bubble
		}
	})
}

func TestACandidateIsTriedWithTheRecordOfTheTenant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		records := directory.NewMemory()
		putRecord(t, records, `{"unlimited": true}`, 0)
		var rollout *tiers.Rollout
		server := withDirectory(t, records, nil, func(s tiers.Source) tiers.Source {
			rollout = tiers.NewRollout(s)
			return rollout
		})
		require.NoError(t, rollout.Propose("next", oneLimit(t, 1, tiers.Tier{})))
		var last *ratelimit.CandidateDecision
		see(server.server, func(d ratelimit.Decision) { last = d.Candidate })
		server.post(request{Query: half})
		require.Equal(t, ratelimit.OutcomeAdmitted, last.Outcome)
		server.post(request{Query: half, Tenant: "other"})
		require.Equal(t, ratelimit.OutcomeTooExpensive, last.Outcome)
	})
}

func TestARecordThatDoesNotFitThePolicyIsSaidOnceAndTheTierHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		records := directory.NewMemory()
		putRecord(t, records, `{"tier": "gold"}`, 0)
		var log strings.Builder
		server := withDirectory(t, records, func(cfg *ratelimit.Config) { cfg.Observe.Logger = slog.New(slog.NewTextHandler(&log, nil)) }, itself)
		for range 3 {
			require.Equal(t, http.StatusOK, server.post(request{Query: half}).Status)
		}
		require.Equal(t, 1, strings.Count(log.String(), "records of tenants do not fit the policy"))
	})
}
