package redisclient_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
)

func TestNewClientReadsAddressesAndBoundsTheClient(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"127.0.0.1:6379":              "127.0.0.1:6379",
		"[::1]:7000":                  "[::1]:7000",
		"redis://user:pw@host:6380/2": "host:6380",
		"rediss://host:6390":          "host:6390",
		"unix:///run/redis.sock?db=1": "/run/redis.sock",
	} {
		client, err := redisclient.New(address)
		require.NoError(t, err, address)
		t.Cleanup(func() { _ = client.Close() })
		single, ok := client.(*redis.Client)
		require.True(t, ok)
		options := single.Options()
		require.Equal(t, want, options.Addr)
		require.True(t, options.ContextTimeoutEnabled)
		require.Zero(t, options.MaxRetries, "nothing is sent twice")
		require.Equal(t, address[:7] == "rediss:", options.TLSConfig != nil)
	}
	for _, addresses := range [][]string{
		{"127.0.0.1:7001", "redis://127.0.0.1:7002"}, {"redis://127.0.0.1:7001?cluster=true"},
	} {
		client, err := redisclient.New(addresses...)
		require.NoError(t, err)
		t.Cleanup(func() { _ = client.Close() })
		cluster, ok := client.(*redis.ClusterClient)
		require.True(t, ok)
		options := cluster.Options()
		require.Len(t, options.Addrs, len(addresses))
		require.True(t, options.ContextTimeoutEnabled)
		require.Equal(t, time.Second, options.ClusterStateReloadInterval)
	}
}

func TestNewClientSaysWhatIsWrongAndRepeatsNoPassword(t *testing.T) {
	t.Parallel()
	for want, addresses := range map[string][]string{
		"no address":            nil,
		"neither host:port":     {"localhost"},
		"redis://host:port/3":   {"localhost:6379/3"},
		"no port from 1":        {"localhost:70000"},
		"unknown scheme":        {"http://user:secret@host:1"},
		"not a valid Redis URL": {"redis://user:secret@host:port"},
		"address 2 of 2":        {"a:1", ":"},
		"unix sockets":          {"a:1", "unix:///run/x"},
		"no numbered databases": {"redis://a:1/3", "redis://b:1/3"},
		"differ in user":        {"redis://u:secret@a:1", "redis://b:1"},
		"neither true nor":      {"redis://u:secret@a:1?cluster=yes"},
		"an empty master_name":  {"redis://u:secret@a:1?master_name="},
		"URL of Sentinels":      {"redis://u:secret@a:1?master_name=m&password=secret&nonsense=1"},
		"another master":        {"redis://a:1?master_name=m", "redis://b:1?master_name=n"},
		"needs no Sentinels":    {"redis://a:1?master_name=m&cluster=true"},
	} {
		_, err := redisclient.New(addresses...)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "secret")
	}
}

func TestOpenClientSaysEverythingThatIsWrongAtOnce(t *testing.T) {
	t.Parallel()
	_, err := redisclient.Open("", redisclient.Config{
		Addresses: []string{"localhost", "http://u:secret@b:1"}, Protocol: 4, PoolSize: -1, Database: -1,
		DialTimeout: time.Microsecond, SocketTimeout: -1, Password: "secret",
		Credentials: func(context.Context) (string, string, error) { return "", "", nil },
		Breaker:     redisclient.BreakerConfig{Failures: 5000},
	})
	for _, want := range []string{
		"address 1 of 2", "address 2 of 2", "RESP protocol 4", "a pool of -1", "database -1",
		"a DialTimeout of 1µs", "a SocketTimeout of", "Credentials and Username", "1 to 1000 fits",
	} {
		require.ErrorContains(t, err, want)
	}
	require.NotContains(t, err.Error(), "secret")
	_, err = redisclient.Open("", redisclient.Config{
		Addresses: []string{"unix:///run/redis.sock"}, Master: "m", Cluster: true, Database: 1,
	})
	for _, want := range []string{"needs no Sentinels", "a cluster cannot be reached by unix", "Sentinels cannot be", "no numbered"} {
		require.ErrorContains(t, err, want)
	}
	_, err = redisclient.Open("", redisclient.Config{Addresses: []string{"a:1"}, SentinelPassword: "secret"})
	require.ErrorContains(t, err, "without a Master")
}

