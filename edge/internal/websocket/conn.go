package websocket

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
)

// Meter is told what a connection carries. One goroutine at a time reads, and another may write.
type Meter interface {
	// Ahead is told of n bytes that were read before the connection was taken over, with what they count besides themselves.
	Ahead(n, extra int)
	// Read is told of n bytes that were read, with what they count besides themselves. An error ends the connection.
	Read(n, extra int) error
	// Answered is told that the server has sent a message.
	Answered()
}

// Metered returns a writer for the handler of a WebSocket, which tells the meter of the connection that the handler takes over.
func Metered(w http.ResponseWriter, meter Meter) http.ResponseWriter {
	return &upgradeWriter{ResponseWriter: w, meter: meter}
}

type upgradeWriter struct {
	http.ResponseWriter

	meter Meter
}

// Unwrap gives http.ResponseController the writer beneath.
func (w *upgradeWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader passes the status on. Writers that only note it are told to write it, as WebSocket libraries tell them if
// they see them.
func (w *upgradeWriter) WriteHeader(status int) {
	w.ResponseWriter.WriteHeader(status)
	if noting, ok := w.ResponseWriter.(interface{ WriteHeaderNow() }); ok && status == http.StatusSwitchingProtocols {
		noting.WriteHeaderNow()
	}
}

// Hijack implements http.Hijacker.
func (w *upgradeWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	metered := &meteredConn{Conn: conn, meter: w.meter}
	ahead, _ := buffered.Peek(buffered.Reader.Buffered()) // which it has
	w.meter.Ahead(len(ahead), metered.frames.extra(ahead))
	buffered.Reader.Reset(io.MultiReader(bytes.NewReader(bytes.Clone(ahead)), metered))
	// WebSocket libraries look for what is buffered, and may read the rest of the connection itself.
	_, _ = buffered.Peek(len(ahead))
	if buffered.Writer.Buffered() == 0 {
		buffered.Writer.Reset(metered)
	}
	return metered, buffered, nil
}

// meteredConn counts what is read of a connection.
type meteredConn struct {
	net.Conn

	meter Meter
	// frames are of what was read, which one goroutine does at a time.
	frames frames
}

// Read ends the connection when the meter does.
func (c *meteredConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err := c.meter.Read(n, c.frames.extra(p[:n])); err != nil {
		return 0, err
	}
	return n, err
}

// Write notes the first message, which no client receives before it has introduced itself. The answer to the handshake begins
// with another byte, and so do pings, pongs and the end.
func (c *meteredConn) Write(p []byte) (int, error) {
	if len(p) > 0 && p[0]&opcodeBits == textFrame {
		c.meter.Answered()
	}
	return c.Conn.Write(p)
}
