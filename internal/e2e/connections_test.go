package e2e_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// connections are those between the clients of a test and its server, as both ends see them.
type connections struct {
	// served counts those that the server has open.
	served atomic.Int64
	// left says that the clients have gone.
	left atomic.Bool

	mu      sync.Mutex
	dialled []net.Conn
}

var errLeft = errors.New("the client has left")

// client returns an HTTP client that keeps connections of its own.
func (c *connections) client() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if c.left.Load() {
				return nil, errLeft
			}
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.dialled = append(c.dialled, conn)
			return conn, nil
		},
	}}
}

// leave closes every connection as a client does that dies, until a client comes back.
func (c *connections) leave() {
	c.left.Store(true)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.dialled {
		_ = conn.Close()
	}
	c.dialled = nil
}

func (c *connections) comeBack() { c.left.Store(false) }

// listener counts what the server accepts and closes.
func (c *connections) listener(l net.Listener) net.Listener { return countingListener{l, &c.served} }

type countingListener struct {
	net.Listener

	open *atomic.Int64
}

func (l countingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.open.Add(1)
	return &countedConn{Conn: conn, open: l.open}, nil
}

type countedConn struct {
	net.Conn

	open   *atomic.Int64
	closed sync.Once
}

func (c *countedConn) Close() error {
	c.closed.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}