func TestOpenClientBoundsAndKeepsWhatItIsGiven(t *testing.T) {
	t.Parallel()
	secure := &tls.Config{ServerName: "redis.example", MinVersion: tls.VersionTLS12}
	config := redisclient.Config{
		Username: "limiter", Password: "pw", TLS: secure, Protocol: 2, PoolSize: 7,
		DialTimeout: time.Second, SocketTimeout: 50 * time.Millisecond,
	}
	config.Addresses = []string{"redis://someone:else@a:1/3?pool_size=3&protocol=3&client_name=limits"}
	options := configuredClient(t, config).(*redis.Client).Options()
	require.Equal(t, []any{"limiter", "pw", secure, 2, 7, 3, "limits"},
		[]any{options.Username, options.Password, options.TLSConfig, options.Protocol, options.PoolSize, options.DB, options.ClientName})
	require.Equal(t, []time.Duration{time.Second, 5500 * time.Millisecond, 5500 * time.Millisecond},
		[]time.Duration{options.DialTimeout, options.ReadTimeout, options.WriteTimeout})
	require.Equal(t, 1, options.DialerRetries)

	config.Addresses = []string{"a:1", "b:1"}
	clustered := configuredClient(t, config).(*redis.ClusterClient).Options()
	require.Equal(t, []any{"limiter", "pw", secure, 2, 7, []string{"a:1", "b:1"}, time.Second},
		[]any{clustered.Username, clustered.Password, clustered.TLSConfig, clustered.Protocol, clustered.PoolSize, clustered.Addrs, clustered.DialTimeout})
	url := configuredClient(t, redisclient.Config{Addresses: []string{"redis://a:1?pool_size=3&protocol=2&cluster=true"}})
	clustered = url.(*redis.ClusterClient).Options()
	require.Equal(t, []any{3, 2}, []any{clustered.PoolSize, clustered.Protocol})

	config.Addresses, config.Master, config.SentinelPassword = []string{"a:1", "b:1"}, "mymaster", "watch"
	options = configuredClient(t, config).(*redis.Client).Options()
	require.Equal(t, []any{"limiter", "pw", secure, 2, 7, true, 0},
		[]any{options.Username, options.Password, options.TLSConfig, options.Protocol, options.PoolSize, options.ContextTimeoutEnabled, options.MaxRetries})
	fromURL := configuredClient(t, redisclient.Config{
		Addresses: []string{"redis://:watch@a:1/2?master_name=mymaster&addr=b:1&username=limiter&password=pw&route_randomly=true"},
	})
	options = fromURL.(*redis.Client).Options()
	require.Equal(t, []any{"limiter", "pw", 2, true}, []any{options.Username, options.Password, options.DB, options.ContextTimeoutEnabled})
}

func TestCertificatesAreVerifiedByTheNameOfTheirOwnHost(t *testing.T) {
	t.Parallel()
	for want, addresses := range map[string][]string{
		"a":  {"rediss://a:1?cluster=true"},
		"b":  {"rediss://b:1", "rediss://b:2"},
		"":   {"rediss://a:1", "rediss://b:1"},
		"::": {"rediss://[::]:1?cluster=true"},
	} {
		options := configuredClient(t, redisclient.Config{Addresses: addresses}).(*redis.ClusterClient).Options()
		require.Equal(t, want, options.TLSConfig.ServerName)
	}
	options := configuredClient(t, redisclient.Config{Addresses: []string{"rediss://a:1?master_name=m"}}).(*redis.Client).Options()
	require.Empty(t, options.TLSConfig.ServerName, "the master is not where the Sentinel is")
	options = configuredClient(t, redisclient.Config{Addresses: []string{"rediss://a:1"}}).(*redis.Client).Options()
	require.Equal(t, "a", options.TLSConfig.ServerName)
}

func configuredClient(t testing.TB, config redisclient.Config) redis.UniversalClient {
	t.Helper()
	client, err := redisclient.Open("", config)
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestLoadTLSNamesTheFileThatIsWrong(t *testing.T) {
	t.Parallel()
	config, err := redisclient.LoadTLS("", "", "")
	require.NoError(t, err)
	require.Nil(t, config.RootCAs)
	empty := filepath.Join(t.TempDir(), "empty.pem")
	require.NoError(t, os.WriteFile(empty, []byte("nothing"), 0o600))
	_, err = redisclient.LoadTLS(empty, empty, empty)
	require.ErrorContains(t, err, "no certificate in PEM in "+empty)
	require.ErrorContains(t, err, "certificate of the client in "+empty)
	_, err = redisclient.LoadTLS(empty+"x", empty, "")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "belong together")
}

func TestLoadTLSTrustsAndShowsWhatIsInItsFiles(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"redis.example"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	packed, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	require.NoError(t, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), 0o600))
	require.NoError(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: packed}), 0o600))

	config, err := redisclient.LoadTLS(certFile, certFile, keyFile)
	require.NoError(t, err)
	config.ServerName = "redis.example"
	near, far := net.Pipe()
	server := tls.Server(far, &tls.Config{
		Certificates: config.Certificates, ClientCAs: config.RootCAs, ClientAuth: tls.RequireAndVerifyClientCert,
		MinVersion: tls.VersionTLS12,
	})
	ended := make(chan error, 1)
	go func() { ended <- server.HandshakeContext(t.Context()) }()
	require.NoError(t, tls.Client(near, config).HandshakeContext(t.Context()))
	require.NoError(t, <-ended)
}
