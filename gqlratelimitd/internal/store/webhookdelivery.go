package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/webhook"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/webhook/delivery"
)

// Bounds of what is on its way to endpoints.
const (
	// MaxWaiting is how many messages wait for an endpoint, and MaxDead how many that are tried no more are kept of it.
	MaxWaiting = 1000
	MaxDead    = 100
	// MaxWaitingInAll is how many messages wait for all endpoints. A tenant never has more than are free beside it.
	MaxWaitingInAll = 50_000
)

// ErrNoWebhook says that there is no such endpoint, any more perhaps.
var ErrNoWebhook = errors.New("store: there is no such endpoint")

// deliveryLock is the advisory lock of those who change deliveries: "webhook" in ASCII.
const deliveryLock = 0x776562686f6f6b

// Deliveries are what is on its way to endpoints of tenants, for a [delivery.Worker]. Several workers, in several daemons, have the same. Changes of
// deliveries wait for each other, and for no other change. What waits for an endpoint that is disabled is not due.
type Deliveries struct{ db *DB }

var _ delivery.Deliveries = Deliveries{}

// Deliveries returns those of the database.
func (db *DB) Deliveries() Deliveries { return Deliveries{db} }

// change makes a change of deliveries, without the head row.
func (d Deliveries) change(ctx context.Context, change func(*Tx) error) error {
	return repeat(ctx, func(ctx context.Context) error {
		return d.db.change(ctx, false, func(tx *Tx) error {
			if err := tx.lockDeliveries(); err != nil {
				return err
			}
			return change(tx)
		})
	})
}

// lockDeliveries makes this the only change of deliveries until it ends. Who has the head row too has that first.
func (tx *Tx) lockDeliveries() error {
	if tx.dialect == SQLite {
		// There is one writer.
		return nil
	}
	return tx.exec("SELECT pg_advisory_xact_lock($1)", int64(deliveryLock))
}

// PutDelivery puts a message before an endpoint. One whose endpoint and id are there stays as it is: it is the same message. The error is
// [delivery.ErrFull] where there is no room, and [ErrNoWebhook] for an endpoint that there is not.
func (tx *Tx) PutDelivery(r delivery.Record) error {
	if err := tx.lockDeliveries(); err != nil {
		return err
	}
	return tx.newRoom().put(&r)
}

// room is how many messages wait, as far as it was counted in a change, by endpoint and by tenant.
type room struct {
	tx         *Tx
	inAll      int64
	of, tenant map[string]*int64
}

func (tx *Tx) newRoom() *room {
	return &room{tx: tx, inAll: -1, of: map[string]*int64{}, tenant: map[string]*int64{}}
}

// counted returns a count, which is made once.
func (r *room) counted(in map[string]*int64, key, query string, argument any) (*int64, error) {
	if n := in[key]; n != nil {
		return n, nil
	}
	n, err := one(&r.tx.View, scanNumber, query, argument)
	in[key] = n
	return n, err
}

// put puts a record that waits, where there is room.
func (r *room) put(record *delivery.Record) error {
	if of := r.of[record.Endpoint]; of != nil && *of >= MaxWaiting {
		// Nobody looks for a message of a flood for which there is no room: all others would wait.
		return delivery.ErrFull
	}
	there, err := one(&r.tx.View, scanNumber, "SELECT count(*) FROM webhook_delivery WHERE webhook = $1 AND id = $2", record.Endpoint, record.Delivery.ID)
	if err != nil || *there > 0 {
		return err
	}
	owner, err := one(&r.tx.View, func(row scanner, tenant *[]byte) error { return row.Scan(tenant) }, "SELECT tenant FROM webhook WHERE id = $1", record.Endpoint)
	if err != nil {
		return err
	}
	if owner == nil {
		return ErrNoWebhook
	}
	if err := r.take(record.Endpoint, string(*owner)); err != nil {
		return err
	}
	d := &record.Delivery
	return r.tx.exec(`INSERT INTO webhook_delivery (webhook, id, body, dead, attempts, due, lease, outcome, reason, status, began)
		VALUES ($1, $2, $3, 0, $4, $5, 0, $6, $7, $8, $9)`,
		record.Endpoint, d.ID, stored(d.Body), d.Attempts, micros(d.Due), string(d.Outcome), string(d.Reason), d.Status, micros(r.tx.now))
}

