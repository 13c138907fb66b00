package e2e_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// regionPolicy has limits that regions can divide.
const regionPolicy = `
version: 1
default: free
tiers:
  free: {lease: always, limits: {minute: {capacity: 600, per: minute}}}
`

// region is a store of one of two regions.
func region(t *testing.T) bucket.Store {
	t.Helper()
	r, err := bucket.NewRegional(bucket.NewMemory(bucket.MemoryConfig{}), bucket.NewMemory(bucket.MemoryConfig{}), bucket.RegionalConfig{
		Region: "eu", Shares: map[string]int{"eu": 30, "us": 10},
	})
	require.NoError(t, err)
	return r
}

func TestAPolicyWhoseLimitsARegionCannotDivideIsReportedAtStart(t *testing.T) {
	t.Parallel()
	validate := func(document string, logger *slog.Logger) error {
		return ratelimit.New(ratelimit.Config{
			Store: bucket.NewMemory(bucket.MemoryConfig{}), Stores: map[string]bucket.Store{"regions": region(t)},
			Policy: policyOf(t, document), Subject: byTenantHeader, Observe: ratelimit.ObserveConfig{Logger: logger},
		}).Validate(testserver.NewExecutableSchema(testserver.Config{}))
	}
	small := strings.Replace(regionPolicy, "capacity: 600", "capacity: 9", 1)
	require.NoError(t, validate(small, discard), "another store keeps it")
	small = strings.Replace(small, "lease: always", "store: regions, lease: always", 1)
	err := validate(small+"tenants: {acme: {limits: {minute: {capacity: 2, per: minute}}}, huge: {times: 1000}}\n", discard)
	for _, said := range []string{
		`tiers.free in store "regions": `, `limit "minute" cannot be divided: 10 % of it are less than 1; from 10 on it can`,
		`tenants in the tier free in store "regions": `,
	} {
		require.ErrorContains(t, err, said)
	}

	var many strings.Builder
	many.WriteString(small + "tenants:\n")
	for i := range 50 {
		fmt.Fprintf(&many, "  t%d: {limits: {l%d: {capacity: 2, per: minute}}}\n", i, i)
	}
	require.Less(t, len(validate(many.String(), discard).Error()), 2000, "of many mistakes the first")

	var log bytes.Buffer
	odd := strings.Replace(regionPolicy, "lease: always", "store: regions, throttle: {acts: limits, floor: 1}", 1)
	require.NoError(t, validate(odd, slog.New(slog.NewTextHandler(&log, nil))))
	require.Contains(t, log.String(), "never the 60 % of home: say lease: always")
	require.Contains(t, log.String(), "operations fail while the throttle makes the limits as small as it may")
}

func TestAReloadedPolicyWhoseLimitsARegionCannotDivideIsNotLoaded(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "policy.yaml")
	require.NoError(t, os.WriteFile(file, []byte(regionPolicy), 0o600))
	source, err := policy.OpenFile(file, policy.Config{Interval: policy.None})
	require.NoError(t, err)
	t.Cleanup(func() { _ = source.Close() })
	f := newFixture(t, func(cfg *ratelimit.Config) {
		cfg.Policy, cfg.Store = tiers.NewModeSwitch(source), region(t)
	})

	require.NoError(t, os.WriteFile(file, []byte(regionPolicy+"backstop: {limits: {second: {capacity: 2, per: second}}}\n"), 0o600))
	require.ErrorContains(t, source.Reload(t.Context()), `backstop in the default store: bucket: invalid call: limit "second" cannot be divided`)
	require.EqualValues(t, 1, source.Snapshot().Generation())
	require.Empty(t, f.post(request{Query: cheapQuery, Tenant: "acme"}).errorCode(t))
}
