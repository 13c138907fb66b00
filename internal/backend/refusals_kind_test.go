package backend_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/backend"
)

func TestARefusalKnownFromOthersSaysWhatIsShared(t *testing.T) {
	t.Parallel()
	ann := bucket.Owner{Level: bucket.User, Name: "ann"}
	for _, test := range []struct {
		name     string
		override *bucket.Override
		want     bucket.Verdict
	}{
		{"the tenant has too little", nil, bucket.Limited},
		{"whatever a record makes of the user", &bucket.Override{Owner: ann, Blocked: true, Reason: "x", Actor: "y"}, bucket.Limited},
		{"a record blocks the tenant", &bucket.Override{Blocked: true, Reason: "x", Actor: "y"}, bucket.Blocked},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := newGated(t, backend.GateConfig{CappedCalls: 1})
			if test.override != nil {
				_, err := c.store.SetOverride(t.Context(), "acme", *test.override)
				require.NoError(t, err)
			}
			tenant := bucket.Bucket{Limits: compile(t, bucket.Limit{Name: "minute", Capacity: 10, Period: time.Minute})}
			user := bucket.Bucket{Owner: ann, Limits: compile(t, bucket.Limit{Name: "day", Capacity: 50, Period: 24 * time.Hour})}
			c.take(bucket.Take{Buckets: []bucket.Bucket{tenant}, Amounts: points(10)})
			c.take(bucket.Take{Buckets: []bucket.Bucket{tenant}, Amounts: points(10)})
			take := bucket.Take{Buckets: []bucket.Bucket{tenant, user}, Amounts: points(8), Owners: []bucket.Owner{{Level: bucket.Operation, Name: "0"}}}
			c.take(take)
			take.Owners = []bucket.Owner{{Level: bucket.Operation, Name: "1"}}
			got := c.take(take)
			require.Equal(t, backend.FromCap, got.Origin)
			require.Equal(t, test.want, got.Verdict)
		})
	}
}

func TestABlockedTenantCostsTheStoreAFewCallsWhoeverItsUsersAre(t *testing.T) {
	t.Parallel()
	c, b := newGated(t, backend.GateConfig{}), tenPerSecond(t)
	_, err := c.store.SetOverride(t.Context(), "acme", bucket.Override{Blocked: true, Reason: "x", Actor: "y"})
	require.NoError(t, err)
	asked := c.asked(func() {
		for i := range 1000 {
			user := bucket.Owner{Level: bucket.User, Name: fmt.Sprint(i)}
			require.Equal(t, bucket.Blocked, c.take(bucket.Take{Buckets: b, Owners: []bucket.Owner{user}, Amounts: points(1)}).Verdict)
		}
	})
	require.LessOrEqual(t, asked, int64(6))
}

func TestARecordThatBlocksAnOwnerOfACandidateAloneBlocksNothing(t *testing.T) {
	t.Parallel()
	c, b := newGated(t, backend.GateConfig{}), tenPerSecond(t)
	bob := bucket.Owner{Level: bucket.User, Name: "bob"}
	_, err := c.store.SetOverride(t.Context(), "acme", bucket.Override{Owner: bob, Blocked: true, Reason: "x", Actor: "y"})
	require.NoError(t, err)
	take := bucket.Take{
		Buckets: b, Amounts: points(1),
		Candidate: &bucket.Candidate{ID: "next", Buckets: []bucket.Bucket{{Owner: bob, Limits: b[0].Limits}}},
	}
	require.Equal(t, bucket.Admitted, c.take(take).Verdict)
	take.Candidate = nil
	require.Equal(t, bucket.Admitted, c.take(take).Verdict)
}

func TestAChargeMakesKnownRefusalsForgottenThatStandOnTermsWhichItChanges(t *testing.T) {
	t.Parallel()
	user := func(name string) bucket.Bucket {
		return bucket.Bucket{Owner: bucket.Owner{Level: bucket.User, Name: name}, Limits: compile(t, bucket.Limit{Name: "day", Capacity: 900, Period: 24 * time.Hour})}
	}
	for _, test := range []struct {
		name string
		// known are the users of whom a take was refused before.
		known []string
	}{{"of other owners", []string{"bob"}}, {"of other owners and of the same", []string{"bob", ""}}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := newGated(t, backend.GateConfig{CappedCalls: 1})
			was := bucket.Bucket{Limits: compile(t, bucket.Limit{Name: "minute", Capacity: 100, Period: 24 * time.Hour, Window: bucket.Window{Kind: bucket.FixedWindow}})}
			is := bucket.Bucket{Limits: compile(t, bucket.Limit{Name: "minute", Capacity: 20, Refill: 20, Period: time.Second})}
			c.take(bucket.Take{Buckets: []bucket.Bucket{was}, Amounts: points(18)})
			for _, name := range test.known {
				buckets := []bucket.Bucket{is}
				if name != "" {
					buckets = append(buckets, user(name))
				}
				require.Equal(t, bucket.Limited, c.take(bucket.Take{Buckets: buckets, Amounts: points(10)}).Verdict, "what was spent in the window stays for a day")
			}
			c.take(bucket.Take{Buckets: []bucket.Bucket{is, user("carl")}, Amounts: points(10)})
			require.Equal(t, bucket.Admitted, c.take(bucket.Take{Buckets: []bucket.Bucket{is}, Amounts: points(1)}).Verdict)
			c.clock.advance(200 * time.Millisecond)
			require.Equal(t, bucket.Admitted, c.take(bucket.Take{Buckets: []bucket.Bucket{is, user("ann")}, Amounts: points(3)}).Verdict,
				"what is owed comes back in a second since it was charged on")
		})
	}
}