// take takes room for one more message, or returns [delivery.ErrFull].
func (r *room) take(endpoint, owner string) error {
	if r.inAll < 0 {
		n, err := one(&r.tx.View, scanNumber, "SELECT count(*) FROM webhook_delivery WHERE dead = 0")
		if err != nil {
			return err
		}
		r.inAll = *n
	}
	of, err := r.counted(r.of, endpoint, "SELECT count(*) FROM webhook_delivery WHERE webhook = $1 AND dead = 0", endpoint)
	if err != nil {
		return err
	}
	tenant, err := r.counted(r.tenant, owner, `SELECT count(*) FROM webhook_delivery d JOIN webhook w ON w.id = d.webhook
		WHERE w.tenant = $1 AND d.dead = 0`, []byte(owner))
	if err != nil {
		return err
	}
	if *of >= MaxWaiting || *tenant+1 > MaxWaitingInAll-r.inAll {
		return delivery.ErrFull
	}
	r.inAll, *of, *tenant = r.inAll+1, *of+1, *tenant+1
	return nil
}

const (
	deliveryColumns = "d.webhook, d.id, d.body, d.dead, d.attempts, d.due, d.lease, d.outcome, d.reason, d.status"
	// readySQL are endpoints of which more may be leased, in any order, and how many are leased already: by age those that are slow would
	// always come first. It asks each endpoint, and not each message: a window over all of these took fifty times as long.
	readySQL = `SELECT id, held FROM (SELECT w.id,
			(SELECT count(*) FROM webhook_delivery l WHERE l.webhook = w.id AND l.lease <> 0 AND l.dead = 0 AND l.due > $1) AS held,
			(SELECT min(d.due) FROM webhook_delivery d WHERE d.webhook = w.id AND d.dead = 0) AS earliest
		FROM webhook w WHERE w.disabled = '') ready
		WHERE earliest <= $1 AND held < $2 ORDER BY random() LIMIT $3`
	// dueSQL are the messages of an endpoint that are due.
	dueSQL = "SELECT " + deliveryColumns + ` FROM webhook_delivery d WHERE d.webhook = $1 AND d.dead = 0 AND d.due <= $2
		ORDER BY d.due, d.began, d.id LIMIT $3`
)

// ready is an endpoint of which more may be leased, and how many are.
type ready struct {
	id   string
	held int
}

func scanReady(row scanner, r *ready) error { return row.Scan(&r.id, &r.held) }

func scanDelivery(row scanner, r *delivery.Record) error {
	var dead, lease int64
	d := &r.Delivery
	err := row.Scan(&r.Endpoint, &d.ID, &d.Body, &dead, &d.Attempts, instant{&d.Due}, &lease, &d.Outcome, &d.Reason, &d.Status)
	r.Lease, d.State = uint64(lease), webhook.Waiting
	if dead != 0 {
		d.State = webhook.Dead
	}
	return err
}

// Due implements [delivery.Deliveries]. Where nothing is due it writes nothing.
func (d Deliveries) Due(ctx context.Context, now time.Time, lease time.Duration, limit, perEndpoint int) (due []delivery.Record, _ error) {
	some := false
	err := d.db.Read(ctx, func(v *View) error {
		found, err := many(v, scanReady, readySQL, micros(now), perEndpoint, 1)
		some = len(found) > 0
		return err
	})
	if err != nil || !some {
		return nil, err
	}
	err = d.change(ctx, func(tx *Tx) (err error) {
		due, err = tx.lease(now, now.Add(lease), limit, perEndpoint)
		return err
	})
	if err != nil {
		return nil, err
	}
	return due, nil
}

// lease leases what is due until a time.
func (tx *Tx) lease(now, until time.Time, limit, perEndpoint int) (due []delivery.Record, _ error) {
	number := rand.Int64() | 1 //nolint:gosec // A lease is no secret: it is told from others.
	endpoints, err := many(&tx.View, scanReady, readySQL, micros(now), perEndpoint, page(limit))
	if err != nil {
		return nil, err
	}
	for _, endpoint := range endpoints {
		of, err := many(&tx.View, scanDelivery, dueSQL, endpoint.id, micros(now), min(perEndpoint-endpoint.held, limit-len(due)))
		if err != nil {
			return nil, err
		}
		for i := range of {
			of[i].Lease = uint64(number)
			err := tx.exec("UPDATE webhook_delivery SET lease = $1, due = $2 WHERE webhook = $3 AND id = $4", number, micros(until), endpoint.id, of[i].Delivery.ID)
			if err != nil {
				return nil, err
			}
		}
		if due = append(due, of...); len(due) >= limit {
			break
		}
	}
	return due, nil
}

