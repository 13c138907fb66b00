package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/example/internal/codehost"
)

// pipes is a listener in memory, so that time passes at once in a bubble.
type pipes struct{ accepted chan net.Conn }

func (p *pipes) Accept() (net.Conn, error) {
	conn, open := <-p.accepted
	if !open {
		return nil, net.ErrClosed
	}
	return fromAddress{conn}, nil
}
func (*pipes) Close() error   { return nil }
func (*pipes) Addr() net.Addr { return &net.TCPAddr{} }

type fromAddress struct{ net.Conn }

func (fromAddress) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1000} }

// servePipes serves a handler of the example.
func servePipes(t *testing.T, handler http.Handler) *pipes {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	server, listener := newServer(ctx, handler), &pipes{accepted: make(chan net.Conn)}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		cancel()
		close(listener.accepted)
		require.ErrorIs(t, <-served, net.ErrClosed)
		require.NoError(t, server.Close())
	})
	return listener
}

// open opens a connection to the server, which sees what wrap makes of it.
func (p *pipes) open(t *testing.T, wrap func(net.Conn) net.Conn) net.Conn {
	t.Helper()
	client, conn := net.Pipe()
	t.Cleanup(func() { _ = client.Close() })
	p.accepted <- wrap(conn)
	return client
}

func unchanged(conn net.Conn) net.Conn { return conn }

func TestABodyThatDripsIsCutWhateverItAccepts(t *testing.T) {
	t.Parallel()
	for _, header := range []string{"", "Accept: text/event-stream\r\n", "Accept: multipart/mixed\r\n", "Upgrade: x\r\n", "Connection: Upgrade\r\nUpgrade: websocket\r\n"} {
		t.Run(header, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				conn := servePipes(t, newHandler(t)).open(t, unchanged)
				began := time.Now()
				var dripping sync.WaitGroup
				dripping.Go(func() {
					_, _ = io.WriteString(conn, "POST /query HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"+header+"Content-Length: 5000\r\n\r\n{")
					for {
						if _, err := io.WriteString(conn, " "); err != nil {
							return
						}
						time.Sleep(time.Second) //nolint:forbidigo // in a synctest bubble: it drips
					}
				})
				_, _ = io.Copy(io.Discard, conn)
				require.LessOrEqual(t, time.Since(began), readTimeout+time.Second)
				require.NoError(t, conn.Close())
				dripping.Wait()
			})
		})
	}
}

func TestAStreamWhoseBodyHasComeStaysOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		conn := servePipes(t, newHandler(t)).open(t, unchanged)
		go subscribe(conn, "text/event-stream")
		began := time.Now()
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		defer func() { require.NoError(t, response.Body.Close()) }()
		_, err = io.Copy(io.Discard, response.Body)
		require.NoError(t, err)
		require.Equal(t, streamTimeout, time.Since(began).Truncate(time.Second))
	})
}

func TestARequestThatIsNoStreamEndsAtItsWriteTimeout(t *testing.T) {
	t.Parallel()
	for accept, most := range map[string]time.Duration{"": writeTimeout, "application/json": writeTimeout, "text/event-stream": streamTimeout} {
		t.Run(accept, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/query", http.NoBody)
				request.Header.Set("Accept", accept)
				limitTime(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })).
					ServeHTTP(httptest.NewRecorder(), request)
				require.Equal(t, most, time.Since(began))
			})
		})
	}
}

func TestASubscriptionByAPlainPostIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	answer := askFrom(t, newHandler(t), "192.0.2.1:1000", request{key: "demo-pro", query: `subscription { issueCreated(first: 100) { id } }`})
	require.Equal(t, http.StatusBadRequest, answer.status)
}

// unread is a connection whose client takes in nothing: a write goes on until its deadline, and forever without one.
type unread struct {
	net.Conn

	// late is closed when all deadlines are over.
	late chan struct{}

	mu       sync.Mutex
	deadline time.Time
}

func (u *unread) SetDeadline(at time.Time) error {
	_ = u.SetWriteDeadline(at)
	return u.SetReadDeadline(at)
}

func (u *unread) SetWriteDeadline(at time.Time) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.deadline = at
	return nil
}

func (u *unread) Write([]byte) (int, error) {
	u.mu.Lock()
	bounded := !u.deadline.IsZero() && time.Until(u.deadline) <= writeTimeout
	u.mu.Unlock()
	if !bounded {
		select {}
	}
	<-u.late
	return 0, os.ErrDeadlineExceeded
}

// TestAStreamWhoseClientDoesNotReadEndsAndGivesItsPlaceBack opens as many streams as an address may have under way, and reads
// nothing of them.
func TestAStreamWhoseClientDoesNotReadEndsAndGivesItsPlaceBack(t *testing.T) {
	t.Parallel()
	for accept, issues := range map[string]int{
		"text/event-stream": 2 * codehost.MaxFirst,
		// The transport of gqlgen v0.17.94 makes the next event in the memory of the one that it writes.
		"multipart/mixed": 1,
	} {
		t.Run(accept, func(t *testing.T) {
			t.Parallel()
			store := newStore(t)
			handler := handlerOf(t, store, options{})
			server, late := servePipes(t, handler), make(chan struct{})
			ask := func() int {
				return askFrom(t, handler, "192.0.2.1:1000", request{key: "demo-pro", query: `{ __typename }`}).status
			}
			poll(t, "all places to be taken", func() bool {
				const atOnce = 8 // more find no turn to be parsed at first
				for range atOnce {
					go subscribe(server.open(t, func(conn net.Conn) net.Conn { return &unread{Conn: conn, late: late} }), accept)
				}
				return ask() == http.StatusTooManyRequests
			})
			for range issues {
				_, err := store.CreateIssue(store.UserByLogin("mira"), codehost.NewIssue{RepositoryID: "R_1", Title: "Unread"})
				require.NoError(t, err, "a stream that nobody reads holds up nobody, and keeps no more than it is to send")
			}
			require.Equal(t, http.StatusTooManyRequests, ask())
			close(late)
			poll(t, "the places", func() bool { return ask() == http.StatusOK })
		})
	}
}

// subscribe asks for a stream on a connection.
func subscribe(conn io.Writer, accept string) {
	const body = `{"query": "subscription { issueCreated(first: 100) { title } }"}`
	_, _ = fmt.Fprintf(conn, "POST /query HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nX-API-Key: demo-enterprise\r\n"+
		"Accept: %s\r\nContent-Length: %d\r\n\r\n%s", accept, len(body), body)
}
