package bucket_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/fleet"
)

// users are so many owners of a tenant, from a number on.
func users(limits *bucket.Limits, from, n int) []bucket.Bucket {
	buckets := make([]bucket.Bucket, n)
	for i := range buckets {
		buckets[i] = bucket.Bucket{Owner: bucket.Owner{Level: bucket.User, Name: fmt.Sprint("user", from+i)}, Limits: limits}
	}
	return buckets
}

// values are so many values of a rule, from a number on: those of tenant "" are shared by all tenants.
func values(limits *bucket.Limits, rule string, from, n int) []bucket.Bucket {
	buckets := make([]bucket.Bucket, n)
	for i := range buckets {
		buckets[i] = bucket.Bucket{Owner: bucket.Owner{Level: bucket.Operation, Name: rule, Part: fmt.Sprint("value", from+i)}, Limits: limits}
	}
	return buckets
}

// admitted counts how many of 300 tenants are admitted, each with one take.
func (r *replica) admitted(prefix string, b bucket.Bucket) int {
	r.t.Helper()
	admitted := 0
	for i := range 300 {
		if r.takeAs(fmt.Sprint(prefix, i), 1, b).Verdict == bucket.Admitted {
			admitted++
		}
	}
	return admitted
}

func TestATakeOfManyOwnersForgetsNoneOfItsOwnWhereThereIsNoRoom(t *testing.T) {
	t.Parallel()
	// Room is made within one of 64 shards: each has some 64 tenants here, of which nine give it to 16 owners.
	const owners = 8192
	for _, mode := range []bucket.FailMode{bucket.FailBounded, bucket.FailLocal} {
		s := newScene(t, 1, fleet.Config{Instances: 1, MaxOwners: owners})
		r := s.replicas[0]
		limit := localLimit(1000, bucket.TokenBucket)
		limit.FailMode = mode
		limits := compile(t, limit)
		s.goAway()
		for i := range owners {
			r.takeAs(fmt.Sprint("tenant", i), 5000, bucket.Bucket{Limits: limits})
		}
		for _, buckets := range [][]bucket.Bucket{users(limits, 0, 16), values(limits, "Query.login", 0, 16)} {
			for _, tenant := range []string{"acme", ""} {
				require.NotEqual(t, bucket.Blocked, r.takeAs(tenant, 1, buckets...).Verdict)
				s.clock.advance(9 * time.Second)
				// Whether room is found is a matter of chance, and who finds none is charged nothing.
				verdict := bucket.Never
				for i := 0; verdict == bucket.Never && i < 50; i++ {
					verdict = r.takeAs(tenant, 1, buckets...).Verdict
				}
				require.Equal(t, bucket.Admitted, verdict, "%v of %q", mode, tenant)
				s.comeBack()
				s.settleAll()
				s.goAway()
			}
		}
		require.LessOrEqual(t, r.local.Held(), owners)
	}
}

// newRoom has one instance, with room for some owners, and a limit.
func newRoom(t *testing.T, owners int, limit bucket.Limit) (*scene, *replica, *bucket.Limits) {
	t.Helper()
	s := newScene(t, 1, fleet.Config{Instances: 1, MaxOwners: owners})
	return s, s.replicas[0], compile(t, limit)
}

func TestATakeOfMoreOwnersThanThereIsRoomForChargesNone(t *testing.T) {
	t.Parallel()
	s, r, limits := newRoom(t, 8, localLimit(1000, bucket.TokenBucket))
	s.goAway()
	require.NotEqual(t, bucket.Admitted, r.take(1, users(limits, 20, 4)...).Verdict, "nothing is known of them")
	s.clock.advance(9 * time.Second)
	require.Equal(t, bucket.Never, r.take(1, users(limits, 0, 16)...).Verdict)
	require.Zero(t, r.local.Owing())
	require.LessOrEqual(t, r.local.Held(), 8)
	require.Equal(t, bucket.Limited, r.take(1, users(limits, 20, 4)...).Verdict, "what was looked for and not charged makes room")
	s.clock.advance(9 * time.Second)
	require.Equal(t, bucket.Admitted, r.take(1, users(limits, 20, 4)...).Verdict)
}

func TestAnOwnerWithoutRoomIsJudgedAndNotSettled(t *testing.T) {
	t.Parallel()
	s, r, limits := newRoom(t, 8, openLimit(1000, bucket.TokenBucket))
	s.goAway()
	for range 2 {
		require.Equal(t, bucket.Admitted, r.take(1000, users(limits, 0, 16)...).Verdict)
	}
	require.Equal(t, bucket.Limited, r.take(1, users(limits, 0, 16)...).Verdict)
	require.Equal(t, bucket.Limited, r.take(1, users(limits, 15, 1)...).Verdict)
	require.LessOrEqual(t, r.local.Held(), 8)
	s.comeBack()
	s.settleAll()
	require.EqualValues(t, 0, s.remaining(users(limits, 0, 1)...))
	require.EqualValues(t, 1000, s.remaining(users(limits, 15, 1)...))
}

