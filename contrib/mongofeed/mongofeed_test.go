package mongofeed_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/gqlgen-ratelimit/ratelimit/contrib/mongofeed"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/policy/policytest"
)

// TestAServerOfMongoDBsProtocolIsAFeed runs the contract. A document that is larger than any that fits is cut, because the server
// takes none: its hash is that of the whole.
func TestAServerOfMongoDBsProtocolIsAFeed(t *testing.T) {
	t.Parallel()
	policytest.Run(t, func(t *testing.T) policytest.Harness {
		t.Helper()
		server := launch(t)
		collection := connect(t, server.URI)
		return policytest.Harness{
			Open: func() policy.Feed { return open(t, mongofeed.Config{Collection: connect(t, server.URI)}) },
			Put:  func(r *policy.Revision) error { return put(collection, r) },
			Empty: func() error {
				_, err := collection.DeleteMany(context.Background(), bson.D{})
				return err
			},
			Publisher: open(t, mongofeed.Config{Collection: collection}),
			Restart:   server.Restart,
		}
	})
}

func TestAServerWithoutChangeStreamsIsPolled(t *testing.T) {
	t.Parallel()
	collection := connect(t, launch(t).URI)
	feed := open(t, mongofeed.Config{Collection: collection})
	limits, err := mongofeed.NewLimits(mongofeed.LimitsConfig{Collection: collection, Service: "shop"})
	require.NoError(t, err)
	for _, f := range []policy.Feed{feed, limits} {
		require.ErrorIs(t, f.Hints(t.Context(), func() { t.Error("a hint out of nothing") }), policy.ErrNoHints)
	}
	require.NoError(t, feed.Publish(t.Context(), revision(1), 0))
	f := follow(t, feed, policy.Config{})
	require.NoError(t, feed.Publish(t.Context(), revision(2), 1))
	require.Eventually(t, func() bool { return maxCost(f) == 2 }, patience, time.Millisecond)
}

func TestThirtyTwoPublishersHaveOneWinnerEach(t *testing.T) {
	t.Parallel()
	const publishers, rounds = 32, 40
	feed := open(t, mongofeed.Config{Collection: connect(t, launch(t).URI)})
	for round := range uint64(rounds) {
		var all sync.WaitGroup
		var won, lost atomic.Int64
		for p := range publishers {
			all.Go(func() {
				document := append(revision(round+1).Document, "# "+strings.Repeat("x", p)...)
				switch err := feed.Publish(t.Context(), other(round+1, document), round); {
				case err == nil:
					won.Add(1)
				case errors.Is(err, policy.ErrConflict):
					lost.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		all.Wait()
		require.EqualValues(t, 1, won.Load(), "round %d", round)
		require.EqualValues(t, publishers-1, lost.Load(), "round %d", round)
	}
}

func TestWhatSomebodyHasWrittenIntoTheDocumentIsRefused(t *testing.T) {
	t.Parallel()
	collection := connect(t, launch(t).URI)
	feed := open(t, mongofeed.Config{Collection: collection})
	hash := revision(7).Hash
	for name, document := range map[string]bson.M{
		"a number that is none":   {"number": "seven"},
		"no number":               {"hash": hash[:]},
		"a negative number":       {"number": -1},
		"half a number":           {"number": 7.5, "hash": []byte{1}},
		"a hash that is none":     {"number": 7, "hash": []byte{1}},
		"a document that is none": {"number": 7, "hash": hash[:], "document": bson.M{"version": 1}},
		"an author that is none":  {"number": 7, "hash": hash[:], "author": 7},
		"a time that is none":     {"number": 7, "hash": hash[:], "published": "tomorrow"},
	} {
		document["_id"] = "main/0000000000000000"
		_, err := collection.DeleteMany(t.Context(), bson.D{})
		require.NoError(t, err)
		_, err = collection.InsertOne(t.Context(), document)
		require.NoError(t, err)
		_, err = feed.Newest(t.Context(), policy.Head{})
		var refused *policy.RefusedError
		require.ErrorAs(t, err, &refused, name)
		require.Equal(t, policy.ReasonMalformed, refused.Reason)
	}
	_, err := collection.UpdateOne(t.Context(), bson.D{}, bson.M{"$set": bson.M{"number": 7}})
	require.NoError(t, err)
	require.NoError(t, feed.Publish(t.Context(), revision(8), 7), "it is in nobody's way")
	r, err := feed.Newest(t.Context(), policy.Head{})
	require.NoError(t, err)
	require.EqualValues(t, 8, r.Number)
}

func TestPoliciesOfOneCollectionDoNotMeetAndNumbersMayLeap(t *testing.T) {
	t.Parallel()
	collection := connect(t, launch(t).URI)
	names := []string{"a", "a.b", "a-b", "a0", "A"}
	for i, name := range names {
		feed := open(t, mongofeed.Config{Collection: collection, Name: name})
		require.NoError(t, feed.Publish(t.Context(), revision(uint64(i+9)), 0))
		require.NoError(t, feed.Publish(t.Context(), revision(uint64(i+10)), uint64(i+9)))
		require.NoError(t, feed.Publish(t.Context(), revision(policy.MaxNumber-1-uint64(i)), uint64(i+10)))
		require.ErrorIs(t, feed.Publish(t.Context(), revision(policy.MaxNumber), 1), policy.ErrConflict)
	}
	for i, name := range names {
		r, err := open(t, mongofeed.Config{Collection: collection, Name: name}).Newest(t.Context(), policy.Head{})
		require.NoError(t, err)
		require.Equal(t, policy.MaxNumber-1-uint64(i), r.Number)
	}
}

func TestALargeDocumentIsPublishedWhereItWasAskedFor(t *testing.T) {
	t.Parallel()
	collection := connect(t, launch(t).URI)
	large := other(1, append(revision(1).Document, strings.Repeat("#", 3<<20)...))
	require.Error(t, open(t, mongofeed.Config{Collection: collection}).Publish(t.Context(), large, 0))
	feed := open(t, mongofeed.Config{Collection: collection, MaxDocument: 4 << 20})
	require.NoError(t, feed.Publish(t.Context(), large, 0))
	r, err := feed.Newest(t.Context(), policy.Head{})
	require.NoError(t, err)
	require.Len(t, r.Document, len(large.Document))
	require.ErrorContains(t, feed.Publish(t.Context(), revision(1), 1<<63), "no number is larger")
}

func TestMistakesOfTheConfigurationAreReportedAllAtOnce(t *testing.T) {
	t.Parallel()
	_, err := mongofeed.New(mongofeed.Config{Name: "c{d", MaxDocument: 16 << 20})
	for _, part := range []string{"Config.Collection is nil", "Config.Name", "Config.MaxDocument is 16777216"} {
		require.ErrorContains(t, err, part)
	}
	_, err = mongofeed.NewLimits(mongofeed.LimitsConfig{Fields: mongofeed.Fields{General: "service", Custom: "$where"}, Ignore: []string{"$where"}})
	for _, part := range []string{"LimitsConfig.Collection is nil", "LimitsConfig.Service is empty", `"service" is the name of two fields`, `"$where" is the name`, "LimitsConfig.Ignore"} {
		require.ErrorContains(t, err, part)
	}
}
