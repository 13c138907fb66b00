package bucket_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

func TestARefusalSaysToTheMillisecondWhenTheAmountIsThereWhateverPoliciesMeet(t *testing.T) {
	t.Parallel()
	first, refusals, foreign := lawSeed(t), 0, 0
	for i := range *lawHistories {
		r := newLawRun(t, first+uint64(i), true, nil)
		require.NoError(t, r.run(lawSteps))
		memory := r.stores[0]
		for range 10 {
			policy := r.policies[r.pick(len(r.policies))]
			take := bucket.Take{Tenant: r.tenant, Buckets: policy.buckets, Amounts: points(r.size(4))}
			result, err := memory.Take(t.Context(), take)
			require.NoError(t, err)
			if result.Verdict != bucket.Limited {
				continue
			}
			refusals++
			if stored, err := r.stored(); err == nil && stored.Foreign(policy.buckets) {
				foreign++
			}
			wait := result.RetryAfter.Milliseconds()
			require.Positive(t, wait)
			r.clock.ms.Add(wait - 1)
			result, err = memory.Take(t.Context(), take)
			require.NoError(t, err)
			require.Equal(t, bucket.Limited, result.Verdict, "TEST_SEED=%d, 1 ms before", first+uint64(i))
			require.EqualValues(t, 1, result.RetryAfter.Milliseconds(), "TEST_SEED=%d", first+uint64(i))
			r.clock.ms.Add(1)
			result, err = memory.Take(t.Context(), take)
			require.NoError(t, err)
			require.Equal(t, bucket.Admitted, result.Verdict, "TEST_SEED=%d, at that time", first+uint64(i))
		}
	}
	require.NotZero(t, foreign, "some were refused because of what other policies have charged")
	t.Logf("%d refusals, %d of them because of debts in other terms", refusals, foreign)
}
