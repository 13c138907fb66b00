package store

import (
	"context"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/webhook/delivery"
)

// Put is [Tx.PutDelivery] in a change of its own.
func (d Deliveries) Put(ctx context.Context, r delivery.Record) error {
	return d.change(ctx, func(tx *Tx) error { return tx.PutDelivery(r) })
}

// Dead is [View.DeadDeliveries] in a view of its own.
func (d Deliveries) Dead(ctx context.Context, endpoint string, limit int) (dead []delivery.Record, _ error) {
	err := d.db.Read(ctx, func(v *View) (err error) {
		dead, err = v.DeadDeliveries(endpoint, limit)
		return err
	})
	return dead, err
}

// Replay is [Tx.ReplayDeliveries] of one message in a change of its own.
func (d Deliveries) Replay(ctx context.Context, endpoint, id string) error {
	return d.change(ctx, func(tx *Tx) error {
		_, err := tx.ReplayDeliveries(endpoint, []string{id})
		return err
	})
}

// Numbers returns what a query returns, of which the last column is a number: sums by what the other columns say.
func (v *View) Numbers(query string) (map[string]int64, error) {
	type row struct {
		name string
		n    int64
	}
	rows, err := many(v, func(from scanner, r *row) error { return from.Scan(&r.name, &r.n) }, query)
	sums := map[string]int64{}
	for _, r := range rows {
		sums[r.name] += r.n
	}
	return sums, err
}

// OverrideTenantsSQL is what [View.OverrideTenants] asks.
const OverrideTenantsSQL = overrideTenantsSQL

// OpenIntentsSQL is the query for overrides that are open. It reads nothing of what is over.
const OpenIntentsSQL = openIntentsSQL

// Plan returns how the database finds rows.
func (v *View) Plan(query string, args ...any) (string, error) { return v.explain(query, args) }

// Explain returns what PostgreSQL says about a query that it has run, in JSON.
func (v *View) Explain(query string, args ...any) ([]byte, error) {
	plan, err := one(v, scanBytes, "EXPLAIN (ANALYZE, FORMAT JSON) "+query, args...) //nolint:misspell // a word of SQL
	if err != nil {
		return nil, err
	}
	return *plan, nil
}

// KillAll has nothing tried any more that waits for an endpoint.
func (tx *Tx) KillAll() error { return tx.exec("UPDATE webhook_delivery SET dead = 1") }
