package sink_test

import (
	"bufio"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/sink"
)

// net/http panics in a goroutine that flushes an answer whose handler has returned. The keep-alive of gqlgen's SSE does so when
// a stream ends at the moment of a ping.
func TestWhatOutlivesTheHandlerWritesToNobody(t *testing.T) {
	t.Parallel()
	for name, inner := range map[string]http.HandlerFunc{
		"of an answer that is on its way": func(w http.ResponseWriter, r *http.Request) {
			sink.From(r.Context()).Decide(0, nil, func(http.Header) {})
			_, _ = w.Write([]byte("answer"))
		},
		"of an answer that was held": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("answer")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var kept http.ResponseWriter
			var exchange *sink.Exchange
			handler := sink.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				kept, exchange = w, sink.From(r.Context())
				inner(w, r)
			}))
			recorder := httptest.NewRecorder()
			beneath := &ended{ResponseRecorder: recorder}
			handler.ServeHTTP(beneath, httptest.NewRequest(http.MethodPost, "/", nil))
			beneath.returned = true

			n, err := kept.Write([]byte(": ping\n\n"))
			require.Zero(t, n)
			require.ErrorContains(t, err, "the handler has returned")
			require.NoError(t, http.NewResponseController(kept).Flush())
			kept.WriteHeader(http.StatusEarlyHints)
			exchange.Decide(http.StatusTooManyRequests, nil, func(http.Header) { t.Error("headers were set") })
			exchange.Fail()
			require.Zero(t, beneath.late)
			require.Equal(t, "answer", recorder.Body.String())
		})
	}
}

// ended counts what is done to an answer after its handler has returned.
type ended struct {
	*httptest.ResponseRecorder
	returned bool
	late     int
}

func (e *ended) count() {
	if e.returned {
		e.late++
	}
}

func (e *ended) Write(p []byte) (int, error) { e.count(); return e.ResponseRecorder.Write(p) }
func (e *ended) WriteHeader(status int)      { e.count(); e.ResponseRecorder.WriteHeader(status) }
func (e *ended) Flush()                      { e.count(); e.ResponseRecorder.Flush() }

// noting is a writer that only notes a status, as that of gin does, and gives its connection away.
type noting struct {
	http.ResponseWriter

	status, written int
}

func (n *noting) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, nil }
func (n *noting) WriteHeader(status int)                       { n.status = status }
func (n *noting) WriteHeaderNow()                              { n.written = n.status }

func TestAConnectionThatIsTakenOverIsAWebSocket(t *testing.T) {
	t.Parallel()
	w := &noting{ResponseWriter: httptest.NewRecorder()}
	asked := http.Header{"Upgrade": {"websocket"}}
	sink.Handler(http.HandlerFunc(func(inner http.ResponseWriter, r *http.Request) {
		exchange := sink.From(r.Context())
		require.False(t, exchange.Socket(asked), "it only asks for one")
		inner.WriteHeader(http.StatusSwitchingProtocols)
		_, _, err := http.NewResponseController(inner).Hijack()
		require.NoError(t, err)
		require.True(t, exchange.Socket(nil))
	})).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	require.Equal(t, http.StatusSwitchingProtocols, w.written, "before the connection is taken")
	require.True(t, (*sink.Exchange)(nil).Socket(asked))
	require.False(t, (*sink.Exchange)(nil).Socket(nil))
}
