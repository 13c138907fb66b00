package bucket_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

func TestABlockIsInForceAtEachInstanceOfAShardAfterABeatAndAfterALeaseIfNobodyExchanges(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		beats bool
		after time.Duration
	}{
		"after a beat": {true, 1200 * time.Millisecond}, "after a lease": {false, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSharedScene(t)
			other := s.instance()
			take := s.of(1, sharedSecond)
			// It exchanges until it does so only once a second.
			for range 200 {
				require.Equal(t, bucket.Admitted, s.ask(s.store, take).Verdict)
				require.Equal(t, bucket.Admitted, s.ask(other, take).Verdict)
				s.lives(20*time.Millisecond, s.store, other)
			}
			// The lease has just begun.
			for was := s.home.exchanges; s.home.exchanges == was; {
				s.ask(s.store, take)
				s.lives(20*time.Millisecond, s.store, other)
			}
			_, err := s.home.SetOverride(t.Context(), "acme", bucket.Override{Blocked: true, Reason: "abuse", Actor: "ops"})
			require.NoError(t, err)
			require.Equal(t, bucket.Admitted, s.ask(other, take).Verdict, "the shard does not know yet")
			if c.beats {
				s.lives(c.after, s.store, other)
			} else {
				s.now += c.after
			}
			for _, i := range []*bucket.Sharded{s.store, other, s.instance()} {
				require.Equal(t, bucket.Blocked, s.ask(i, take).Verdict)
				require.Equal(t, bucket.Blocked, s.ask(i, s.of(3001, sharedSecond)).Verdict, "what no limit can hold is no way to find out")
			}
		})
	}
}

func TestHomeDecidesWhereTheStateOfAShardIsNotReadable(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(string) string{
		"something else":        func(string) string { return "something else" },
		"another version":       func(record string) string { return "\x02" + record[1:] },
		"cut":                   func(record string) string { return record[:len(record)-1] },
		"longer":                func(record string) string { return record + "x" },
		"more limits than kept": func(record string) string { return record[:1] + "\xff" + record[2:] },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSharedScene(t)
			take := s.of(1, sharedSecond)
			require.Equal(t, bucket.Admitted, s.ask(s.store, take).Verdict)
			bucket.SetShardRecord(s.shard, "acme", []byte(spoil(string(bucket.ShardRecord(s.shard, "acme")))))
			for range 5 {
				was := s.home.takes
				require.Equal(t, bucket.Admitted, s.ask(s.store, take).Verdict)
				require.Equal(t, was+1, s.home.takes)
			}
		})
	}
}

// While a policy is rolled out its instances and those of before take from one shard. Limits of another name are other ones, as they are at home.
func TestTwoPoliciesAtOneShardAdmitNoMoreThanTheLargerOneInAnyInterval(t *testing.T) {
	t.Parallel()
	second := func(capacity int64) bucket.Limit {
		return bucket.Limit{Name: "second", Capacity: capacity, Refill: capacity, Period: time.Second}
	}
	minute := bucket.Limit{Name: "minute", Capacity: 1 << 30, Period: time.Minute}
	for name, next := range map[string][]bucket.Limit{
		"a larger one": {second(6000)}, "a smaller one": {second(500)}, "one of more limits": {second(3000), minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSharedScene(t)
			other := s.instance()
			largest := max(3000, next[0].Capacity)
			admitted, begin := int64(0), s.now
			for range 4000 {
				for i, take := range []bucket.Take{s.of(20, second(3000)), s.of(20, next...)} {
					if s.ask([]*bucket.Sharded{s.store, other}[i], take).Verdict == bucket.Admitted {
						admitted += 20
					}
				}
				s.now += 2 * time.Millisecond
				if admitted > largest+int64((s.now-begin).Seconds()*float64(largest))+1 {
					require.Fail(t, "more than the larger policy", "%d after %v", admitted, s.now-begin)
				}
				s.store.Tend(t.Context())
				other.Tend(t.Context())
			}
			t.Logf("%d in 8 s, %+v %+v", admitted, s.store.Stats(), other.Stats())
			require.Positive(t, admitted)
		})
	}
}