func TestATenantWithManyOwnersLeavesRoomForOthers(t *testing.T) {
	t.Parallel()
	for _, mode := range []bucket.FailMode{bucket.FailBounded, bucket.FailLocal} {
		limit := localLimit(1000, bucket.TokenBucket)
		limit.FailMode = mode
		s, r, limits := newRoom(t, 2048, limit)
		for i := range 300 {
			r.takeAs(fmt.Sprint("known", i), 0, bucket.Bucket{Limits: limits})
		}
		for i := range 200 {
			r.take(0, users(limits, 16*i, 16)...)
		}
		s.goAway()
		for i := range 200 {
			r.take(1, users(limits, 16*i, 16)...)
		}
		require.Equal(t, 300, r.admitted("known", bucket.Bucket{Limits: limits}), mode)
		if mode == bucket.FailBounded {
			require.Equal(t, 300, r.admitted("new", bucket.Bucket{Limits: limits}))
			require.Equal(t, bucket.Admitted, r.take(1, users(limits, 0, 16)...).Verdict, "who was judged stays known")
		}
		require.LessOrEqual(t, r.local.Held(), 2048)
	}
}

func TestWhatIsForgottenOfOneTenantEmptiesNoOther(t *testing.T) {
	t.Parallel()
	s, r, limits := newRoom(t, 64, openLimit(1000, bucket.TokenBucket))
	for i := range 200 {
		s.goAway()
		r.take(1000, users(limits, 16*i, 16)...)
		s.comeBack()
		s.settleAll()
	}
	s.goAway()
	require.Equal(t, bucket.Limited, r.take(1, users(limits, 10_000, 1)...).Verdict, "users of that tenant may be those that were forgotten")
	// What was forgotten is known by 16 384 places: of two tenants in one place it counts for both.
	require.GreaterOrEqual(t, r.admitted("other", bucket.Bucket{Limits: limits}), 297)
}

func TestValuesThatAllTenantsShareLockOutNoOthers(t *testing.T) {
	t.Parallel()
	s, r, limits := newRoom(t, 2048, openLimit(20, bucket.TokenBucket))
	fresh := func(rule string, from int) int {
		admitted := 0
		for i := range 200 {
			if r.takeAs("", 1, values(limits, rule, from+i, 1)...).Verdict == bucket.Admitted {
				admitted++
			}
		}
		return admitted
	}
	r.takeAs("", 1, values(limits, "Query.login", 0, 1)...)
	s.goAway()
	for i := range 300 {
		r.takeAs("", 1, values(limits, "Query.login", 16*i, 16)...)
	}
	require.Equal(t, 200, fresh("Query.login", 100_000), "values of the same rule")
	require.Equal(t, 200, fresh("Query.reset", 0), "values of another rule")
	require.Equal(t, 300, r.admitted("tenant", bucket.Bucket{Limits: limits}))
	s.comeBack()
	s.settleAll()
	s.goAway()
	require.Equal(t, 200, fresh("Query.login", 200_000), "the next absence")
	require.Equal(t, 300, r.admitted("next", bucket.Bucket{Limits: limits}))
	require.LessOrEqual(t, r.local.Held(), 2048)
}

func TestAValueThatFailsLocalAndFindsNoRoomIsRefused(t *testing.T) {
	t.Parallel()
	s, r, limits := newRoom(t, 256, localLimit(1000, bucket.TokenBucket))
	for i := range 10 {
		r.takeAs("", 0, values(limits, "Query.login", 16*i, 16)...)
	}
	s.goAway()
	require.Equal(t, bucket.Admitted, r.takeAs("", 1, values(limits, "Query.login", 159, 1)...).Verdict)
	for i := range 10 {
		r.takeAs("", 1, values(limits, "Query.login", 16*i, 16)...)
	}
	require.NotEqual(t, bucket.Admitted, r.takeAs("", 1, values(limits, "Query.login", 1000, 1)...).Verdict)
	require.Equal(t, bucket.Admitted, r.takeAs("", 1, values(limits, "Query.login", 159, 1)...).Verdict, "what has something to settle stays known")
}

// TestAValueIsAdmittedNoMoreThanTheMultipleWhereverItsRoomIs tries more values than there is room for, in whatever
// histories: each has at most what one bucket of the multiple would admit.
func TestAValueIsAdmittedNoMoreThanTheMultipleWhereverItsRoomIs(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		random := rand.New(rand.NewPCG(seed, 5))
		s, r, limits := newRoom(t, 64, openLimit(12, bucket.TokenBucket))
		// debts are those of one bucket for each value, in units of 1/5000 token, at the time.
		debts, at, refused := make([]int64, 400), make([]int64, 400), 0
		for range 3000 {
			s.clock.advance(time.Duration(random.Int64N(400)) * time.Millisecond)
			switch random.IntN(400) {
			case 0:
				s.comeBack()
				s.settleAll()
				s.goAway()
			default:
				s.goAway()
			}
			first, n := random.IntN(len(debts)), 1+random.IntN(3)
			if random.IntN(2) == 0 {
				// Some are tried again and again.
				first = random.IntN(20)
			}
			n = min(n, len(debts)-first)
			if r.takeAs("", 2, values(limits, "Query.login", first, n)...).Verdict != bucket.Admitted {
				refused++
				continue
			}
			now := s.clock.now().UnixMilli()
			for v := first; v < first+n; v++ {
				debts[v], at[v] = max(0, debts[v]-2*(now-at[v]))+2*5000, now
				require.LessOrEqual(t, debts[v], int64(24*5000), "seed %d", seed)
			}
		}
		require.Positive(t, refused)
		require.Less(t, refused, 2500)
		require.LessOrEqual(t, r.local.Held(), 64)
	}
}
