package bucket_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/fleet"
)

func (s *scene) override(o bucket.Override) {
	s.t.Helper()
	o.Reason, o.Actor = "test", "test"
	_, err := s.store.SetOverride(context.Background(), "acme", o)
	require.NoError(s.t, err)
}

func TestAnOverrideRecordThatOnlyARefusalHasShownHolds(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1, fleet.Config{Instances: 1})
	r := s.replicas[0]
	b := bucket.Bucket{Limits: compile(t, localLimit(60_000, bucket.TokenBucket))}
	s.override(bucket.Override{Limit: "minute", Capacity: 60})
	require.Equal(t, bucket.Never, r.take(61, b).Verdict)
	s.goAway()
	require.EqualValues(t, 42, r.drain(1, b), "0.7 of 60")
	s.comeBack()
	r.take(0, b)

	// It is changed, and then removed.
	s.override(bucket.Override{Limit: "minute", Capacity: 30})
	s.clock.advance(time.Hour)
	r.take(31, b)
	s.goAway()
	require.EqualValues(t, 21, r.drain(1, b), "0.7 of 30")
	s.comeBack()
	_, err := s.store.ClearOverrides(context.Background(), "acme")
	require.NoError(t, err)
	s.clock.advance(time.Hour)
	r.take(60_001, b)
	s.clock.advance(time.Millisecond)
	r.take(60_001, b)
	s.goAway()
	require.EqualValues(t, 42_000, r.drain(100, b))
}

func TestAnOverrideRecordHoldsUnderAPolicyThatIsLoadedWhileTheStoreIsAway(t *testing.T) {
	t.Parallel()
	for _, expires := range []time.Duration{0, time.Minute} {
		s := newScene(t, 1, fleet.Config{Instances: 1})
		r := s.replicas[0]
		record := bucket.Override{Limit: "minute", Capacity: 60}
		if expires > 0 {
			record.Expires = s.clock.now().Add(expires)
		}
		s.override(record)
		r.take(0, bucket.Bucket{Limits: compile(t, localLimit(60_000, bucket.TokenBucket))})
		reloaded := bucket.Bucket{Limits: compile(t, localLimit(90_000, bucket.TokenBucket))}
		s.goAway()
		require.EqualValues(t, 42, r.drain(1, reloaded))
		if expires > 0 {
			s.clock.advance(expires)
			reloaded.Limits = compile(t, localLimit(6000, bucket.TokenBucket))
			require.Equal(t, bucket.Admitted, r.take(4200, reloaded).Verdict, "the record has expired")
		}
	}
}

func TestWhomTheStoreHasBlockedStaysBlockedWhileItIsAway(t *testing.T) {
	t.Parallel()
	alice := bucket.Owner{Level: bucket.User, Name: "alice"}
	for _, owner := range []bucket.Owner{{}, alice} {
		s := newScene(t, 1, fleet.Config{Instances: 1})
		r := s.replicas[0]
		limits := compile(t, localLimit(6000, bucket.TokenBucket))
		tenant, user := bucket.Bucket{Limits: limits}, bucket.Bucket{Owner: alice, Limits: limits}
		r.take(1, tenant, user)
		s.override(bucket.Override{Owner: owner, Blocked: true, Expires: s.clock.now().Add(time.Minute)})
		require.Equal(t, bucket.Blocked, r.take(1, tenant, user).Verdict)
		s.goAway()
		blocked := r.take(1, tenant, user)
		require.Equal(t, bucket.Blocked, blocked.Verdict)
		require.Equal(t, owner, blocked.BlockedBy().Owner)
		if owner == alice {
			require.Equal(t, bucket.Admitted, r.take(1, tenant).Verdict, "another user of the tenant")
		}
		require.Equal(t, bucket.Admitted, r.takeAs("neighbour", 0, tenant).Verdict)
		s.clock.advance(time.Minute)
		require.Equal(t, bucket.Admitted, r.take(1, tenant, user).Verdict, "the record has expired")
	}
}

func TestWhomTheStoreBlocksNoLongerIsNotBlockedWhileItIsAway(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1, fleet.Config{Instances: 1})
	r := s.replicas[0]
	b := bucket.Bucket{Limits: compile(t, localLimit(6000, bucket.TokenBucket))}
	s.override(bucket.Override{Blocked: true})
	require.Equal(t, bucket.Blocked, r.take(1, b).Verdict)
	_, err := s.store.ClearOverrides(context.Background(), "acme")
	require.NoError(t, err)
	require.Equal(t, bucket.Admitted, r.take(1, b).Verdict)
	s.goAway()
	require.Equal(t, bucket.Admitted, r.take(1, b).Verdict)
}
