package edge_test

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/edge"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// pipes is a listener whose connections are pipes, whose deadlines are those of the bubble that they are made in.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

type pipe struct{ net.Conn }

func (pipe) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 4711} }

// serveInBubble serves until the returned function is called, and gives the server's log to errors. dial connects.
func serveInBubble(t *testing.T, server *http.Server, errors io.Writer) (dial func() net.Conn, stop func()) {
	t.Helper()
	server.ErrorLog = log.New(errors, "", 0)
	l := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	return func() net.Conn {
			client, end := net.Pipe()
			l.conns <- pipe{end}
			return client
		}, func() {
			require.NoError(t, server.Close())
			require.ErrorIs(t, <-done, http.ErrServerClosed)
			// net/http lingers on connections that it closes, by the clock of the bubble.
			<-time.After(time.Second)
		}
}

// longStreams gives streams ten minutes before anybody has read their bodies, as servers do that stream.
func longStreams(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		deadline := time.Now().Add(10 * time.Minute)
		_ = http.NewResponseController(w).SetReadDeadline(deadline)
		_ = http.NewResponseController(w).SetWriteDeadline(deadline)
		next.ServeHTTP(w, r)
	})
}

func TestASlowBodyIsCutInTimeWhateverTheRequestAccepts(t *testing.T) {
	t.Parallel()
	for name, extra := range map[string]string{
		"plain":     "Content-Length: 5000\r\n",
		"events":    "Content-Length: 5000\r\nAccept: text/event-stream\r\n",
		"multipart": "Content-Length: 5000\r\nAccept: multipart/mixed\r\n",
		"upgrade":   "Content-Length: 5000\r\nUpgrade: x\r\nConnection: Upgrade\r\n",
		"chunks":    "Transfer-Encoding: chunked\r\nAccept: text/event-stream\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var errors strings.Builder
				next := &passed{}
				dial, stop := serveInBubble(t, &http.Server{Handler: longStreams(newDoor(t, edge.Config{}).Handler(next))}, &errors)
				defer stop()
				conn := dial()
				began := time.Now()
				_, err := io.WriteString(conn, "POST /query HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"+extra+"\r\n")
				require.NoError(t, err)
				go func() {
					drop := " "
					if name == "chunks" {
						drop = "1\r\n \r\n"
					}
					for {
						if _, err := io.WriteString(conn, drop); err != nil {
							return
						}
						<-time.After(time.Second)
					}
				}()
				response, err := http.ReadResponse(bufio.NewReader(conn), nil)
				require.NoError(t, err)
				got := read(t, response)
				require.Equal(t, 10*time.Second, time.Since(began))
				require.Equal(t, http.StatusRequestTimeout, got.status)
				require.Equal(t, ratelimitclient.CodePayloadTooSlow, got.refusal.Code)
				require.Equal(t, edge.LayerDocument, got.refusal.Layer)
				require.Empty(t, next.bodies)
				require.Empty(t, errors.String())
				require.NoError(t, conn.Close())
			})
		})
	}
}

func TestAnUploadHasATimeOfItsOwn(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		begins string
		status int
	}{
		"its operation does not come": {"", http.StatusRequestTimeout},
		"its file does not come":      {noHead, http.StatusTeapot}, // the handler sees that its body ended
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				door := newDoor(t, edge.Config{Request: edge.RequestConfig{UploadTime: time.Minute}})
				dial, stop := serveInBubble(t, &http.Server{Handler: door.Handler(&passed{})}, io.Discard)
				defer stop()
				conn := dial()
				began := time.Now()
				_, err := io.WriteString(conn, "POST /query HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: 90\r\n\r\n"+c.begins)
				require.NoError(t, err)
				response, err := http.ReadResponse(bufio.NewReader(conn), nil)
				require.NoError(t, err)
				require.Equal(t, c.status, read(t, response).status)
				require.Equal(t, time.Minute, time.Since(began))
				require.NoError(t, conn.Close())
			})
		})
	}
}

// TestAnOperationMayTakeLongerThanItsBody would see the request end if the deadline held for longer than the body: net/http
// takes it for a client that has left.
func TestAnOperationMayTakeLongerThanItsBody(t *testing.T) {
	t.Parallel()
	for name, headers := range map[string]string{"body": "", "upload": "Content-Type: multipart/form-data; boundary=b\r\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newDoor(t, edge.Config{}).Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					_, err := io.ReadAll(r.Body)
					require.NoError(t, err)
					select {
					case <-time.After(time.Minute):
					case <-r.Context().Done():
						t.Error("the request has ended")
					}
				}))
				dial, stop := serveInBubble(t, &http.Server{Handler: h, ReadTimeout: 5 * time.Second}, io.Discard)
				defer stop()
				conn := dial()
				_, err := io.WriteString(conn, "POST /query HTTP/1.1\r\nHost: a\r\n"+headers+"Content-Length: 2\r\n\r\n{}")
				require.NoError(t, err)
				response, err := http.ReadResponse(bufio.NewReader(conn), nil)
				require.NoError(t, err)
				require.Equal(t, http.StatusOK, read(t, response).status)
				require.NoError(t, conn.Close())
			})
		})
	}
}

// TestARefusedBodyIsNotWaitedFor holds net/http to a second, which reads what is left of a body before it answers.
// The connection of a proxy is used by all its clients.
func TestARefusedRequestLeavesItsConnectionToTheNext(t *testing.T) {
	t.Parallel()
	s := serve(t, edge.Config{Address: edge.AddressConfig{Limits: requests(1)}}, nil)
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	answers := bufio.NewReader(conn)
	for i, want := range []int{http.StatusOK, http.StatusTooManyRequests, http.StatusTooManyRequests} {
		const request = "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
		_, err := fmt.Fprintf(conn, request, len(document), document)
		require.NoError(t, err, i)
		response, err := http.ReadResponse(answers, nil)
		require.NoError(t, err, i)
		_, err = io.Copy(io.Discard, response.Body)
		require.NoError(t, err, i)
		require.NoError(t, response.Body.Close())
		require.Equal(t, want, response.StatusCode)
		require.False(t, response.Close, i)
	}
}

func TestARefusedBodyIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	for _, length := range []string{"50", "1000000"} {
		synctest.Test(t, func(t *testing.T) {
			door := newDoor(t, edge.Config{Address: edge.AddressConfig{Limits: requests(1)}})
			dial, stop := serveInBubble(t, &http.Server{Handler: longStreams(door.Handler(&passed{}))}, io.Discard)
			defer stop()
			conn := dial()
			ask(t, door.Handler(&passed{}), "192.0.2.1")
			began := time.Now()
			_, err := io.WriteString(conn, "POST /query HTTP/1.1\r\nHost: a\r\nContent-Length: "+length+"\r\n\r\n")
			require.NoError(t, err)
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			require.NoError(t, err)
			require.Equal(t, ratelimitclient.CodeRateLimited, read(t, response).refusal.Code)
			require.LessOrEqual(t, time.Since(began), time.Second)
			require.NoError(t, conn.Close())
		})
	}
}
