package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/freeport"
)

// fromCDN tells nginx that its peer, which is the test, is a proxy itself, so that a test chooses addresses.
const fromCDN = "set_real_ip_from 127.0.0.1; real_ip_header X-Forwarded-For; real_ip_recursive on;"

// nginx runs the configuration of the page before an example of its own, and returns the URL of the API at nginx. What is
// given besides stands in the same block.
func nginx(t *testing.T, besides string) string {
	t.Helper()
	program, err := exec.LookPath("nginx")
	if err != nil {
		program, err = exec.LookPath("/usr/sbin/nginx")
	}
	require.NoError(t, err, "make test-tools installs nginx")
	page, err := os.ReadFile("../docs/guide/redis.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)```nginx\n(.*?)```").FindSubmatch(page)
	require.NotNil(t, block)

	server := strings.TrimSuffix(strings.TrimPrefix(startExample(t, "-proxies", "127.0.0.0/8").url, "http://"), "/query")
	address := freeAddress(t)
	config := string(block[1])
	for from, to := range map[string]string{"listen 80;": "listen " + address + ";", "127.0.0.1:8080;": server + ";"} {
		require.Contains(t, config, from)
		config = strings.Replace(config, from, to, 1)
	}
	directory := t.TempDir()
	path := filepath.Join(directory, "nginx.conf")
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;"
	}
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, `daemon off; worker_processes 1; %s pid %s/pid;
error_log stderr error;
events {}
http {
access_log off;
client_body_temp_path %[2]s/body; proxy_temp_path %[2]s/proxy; fastcgi_temp_path %[2]s/fastcgi; uwsgi_temp_path %[2]s/uwsgi; scgi_temp_path %[2]s/scgi;
%[3]s
%[4]s
}
`, user, directory, besides, config), 0o600))

	var said lockedBuffer
	command := exec.CommandContext(context.WithoutCancel(t.Context()), program, "-p", directory, "-c", path, "-e", "stderr")
	command.Stdout, command.Stderr = &said, &said
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		require.NoError(t, command.Process.Signal(syscall.SIGTERM))
		require.NoError(t, command.Wait(), said.String())
	})
	poll(t, "nginx", func() bool {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return false
		}
		return conn.Close() == nil
	})
	return "http://" + address + "/query"
}

// freeAddress is one on the loopback on which nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := freeport.Address()
	require.NoError(t, err)
	return address
}

// postFrom asks as the address, as far as anybody believes the header.
func postFrom(t *testing.T, url, address, query string) reply {
	t.Helper()
	r := newRequest(t, url, request{query: query})
	r.Header.Set("X-Forwarded-For", address)
	return send(t, r)
}

// byNginx says whether nginx has refused, and not the server behind it.
func byNginx(r reply, status int) bool {
	return r.status == status && strings.Contains(r.body, ">nginx")
}

func TestNginxRefusesWhatTheServerNeverSees(t *testing.T) {
	t.Parallel()
	url := nginx(t, "")
	get := func(change func(*http.Request)) reply {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		require.NoError(t, err)
		change(request)
		return send(t, request)
	}
	for name, c := range map[string]struct {
		status int
		got    reply
	}{
		"a body":   {http.StatusRequestEntityTooLarge, post(t, url, request{query: "{ __typename } #" + strings.Repeat("x", 64<<10)})},
		"a URL":    {http.StatusRequestURITooLong, get(func(r *http.Request) { r.URL.RawQuery = "query=" + strings.Repeat("x", 9<<10) })},
		"a header": {http.StatusBadRequest, get(func(r *http.Request) { r.Header.Set("X-Long", strings.Repeat("x", 9<<10)) })},
	} {
		require.True(t, byNginx(c.got, c.status), "%s: %d %s", name, c.got.status, c.got.body)
	}
	post(t, url, request{key: "demo-pro", query: `{ viewer { login } }`}).requireCharged(t, 3)
}

