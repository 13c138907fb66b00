package redisfeed_test

import (
	"bytes"
	"crypto/ed25519"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/internal/freeport"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
)

// nowhere are addresses at which no Redis answers.
func nowhere(t *testing.T) map[string]string {
	t.Helper()
	gone, err := freeport.Address()
	require.NoError(t, err)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	go func() {
		for {
			connection, err := silent.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(io.Discard, connection) }()
		}
	}()
	return map[string]string{
		"no Redis":            gone,
		"no answer":           silent.Addr().String(),
		"no name":             "redis.invalid:6379",
		"no way to a network": "192.0.2.1:6379",
	}
}

func TestAnInstanceStartsWithoutARedisAndWithoutANetwork(t *testing.T) {
	t.Parallel()
	public, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	good := revision(7)
	good.Sign(private)
	whole, err := good.MarshalBinary()
	require.NoError(t, err)
	for name, address := range nowhere(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, err := redisclient.Open(address, redisclient.Config{})
			require.NoError(t, err)
			t.Cleanup(func() { _ = client.Close() })
			feed := open(t, client)
			path := filepath.Join(t.TempDir(), "last-good")
			require.NoError(t, os.WriteFile(path, whole, 0o600))
			cfg := policy.Config{LastGood: path, Patience: 200 * time.Millisecond, Keys: []ed25519.PublicKey{public}}
			f := follow(t, feed, cfg)
			require.EqualValues(t, 7, maxCost(f))
			require.Equal(t, policy.Never, f.Status().State)
			require.NotEmpty(t, f.Status().Failure)
			require.NoError(t, f.Close())
			kept, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, whole, kept, "it is there for the next start")

			for what, wrong := range map[string][]byte{
				"half written": whole[:len(whole)/2], "a byte changed": bytes.Replace(whole, []byte("maxCost: 7"), []byte("maxCost: 8"), 1),
			} {
				require.NoError(t, os.WriteFile(path, wrong, 0o600))
				_, err = policy.Follow(t.Context(), feed, cfg)
				require.ErrorContains(t, err, "the last good policy", what)
				require.ErrorContains(t, err, "there is no policy to start with", what)
			}
		})
	}
}
