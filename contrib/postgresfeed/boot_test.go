package postgresfeed_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/contrib/postgresfeed"
	"github.com/gqlgen-ratelimit/ratelimit/internal/freeport"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
)

func TestAnInstanceStartsWithoutADatabaseAndWithoutANetwork(t *testing.T) {
	t.Parallel()
	gone, err := freeport.Address()
	require.NoError(t, err)
	whole, err := revision(7).MarshalBinary()
	require.NoError(t, err)
	for name, address := range map[string]string{
		"no database": gone, "no name": "database.invalid:5432", "no way to a network": "192.0.2.1:5432",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			feed := open(t, postgresfeed.Config{Pool: connect(t, "postgres://nobody@"+address+"/policies?connect_timeout=1")})
			path := filepath.Join(t.TempDir(), "last-good")
			require.NoError(t, os.WriteFile(path, whole, 0o600))
			f := follow(t, feed, policy.Config{LastGood: path, Patience: 200 * time.Millisecond})
			require.EqualValues(t, 7, maxCost(f))
			require.Equal(t, policy.Never, f.Status().State)
			require.NoError(t, f.Close())
		})
	}
}