func TestNginxRefusesAFloodOfOneClientAndOfItsNetworkOfIPv6(t *testing.T) {
	t.Parallel()
	url := nginx(t, fromCDN)
	flood := func(address func(i int) string) {
		t.Helper()
		// However slow the machine is, it sends more than 20 a second after the first 40.
		const most = 5000
		for i := range most {
			if byNginx(postFrom(t, url, address(i), `{ __typename }`), http.StatusTooManyRequests) {
				return
			}
		}
		t.Error("nginx has refused nobody")
	}
	flood(func(int) string { return "203.0.113.7" })
	flood(func(i int) string { return fmt.Sprintf("2001:db8:1:203::%x", i) })
	require.Equal(t, http.StatusOK, postFrom(t, url, "203.0.113.8", `{ __typename }`).status)
	require.Equal(t, http.StatusOK, postFrom(t, url, "2001:db8:2:203::1", `{ __typename }`).status)
}

func TestNginxBoundsTheRequestsOfAClientThatAreUnderWay(t *testing.T) {
	t.Parallel()
	url := nginx(t, fromCDN)
	address := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/query")
	const most = 32
	begin := func(from string) net.Conn {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, err = fmt.Fprintf(conn, "POST /query HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nX-Forwarded-For: %s\r\nContent-Length: 50\r\n\r\n{", from)
		require.NoError(t, err)
		return conn
	}
	var conns []net.Conn
	for range most + 1 {
		conns = append(conns, begin("203.0.113.7"))
	}
	// Connections are taken up in any order: of one more than there may be, one is refused.
	refused := make(chan string, most+1)
	for _, conn := range conns {
		go func() {
			line := make([]byte, len("HTTP/1.1 429"))
			if _, err := io.ReadFull(conn, line); err == nil {
				refused <- string(line)
			}
		}()
	}
	require.Equal(t, "HTTP/1.1 429", <-refused)
	require.Equal(t, http.StatusOK, postFrom(t, url, "203.0.113.8", `{ __typename }`).status)
}

// spend costs 273 of the 300 points that an address has in a minute.
const spend = `{ repositories(first: 90) { nodes { owner { login } } } }`

func TestAddressesArriveThroughNginx(t *testing.T) {
	t.Parallel()
	url := nginx(t, fromCDN)
	postFrom(t, url, "203.0.113.7", spend).requireCharged(t, 273)
	postFrom(t, url, "203.0.113.7", spend).requireRefused(t, 273)
	postFrom(t, url, "203.0.113.8", spend).requireCharged(t, 273)
	// What stands left of the last address was written by the client.
	postFrom(t, url, "198.51.100.1, 203.0.113.8", spend).requireRefused(t, 273)
	// Two networks of one site.
	postFrom(t, url, "2001:db8:1:203::1", spend).requireCharged(t, 273)
	postFrom(t, url, "2001:db8:1:2ff::1", spend).requireRefused(t, 273)
	postFrom(t, url, "2001:db8:2:203::1", spend).requireCharged(t, 273)
}

func TestAClientChoosesNoAddressThroughNginx(t *testing.T) {
	t.Parallel()
	url := nginx(t, "")
	postFrom(t, url, "203.0.113.7", spend).requireCharged(t, 273)
	postFrom(t, url, "203.0.113.8", spend).requireRefused(t, 273)
}

func TestStreamsAndWebSocketsPassNginx(t *testing.T) {
	t.Parallel()
	url := nginx(t, "")
	conn := dial(t, url, `{"X-API-Key": "demo-pro"}`)
	require.JSONEq(t, `{"type":"connection_ack"}`, read(t, conn))
	ask(t, conn, "1", request{query: `{ viewer { login } }`}).requireCharged(t, 3)

	r := newRequest(t, url, request{query: `subscription { issueCreated { title } }`})
	r.Header.Set("Accept", "text/event-stream")
	response, err := client.Do(r)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	// The preamble leaves before anything happens, because nginx holds nothing back.
	preamble := make([]byte, 1)
	_, err = io.ReadFull(response.Body, preamble)
	require.NoError(t, err)
	require.True(t, bytes.Equal(preamble, []byte(":")), "%q", preamble)
}
