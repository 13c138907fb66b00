package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/webhook"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/webhook/delivery"
)

// endpoint registers one of a tenant.
func endpoint(t testing.TB, db *store.DB, tenant, id string) *store.Webhook {
	t.Helper()
	w := &store.Webhook{
		ID: id, Tenant: tenant, Subject: tenant, Types: []string{"refused"}, Sealed: []byte("sealed"), Written: store.Written{By: "ada", Reason: "why"},
	}
	require.NoError(t, db.Change(t.Context(), func(tx *store.Tx) error { return tx.AddWebhook(w) }))
	return w
}

// onEach runs a test on a database of each kind.
func onEach(t *testing.T, test func(*testing.T, *store.DB)) {
	t.Helper()
	for kind, where := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			test(t, open(t, store.Config{URL: where(t)}))
		})
	}
}

func record(to, id string) delivery.Record {
	return delivery.Record{Endpoint: to, Delivery: webhook.Begin(webhook.Message{ID: id, Body: []byte(`{}`)}, time.Now().Add(-time.Second))}
}

// withheld is the number of an event that nobody is given.
const withheld = 9999

func arrivals(subject string, from, to int) (all []store.Arrival) {
	for n := from; n < to; n++ {
		message := webhook.Message{ID: fmt.Sprint("msg_", n), Body: []byte(`{}`)}
		all = append(all, store.Arrival{Subject: subject, Type: "refused", Message: func() (webhook.Message, bool) { return message, n != withheld }})
	}
	return all
}

func TestOfSeveralWhoHaveReadAStreamOnePutsItsEvents(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *store.DB) {
		t.Helper()
		ctx, d := t.Context(), db.Deliveries()
		endpoint(t, db, "acme", "a")
		endpoint(t, db, "acme", "b")
		endpoint(t, db, "globex", "c")
		in, err := d.TakeEvents(ctx, "denials", "", "1-0", append(arrivals("acme", 0, 2), store.Arrival{Subject: "acme", Type: "other"}, store.Arrival{Subject: "nobody", Type: "refused"}))
		require.NoError(t, err)
		require.Equal(t, store.Intake{Put: 4}, in)
		_, err = d.TakeEvents(ctx, "denials", "", "1-0", arrivals("acme", 0, 2))
		require.ErrorIs(t, err, store.ErrMoved)
		_, err = d.TakeEvents(ctx, "denials", "1-0", "2-0", arrivals("acme", 1, 3))
		require.NoError(t, err)
		due, err := d.Due(ctx, time.Now(), time.Minute, 100, 100)
		require.NoError(t, err)
		require.Len(t, due, 6, "what is there under its id is the same message")
		require.Equal(t, []string{"msg_0", "msg_1", "msg_2"}, []string{due[0].Delivery.ID, due[1].Delivery.ID, due[2].Delivery.ID}, "the oldest first")
		in, err = d.TakeEvents(ctx, "denials", "2-0", "3-0", arrivals("acme", withheld, withheld+1))
		require.NoError(t, err)
		require.Zero(t, in.Put)
		position := func(want string) {
			require.NoError(t, d.LeaveStreams(ctx))
			require.NoError(t, db.Read(ctx, func(v *store.View) error {
				at, err := v.Position("denials")
				require.Equal(t, want, at)
				return err
			}))
		}
		position("3-0")
		for _, id := range []string{"a", "b", "c"} {
			require.NoError(t, db.Change(ctx, func(tx *store.Tx) error {
				w, err := tx.Webhook(id)
				require.NoError(t, err)
				_, err = tx.RemoveWebhook(w, w.Revision)
				return err
			}))
		}
		position("")
	})
}

func TestWhatWaitsForAnEndpointThatIsDisabledStaysAndIsBroughtWhenItIsNot(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *store.DB) {
		t.Helper()
		ctx, d := t.Context(), db.Deliveries()
		w := endpoint(t, db, "acme", "a")
		require.NoError(t, d.Put(ctx, record("a", "1")))
		change := func(how store.Disabled) {
			w.Disabled = how
			require.NoError(t, db.Change(ctx, func(tx *store.Tx) error { return tx.PutWebhook(w, w.Revision) }))
		}
		due := func() int {
			all, err := d.Due(ctx, time.Now(), 0, 10, 10)
			require.NoError(t, err)
			return len(all)
		}
		change(store.DisabledGone)
		require.Zero(t, due())
		in, err := d.TakeEvents(ctx, "denials", "", "1-0", arrivals("acme", 0, 1))
		require.NoError(t, err)
		require.Zero(t, in.Put, "what is new is not put")
		totals := totals(t, db)
		require.Equal(t, []int64{1, 0, 0, 1}, []int64{totals.Waiting, totals.Dead, totals.Enabled, totals.Disabled})
		require.True(t, totals.Due.IsZero())
		change(store.Enabled)
		require.Equal(t, 1, due())
	})
}

