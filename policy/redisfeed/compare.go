package redisfeed

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/policy"
)

// scriptEvery is which of the questions of a follower that has a revision is the script's, whatever the marker says: what
// somebody has written into the key by hand, beside the marker, is seen then.
const scriptEvery = 10

// markerOf is a field of the revision's hash that is there while this is the newest one: [Feed.Publish] replaces the whole
// hash. Whether a field is there is the cheapest question that a Redis answers, and its answer has a few bytes whoever
// has written what into the key. A field that is read has as many as somebody has written.
func markerOf(head policy.Head) string {
	return "is:" + strconv.FormatUint(head.Number, 10) + ":" + head.Hash.String()
}

// compare returns true if the marker says that the newest revision is the one that the follower has. Otherwise the script has to say
// what is.
func (f *Feed) compare(ctx context.Context, have policy.Head) (same bool, _ error) {
	if f.scripted || have.Number == 0 || f.hinted.Swap(false) || f.compared.Add(1)%scriptEvery == 0 {
		return false, nil
	}
	same, err := f.client.HExists(ctx, f.revision, markerOf(have)).Result()
	if replied := redis.Error(nil); errors.As(err, &replied) {
		// The key is something else, or the user has no right to ask so.
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("redisfeed: %w", err)
	}
	if same {
		f.last.Store(nil)
	}
	return same, nil
}

// readsReplicas says whether a client sends what only reads to replicas, which may be behind. Scripts go to the master.
func readsReplicas(client redis.UniversalClient) bool {
	cluster, ok := client.(*redis.ClusterClient)
	return ok && cluster != nil && cluster.Options().ReadOnly
}
