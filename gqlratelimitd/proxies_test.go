package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEachClientOfAProxyHasItsOwnAddress(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "limits.yaml")
	require.NoError(t, os.WriteFile(file, []byte("proxies: [192.0.2.0/24]\n"), 0o600))
	for name, c := range map[string]struct {
		args       []string
		peer, want string
	}{
		"by the flag":      {[]string{"-proxies", "192.0.2.0/24, 10.0.0.0/8"}, "192.0.2.1:1", "198.51.100.7"},
		"by the file":      {[]string{"-config", file}, "192.0.2.1:1", "198.51.100.7"},
		"the flag beats":   {[]string{"-config", file, "-proxies", "10.0.0.0/8"}, "192.0.2.1:1", "192.0.2.1"},
		"without":          {nil, "192.0.2.1:1", "192.0.2.1"},
		"of somebody else": {[]string{"-proxies", "192.0.2.0/24"}, "203.0.113.1:1", "203.0.113.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, err := readOptions(append(c.args, "-data", t.TempDir()), io.Discard)
			require.NoError(t, err)
			r := &http.Request{RemoteAddr: c.peer, Header: http.Header{"X-Forwarded-For": {"203.0.113.9, 198.51.100.7"}}}
			require.Equal(t, c.want, o.client(r).String())
			require.Equal(t, c.want, o.auth(nil).Address(r).String(), "the audit log has it too")
		})
	}
}

func TestANetworkOfProxiesThatIsNoneIsAMistake(t *testing.T) {
	t.Parallel()
	for network, want := range map[string]string{
		"10.0.0.1": "", "224.0.0.0/8": "which no peer is ever of", "::ffff:10.0.0.0/104": "which no peer is ever of",
	} {
		_, err := readOptions([]string{"-proxies", network, "-data", t.TempDir()}, io.Discard)
		require.Error(t, err, network)
		require.ErrorContains(t, err, want, network)
	}
}