func totals(t *testing.T, db *store.DB) (found store.WebhookTotals) {
	t.Helper()
	require.NoError(t, db.Read(t.Context(), func(v *store.View) (err error) {
		found, err = v.WebhookTotals(time.Now())
		return err
	}))
	return found
}

func TestAnEndpointThatIsRemovedTakesWhatIsOnItsWayWithIt(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *store.DB) {
		t.Helper()
		ctx, d := t.Context(), db.Deliveries()
		w := endpoint(t, db, "acme", "a")
		require.NoError(t, d.Put(ctx, record("a", "1")))
		due, err := d.Due(ctx, time.Now(), time.Minute, 1, 1)
		require.NoError(t, err)
		err = db.Change(ctx, func(tx *store.Tx) error { _, err := tx.RemoveWebhook(w, w.Revision+1); return err })
		require.ErrorIs(t, err, store.ErrConflict)
		require.NoError(t, db.Change(ctx, func(tx *store.Tx) error { _, err := tx.RemoveWebhook(w, w.Revision); return err }))
		require.Equal(t, store.WebhookTotals{}, totals(t, db))
		require.ErrorIs(t, d.Done(ctx, due[0]), delivery.ErrLease)
		require.ErrorIs(t, d.Put(ctx, record("a", "2")), store.ErrNoWebhook)
	})
}

func TestATenantHasTenEndpointsAndAnEndpointAThousandMessages(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *store.DB) {
		t.Helper()
		ctx, d := t.Context(), db.Deliveries()
		for n := range store.MaxWebhooks {
			endpoint(t, db, "acme", fmt.Sprint("a", n))
		}
		err := db.Change(ctx, func(tx *store.Tx) error { return tx.AddWebhook(&store.Webhook{ID: "x", Tenant: "acme"}) })
		require.ErrorIs(t, err, store.ErrTooManyWebhooks)
		endpoint(t, db, "globex", "b")
		in, err := d.TakeEvents(ctx, "denials", "", "1-0", arrivals("globex", 0, store.MaxWaiting+5))
		require.NoError(t, err)
		require.Equal(t, store.Intake{Put: store.MaxWaiting, Full: 5}, in)
		require.ErrorIs(t, d.Put(ctx, record("b", "more")), delivery.ErrFull)
		require.NoError(t, d.Put(ctx, record("b", "msg_1")), "what is there is no further one")
		require.NoError(t, d.Put(ctx, record("a1", "1")), "another one has room")
		require.NoError(t, kill(ctx, d, "a1"))
		require.NoError(t, db.Change(ctx, func(tx *store.Tx) error {
			n, err := tx.ReplayDeliveries("a1", nil)
			require.Equal(t, 1, n)
			return err
		}))
		err = db.Change(ctx, func(tx *store.Tx) error { _, err := tx.ReplayDeliveries("a1", []string{"1"}); return err })
		require.ErrorIs(t, err, delivery.ErrNotDead)
	})
}

func TestThoseWhoWaitLongBehindSlowEndpointsKeepNobodyFromTheirTurn(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *store.DB) {
		t.Helper()
		ctx, d := t.Context(), db.Deliveries()
		for n := range store.MaxWebhooks {
			endpoint(t, db, "mallory", fmt.Sprint("m", n))
		}
		endpoint(t, db, "acme", "a")
		_, err := d.TakeEvents(ctx, "denials", "", "1-0", arrivals("mallory", 0, 200))
		require.NoError(t, err)
		_, err = d.TakeEvents(ctx, "denials", "1-0", "2-0", arrivals("acme", 0, 1))
		require.NoError(t, err)
		// All attempts of a round end before the next one begins, and none arrives: 2000 are due before that of acme.
		const rounds, atOnce = 120, 4
		now := time.Now().Add(time.Second)
		for range rounds {
			due, err := d.Due(ctx, now, time.Minute, atOnce, 2)
			require.NoError(t, err)
			for _, r := range due {
				if r.Endpoint == "a" {
					return
				}
				r.Delivery = r.Delivery.After(webhook.Result{Outcome: webhook.Slow, Reason: webhook.ReasonTimeout}, now, 0)
				require.NoError(t, d.Done(ctx, r))
			}
		}
		require.Fail(t, "acme was never tried")
	})
}

