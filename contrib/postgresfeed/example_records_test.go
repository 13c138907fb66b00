package postgresfeed_test

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gqlgen-ratelimit/ratelimit/contrib/postgresfeed"
	"github.com/gqlgen-ratelimit/ratelimit/internal/postgrestest"
	"github.com/gqlgen-ratelimit/ratelimit/policy/directory"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Records of tenants that are written in one transaction, and read by an instance when a tenant comes.
func ExampleRecords() {
	server, err := postgrestest.Launch()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = server.Close() }()
	databaseURL := server.URL("postgres")
	// The result of policy.Follow, for example.
	follower, err := tiers.Load([]byte("{version: 1, default: free, tiers: {free: {maxCost: 100}, pro: {maxCost: 1000}}}"), 1)
	if err != nil {
		fmt.Println(err)
		return
	}

	serve := func(ctx context.Context, documents map[string][]byte) error {
		pool, err := pgxpool.New(ctx, databaseURL)
		if err != nil {
			return err
		}
		defer pool.Close()
		if err := postgresfeed.Migrate(ctx, pool, ""); err != nil { // once, by who may make tables
			return err
		}
		records, err := postgresfeed.NewRecords(postgresfeed.RecordsConfig{Pool: pool})
		if err != nil {
			return err
		}
		err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			for tenant, document := range documents {
				if _, err := records.PutIn(ctx, tx, tenant, document, 0); err != nil {
					return err // directory.ErrConflict: read what is there, and decide again
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		d, err := directory.Open(ctx, follower, records, directory.Config{MissDeadline: 5 * time.Second})
		if err != nil {
			return err
		}
		defer func() { _ = d.Close() }()
		for _, tenant := range []string{"acme", "globex", "initech"} {
			subject := tiers.Subject{Tenant: tenant}
			fmt.Println(tenant, d.Snapshot().Rules(subject, tiers.Selection{Record: d.Prepare(ctx, subject)}).MaxCost.Enforce)
		}
		return nil
	}
	err = serve(context.Background(), map[string][]byte{"acme": []byte(`{"tier": "pro"}`), "globex": []byte(`{"maxCost": 250}`)})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// acme 1000
	// globex 250
	// initech 100
}