// Done implements [delivery.Deliveries].
func (d Deliveries) Done(ctx context.Context, r delivery.Record) error {
	return d.change(ctx, func(tx *Tx) error {
		to := &r.Delivery
		const leased = " WHERE webhook = $1 AND id = $2 AND lease = $3 AND lease <> 0 AND dead = 0"
		where := []any{r.Endpoint, to.ID, int64(r.Lease)}
		var changed int64
		var err error
		switch to.State {
		case webhook.Done:
			changed, err = tx.affect("DELETE FROM webhook_delivery"+leased, where...)
		case webhook.Dead, webhook.Waiting:
			dead, due := int64(0), micros(to.Due)
			if to.State == webhook.Dead {
				dead = 1
				if due, err = tx.died(r.Endpoint); err != nil {
					return err
				}
			}
			changed, err = tx.affect("UPDATE webhook_delivery SET lease = 0, dead = $4, attempts = $5, due = $6, outcome = $7, reason = $8, status = $9"+leased,
				append(where, dead, to.Attempts, due, string(to.Outcome), string(to.Reason), to.Status)...)
		default:
			return fmt.Errorf("store: a delivery in the state %.20q", to.State)
		}
		switch {
		case err != nil:
			return err
		case changed == 0:
			return delivery.ErrLease
		case to.State != webhook.Dead:
			return nil
		}
		return tx.exec(`DELETE FROM webhook_delivery WHERE webhook = $1 AND dead = 1 AND due <= (
			SELECT due FROM webhook_delivery WHERE webhook = $1 AND dead = 1 ORDER BY due DESC LIMIT 1 OFFSET $2)`, r.Endpoint, MaxDead)
	})
}

// died is the time of what dies now: later than that of all others of the endpoint, so that they have an order.
func (tx *Tx) died(endpoint string) (int64, error) {
	last, err := one(&tx.View, scanNumber, "SELECT coalesce(max(due), 0) FROM webhook_delivery WHERE webhook = $1 AND dead = 1", endpoint)
	if err != nil {
		return 0, err
	}
	return max(micros(tx.now), *last+1), nil
}

// DeadDeliveries returns up to limit dead messages of an endpoint, the latest first. Delivery.Due is since when a message is dead.
func (v *View) DeadDeliveries(endpoint string, limit int) ([]delivery.Record, error) {
	return many(v, scanDelivery, "SELECT "+deliveryColumns+" FROM webhook_delivery d WHERE webhook = $1 AND dead = 1 ORDER BY due DESC LIMIT $2", endpoint, page(limit))
}

const (
	// forgotten is how many dead messages one change removes.
	forgotten = 1000
	// oldSQL are messages that have been dead for long, the oldest first.
	oldSQL = "SELECT webhook, id FROM webhook_delivery WHERE dead = 1 AND due <= $1 ORDER BY due LIMIT $2"
)

// Forget removes what has been dead since a time or longer, and returns how many messages that were. Where nothing has, it writes nothing.
func (d Deliveries) Forget(ctx context.Context, since time.Time) (all int64, _ error) {
	for {
		some := false
		err := d.db.Read(ctx, func(v *View) error {
			found, err := one(v, func(row scanner, to *[2]string) error { return row.Scan(&to[0], &to[1]) }, oldSQL, micros(since), 1)
			some = found != nil
			return err
		})
		if err != nil || !some {
			return all, err
		}
		removed := int64(0)
		err = d.change(ctx, func(tx *Tx) (err error) {
			removed, err = tx.affect("DELETE FROM webhook_delivery WHERE (webhook, id) IN ("+oldSQL+")", micros(since), forgotten)
			return err
		})
		if err != nil {
			return all, err
		}
		all += removed
	}
}

// ReplayDeliveries makes dead messages of an endpoint wait again, due now, in the order in which they died: those of some IDs, or all for none. It returns how many. The
// error is [delivery.ErrNotDead] if one of them is not dead, and [delivery.ErrFull] if there is no room for all.
func (tx *Tx) ReplayDeliveries(endpoint string, ids []string) (int, error) {
	if err := tx.lockDeliveries(); err != nil {
		return 0, err
	}
	dead, err := tx.DeadDeliveries(endpoint, MaxDead)
	if err != nil {
		return 0, err
	}
	if len(ids) > 0 {
		dead = slices.DeleteFunc(dead, func(r delivery.Record) bool { return !slices.Contains(ids, r.Delivery.ID) })
		if len(dead) != len(slices.Compact(slices.Sorted(slices.Values(ids)))) {
			return 0, delivery.ErrNotDead
		}
	}
	owner, err := tx.Webhook(endpoint)
	if err != nil || len(dead) == 0 {
		return 0, err
	}
	if owner == nil {
		return 0, ErrNoWebhook
	}
	slices.SortFunc(dead, func(a, b delivery.Record) int {
		return cmp.Compare(a.Delivery.Due.UnixNano(), b.Delivery.Due.UnixNano())
	})
	room := tx.newRoom()
	for i := range dead {
		if err := room.take(endpoint, owner.Tenant); err != nil {
			return 0, err
		}
		again := dead[i].Delivery.Replay(tx.now)
		err := tx.exec("UPDATE webhook_delivery SET dead = 0, lease = 0, attempts = 0, due = $1, outcome = '', reason = '', status = 0, began = $2 WHERE webhook = $3 AND id = $4",
			micros(again.Due), micros(tx.now)+int64(i), endpoint, again.ID)
		if err != nil {
			return 0, err
		}
	}
	return len(dead), nil
}