func TestWhatHasBeenDeadSinceATimeIsForgottenAndNothingElse(t *testing.T) {
	t.Parallel()
	for kind, where := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
			db := open(t, store.Config{URL: where(t), Now: func() time.Time { return now }})
			ctx, d := t.Context(), db.Deliveries()
			endpoint(t, db, "acme", "a")
			endpoint(t, db, "globex", "b")
			for _, one := range []struct {
				to, id string
				after  time.Duration
			}{{"a", "1", 0}, {"b", "2", time.Second}, {"a", "3", time.Second}} {
				now = now.Add(one.after)
				require.NoError(t, d.Put(ctx, record(one.to, one.id)))
				require.NoError(t, kill(ctx, d, one.to))
			}
			waits := delivery.Record{Endpoint: "a", Delivery: webhook.Begin(webhook.Message{ID: "waits", Body: []byte(`{}`)}, now.Add(-time.Hour))}
			require.NoError(t, d.Put(ctx, waits))
			left := func() (ids []string) {
				for _, to := range []string{"a", "b"} {
					dead, err := d.Dead(ctx, to, 10)
					require.NoError(t, err)
					for i := range dead {
						ids = append(ids, dead[i].Delivery.ID)
					}
				}
				return ids
			}
			require.Equal(t, []string{"3", "1", "2"}, left())
			begun := now.Add(-2 * time.Second)
			for _, want := range []struct {
				since time.Time
				n     int64
				left  []string
			}{
				{begun.Add(-time.Microsecond), 0, []string{"3", "1", "2"}},
				{begun, 1, []string{"3", "2"}},
				{begun.Add(time.Second), 1, []string{"3"}},
				{now.Add(time.Hour), 1, nil},
			} {
				n, err := d.Forget(ctx, want.since)
				require.NoError(t, err)
				require.Equal(t, want.n, n)
				require.Equal(t, want.left, left())
			}
			require.EqualValues(t, 1, totals(t, db).Waiting)
		})
	}
}

func TestMoreThanAreForgottenInOneChangeAreForgotten(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *store.DB) {
		t.Helper()
		ctx, d := t.Context(), db.Deliveries()
		for _, name := range []string{"a", "b"} {
			endpoint(t, db, name, name)
			_, err := d.TakeEvents(ctx, name, "", "1-0", arrivals(name, 0, store.MaxWaiting))
			require.NoError(t, err)
		}
		require.NoError(t, db.Change(ctx, (*store.Tx).KillAll))
		require.EqualValues(t, 2*store.MaxWaiting, totals(t, db).Dead)
		n, err := d.Forget(ctx, time.Now().Add(time.Hour))
		require.NoError(t, err)
		require.EqualValues(t, 2*store.MaxWaiting, n)
		require.Zero(t, totals(t, db).Dead)
	})
}

// kill makes what is due of an endpoint dead.
func kill(ctx context.Context, d store.Deliveries, id string) error {
	due, err := d.Due(ctx, time.Now(), time.Minute, store.MaxPage, 1)
	for _, r := range due {
		if r.Endpoint != id || err != nil {
			continue
		}
		r.Delivery = r.Delivery.After(webhook.Result{Outcome: webhook.Gone, Status: 410}, time.Now(), 0)
		err = d.Done(ctx, r)
	}
	return err
}

func BenchmarkDueAmong50000MessagesThatWait(b *testing.B) {
	for kind, where := range kinds {
		b.Run(kind, func(b *testing.B) {
			db := open(b, store.Config{URL: where(b)})
			d, ctx, at := db.Deliveries(), context.Background(), ""
			for tenant := range 50 {
				name := fmt.Sprint("tenant-", tenant)
				endpoint(b, db, name, name)
				next := fmt.Sprint(tenant)
				_, err := d.TakeEvents(ctx, "denials", at, next, arrivals(name, 0, store.MaxWaiting))
				require.NoError(b, err)
				at = next
			}
			for b.Loop() {
				_, err := d.Due(ctx, time.Now(), 0, 256, 2)
				require.NoError(b, err)
			}
		})
	}
}
