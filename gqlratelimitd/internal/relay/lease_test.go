package relay_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/relay"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

func TestOfTwoRelaysOneLeadsAndTheOtherTakesOver(t *testing.T) {
	t.Parallel()
	both(t, func(s *scene) {
		t := s.TB
		first, stop := s.start(s.config())
		s.eventually(func() bool { return first.Status().Leads })
		second, _ := s.start(s.config())
		s.eventually(func() bool { return second.Status().Holder != "" })
		require.False(t, second.Status().Leads)
		s.publish(1)
		s.eventually(func() bool { return s.newest() == 1 })
		stop()
		s.publish(2)
		s.eventually(func() bool { return s.newest() == 2 && second.Status().Leads })
	})
}

func TestTwoRelaysAtOnceLoseNothingAndLeaveNothingOlder(t *testing.T) {
	t.Parallel()
	both(t, func(s *scene) {
		t := s.TB
		// Each of them believes that it leads alone.
		var relays []*relay.Relay
		for range 2 {
			r, stop := s.start(s.config())
			relays = append(relays, r)
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				relay.CarryWithoutLease(ctx, r)
			}()
			stop()
			t.Cleanup(func() { cancel(); <-ended })
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			highest := uint64(0)
			for highest < 50 && t.Context().Err() == nil {
				n := s.newest()
				if n > 0 && n < highest {
					t.Errorf("revision %d after %d", n, highest)
					return
				}
				highest = max(highest, n)
			}
		}()
		for i := uint64(1); i <= 50; i++ {
			s.publish(i)
			s.override("acme", int64(i), later)
			s.assign("acme", fmt.Sprintf(`{"tier":"t%d"}`, i))
			relays[i%2].Wake()
		}
		s.eventually(func() bool {
			return s.newest() == 50 && s.capacity("acme") == 50 && s.record("acme") == `{"tier":"t50"}`
		})
		<-ended
		s.override("acme", 0, time.Time{})
		s.assign("acme", "")
		s.eventually(func() bool { return s.there("acme") == nil && s.record("acme") == "" })
		require.Empty(t, s.entries(), "neither takes the records of the other for those of a stranger")
	})
}

func TestALeaseWhoseHolderIsGoneIsTakenAndOneThatIsTakenAwayIsLost(t *testing.T) {
	t.Parallel()
	both(t, func(s *scene) {
		take := func() {
			s.change(func(tx *store.Tx) error {
				there, err := tx.Lease("relay")
				if err == nil {
					_, err = tx.TakeLease("relay", "somebody else", there)
				}
				return err
			})
		}
		take()
		s.publish(1)
		r, _ := s.start(s.config())
		s.eventually(func() bool { return r.Status().Holder == "somebody else" })
		s.eventually(func() bool { return s.newest() == 1 && r.Status().Leads })
		take()
		s.eventually(func() bool { return r.Status().Holder == "somebody else" && !r.Status().Leads })
		s.eventually(func() bool { return r.Status().Leads })
	})
}

func TestARelayRunsOnceAtATime(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	r, _ := s.start(s.config())
	s.eventually(func() bool { return r.Status().Leads })
	require.Error(t, r.Run(t.Context()))
}
