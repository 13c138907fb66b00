package mongofeed_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/gqlgen-ratelimit/ratelimit/contrib/mongofeed"
	"github.com/gqlgen-ratelimit/ratelimit/internal/freeport"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// nowhere are addresses at which no server answers.
func nowhere(t *testing.T) map[string]string {
	t.Helper()
	gone, err := freeport.Address()
	require.NoError(t, err)
	return map[string]string{
		"no database": gone, "no name": "database.invalid:27017", "no way to a network": "192.0.2.1:27017",
	}
}

func TestAnInstanceStartsWithoutADatabaseAndWithoutANetwork(t *testing.T) {
	t.Parallel()
	whole, err := revision(7).MarshalBinary()
	require.NoError(t, err)
	builtIn, err := tiers.Load(revision(3).Document, 0)
	require.NoError(t, err)
	feeds := map[string]func(*mongo.Collection) policy.Feed{
		"revisions": func(c *mongo.Collection) policy.Feed { return open(t, mongofeed.Config{Collection: c}) },
		"a document of limits": func(c *mongo.Collection) policy.Feed {
			limits, err := mongofeed.NewLimits(mongofeed.LimitsConfig{Collection: c, Service: "shop"})
			require.NoError(t, err)
			return limits
		},
	}
	for what, feedOf := range feeds {
		for name, address := range nowhere(t) {
			t.Run(what+", "+name, func(t *testing.T) {
				t.Parallel()
				feed := feedOf(connect(t, "mongodb://"+address))
				path := filepath.Join(t.TempDir(), "last-good")
				cfg := policy.Config{LastGood: path, Patience: 200 * time.Millisecond, First: builtIn}

				// With nothing on the disk the first policy holds, and the good one that is there otherwise.
				f := follow(t, feed, cfg)
				require.EqualValues(t, 3, maxCost(f))
				require.Equal(t, policy.Never, f.Status().State)
				require.NoError(t, f.Close())
				require.NoError(t, os.WriteFile(path, whole, 0o600))
				f = follow(t, feed, cfg)
				require.EqualValues(t, 7, maxCost(f))
				require.Equal(t, policy.Never, f.Status().State)
				require.NotEmpty(t, f.Status().Failure)
				require.NoError(t, f.Close())
				kept, err := os.ReadFile(path)
				require.NoError(t, err)
				require.Equal(t, whole, kept, "it is there for the next start")

				require.NoError(t, os.WriteFile(path, whole[:len(whole)/2], 0o600))
				cfg.First = nil
				_, err = policy.Follow(t.Context(), feed, cfg)
				require.ErrorContains(t, err, "there is no policy to start with")
			})
		}
	}
}
