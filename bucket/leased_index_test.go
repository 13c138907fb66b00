package bucket_test

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// Of a thousand tenants more than a hundred meet others where they are looked for.
func TestTenantsThatLeaseNothingAnyMoreTakeNoOthersWithThem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const tenants = 1000
		s := newLeasedScene(t, bucket.Limit{Name: "second", Capacity: 1000, Refill: 1000, Period: time.Second})
		take := func(tenant int) {
			of := s.of(1)
			of.Tenant = strconv.Itoa(tenant)
			result, err := s.leased.Take(t.Context(), of)
			require.NoError(t, err)
			require.Equal(t, bucket.Admitted, result.Verdict)
		}
		for tenant := range tenants {
			take(tenant)
		}
		require.Equal(t, tenants, s.leased.Stats().Tenants)
		time.Sleep(2 * time.Second) //nolint:forbidigo // in a synctest bubble
		// The first take of each was the store's. Those of every third tenant go on.
		asked, here := s.store.takes, s.leased.Stats().Admitted
		taken := 0
		again := func() {
			for tenant := 0; tenant < tenants; tenant += 3 {
				take(tenant)
				taken++
			}
		}
		for range 20 {
			again()
			time.Sleep(time.Second) //nolint:forbidigo // in a synctest bubble
		}
		require.Equal(t, tenants/3+1, s.leased.Stats().Tenants, "who is quiet leases nothing any more")
		require.Equal(t, asked, s.store.takes, "who goes on is decided here")
		// What is admitted to those who end is counted, though nobody looks before.
		again()
		time.Sleep(20 * time.Second) //nolint:forbidigo // in a synctest bubble
		stats := s.leased.Stats()
		require.Zero(t, stats.Tenants)
		require.Equal(t, here+uint64(taken), stats.Admitted)
		take(1)
		require.Equal(t, 1, s.leased.Stats().Tenants, "they may lease again")
	})
}
