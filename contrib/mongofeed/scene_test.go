package mongofeed_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/gqlgen-ratelimit/ratelimit/contrib/mongofeed"
	"github.com/gqlgen-ratelimit/ratelimit/contrib/mongofeed/internal/ferrettest"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// patience is for how long something that has to happen may take on a busy machine.
const patience = time.Minute

// program is the server, which is built once.
var program string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	folder, err := os.MkdirTemp("", "ferretdb-")
	if err == nil {
		defer func() { _ = os.RemoveAll(folder) }()
		program, err = ferrettest.Build(folder)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// launch starts a server that ends with the test.
func launch(t testing.TB) *ferrettest.Server {
	t.Helper()
	server, err := ferrettest.Launch(program, t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	return server
}

// connect returns a collection of policies, whose client ends with the test.
func connect(t testing.TB, uri string) *mongo.Collection {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(uri).SetServerSelectionTimeout(2 * time.Second))
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	return client.Database("ratelimit").Collection("policies")
}

func open(t testing.TB, cfg mongofeed.Config) *mongofeed.Feed {
	t.Helper()
	feed, err := mongofeed.New(cfg)
	require.NoError(t, err)
	return feed
}

// put writes a revision by hand, as the only one.
func put(c *mongo.Collection, r *policy.Revision) error {
	document := bson.M{
		"_id": "main/0000000000000000", "number": int64(r.Number), "hash": r.Hash[:], "document": r.Document[:min(len(r.Document), mongofeed.MaxDocument)],
		"author": r.Author, "reason": r.Reason, "signature": r.Signature,
	}
	if !r.Published.IsZero() {
		document["published"] = r.Published
	}
	_, err := c.DeleteMany(context.Background(), bson.M{"_id": bson.M{"$ne": document["_id"]}})
	if err == nil {
		_, err = c.ReplaceOne(context.Background(), bson.M{"_id": document["_id"]}, document, options.Replace().SetUpsert(true))
	}
	return err
}

// revision returns a revision whose maximum cost is its number.
func revision(number uint64) *policy.Revision {
	return other(number, fmt.Appendf(nil, "version: 1\ndefault: free\ntiers: {free: {maxCost: %d}}\n", number))
}

func other(number uint64, document []byte) *policy.Revision {
	return &policy.Revision{Number: number, Document: document, Hash: policy.HashOf(document)}
}

func rules(source tiers.Source, tenant string) tiers.Rules {
	return source.Snapshot().Rules(tiers.Subject{Tenant: tenant}, tiers.Selection{})
}

func maxCost(source tiers.Source) uint64 { return uint64(rules(source, "x").MaxCost.Enforce) }

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// follow starts a follower that ends with the test.
func follow(t testing.TB, feed policy.Feed, cfg policy.Config) *policy.Follower {
	t.Helper()
	cfg.Observe.Logger = quiet
	cfg.Observe.Observer = event.NewLogger(quiet)
	if cfg.Interval == 0 {
		cfg.Interval = 100 * time.Millisecond
	}
	f, err := policy.Follow(t.Context(), feed, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}
