package postgresfeed_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gqlgen-ratelimit/ratelimit/contrib/postgresfeed"
	"github.com/gqlgen-ratelimit/ratelimit/internal/postgrestest"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// A policy that is published in one transaction with a line of one's own audit log, and followed by an instance.
func Example() {
	server, err := postgrestest.Launch()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = server.Close() }()
	folder, err := os.MkdirTemp("", "policy")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(folder) }()
	databaseURL, lastGood := server.URL("postgres"), filepath.Join(folder, "policy.revision")
	audited := "CREATE TABLE audit (author text, reason text, revision bigint)"

	publish := func(ctx context.Context, pool *pgxpool.Pool, feed *postgresfeed.Feed, document []byte, expected uint64) error {
		next := &policy.Revision{
			Number: expected + 1, Document: document, Hash: policy.HashOf(document),
			Author: "ada", Reason: "free gets more", Published: time.Now(),
		}
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if err := feed.PublishIn(ctx, tx, next, expected); err != nil {
				return err // policy.ErrConflict: read what is there, and decide again
			}
			_, err := tx.Exec(ctx, "INSERT INTO audit VALUES ($1, $2, $3)", next.Author, next.Reason, next.Number)
			return err
		})
	}
	serve := func(ctx context.Context) error {
		pool, err := pgxpool.New(ctx, databaseURL)
		if err != nil {
			return err
		}
		defer pool.Close()
		if err := postgresfeed.Migrate(ctx, pool, ""); err != nil { // once, by who may make tables
			return err
		}
		if _, err := pool.Exec(ctx, audited); err != nil {
			return err
		}
		feed, err := postgresfeed.New(postgresfeed.Config{Pool: pool})
		if err != nil {
			return err
		}
		if err := publish(ctx, pool, feed, []byte("{version: 1, default: free, tiers: {free: {maxCost: 500}}}"), 0); err != nil {
			return err
		}
		follower, err := policy.Follow(ctx, feed, policy.Config{
			LastGood: lastGood, // such as /var/lib/shop/policy.revision
		})
		if err != nil {
			return err
		}
		defer func() { _ = follower.Close() }()
		fmt.Println("revision", follower.Status().Number, "holds")

		if err := publish(ctx, pool, feed, []byte("{version: 1, default: free, tiers: {free: {maxCost: 700}}}"), 1); err != nil {
			return err
		}
		// It is there within milliseconds; Reload does not even wait for those.
		if err := follower.Reload(ctx); err != nil {
			return err
		}
		fmt.Println(follower.Snapshot().Rules(tiers.Subject{Tenant: "acme"}, tiers.Selection{}).MaxCost.Enforce, follower.Status().State)

		err = publish(ctx, pool, feed, []byte("{version: 1, default: free, tiers: {free: {maxCost: 900}}}"), 1)
		fmt.Println("somebody was faster:", errors.Is(err, policy.ErrConflict))
		return nil
	}
	if err := serve(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// revision 1 holds
	// 700 current
	// somebody was faster: true
}
