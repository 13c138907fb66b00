package web

import (
	"cmp"
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/gqlgen-ratelimit/ratelimit/internal/inbound"
)

// Bounds of connections.
const (
	// DefaultConnections is how many connections there are at once, and DefaultAddressConnections how many of one address.
	DefaultConnections        = 4096
	DefaultAddressConnections = 256
)

// ListenConfig bounds the connections of a listener. The zero value has the defaults.
type ListenConfig struct {
	// All is how many connections there are at once, and Address how many of one address, IPv6 by /64. Zero is [DefaultConnections], and
	// [DefaultAddressConnections].
	All, Address int
	// Proxy reports whether an address is that of a proxy, which has as many connections as all. Nil is none.
	Proxy func(netip.Addr) bool
}

// Bound returns a listener with at most so many connections. Idle and slow connections count, which no handler ever sees. For what is more than that the
// oldest connection of the same address is closed, or of the address that has most: whoever holds connections keeps nobody out.
func Bound(inner net.Listener, cfg ListenConfig) net.Listener {
	cfg.All, cfg.Address = cmp.Or(cfg.All, DefaultConnections), cmp.Or(cfg.Address, DefaultAddressConnections)
	return &listener{Listener: inner, cfg: cfg, of: map[string][]*countedConn{}}
}

type listener struct {
	net.Listener

	cfg  ListenConfig
	mu   sync.Mutex
	open int
	// of are the connections of each client, the oldest first.
	of map[string][]*countedConn
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	var from netip.Addr
	if tcp, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		from = tcp.AddrPort().Addr().Unmap()
	}
	is := &countedConn{Conn: conn, listener: l, client: inbound.Network(from, inbound.ClientBits)}
	if oldest := l.enter(is, l.cfg.Proxy != nil && l.cfg.Proxy(from)); oldest != nil {
		_ = oldest.Close()
	}
	return is, nil
}

// enter counts a connection, and returns the one that has to make room for it, which is not counted any more.
func (l *listener) enter(conn *countedConn, proxy bool) (oldest *countedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch mine := l.of[conn.client]; {
	case len(mine) >= l.cfg.Address && !proxy:
		oldest = mine[0]
	case l.open >= l.cfg.All:
		oldest = l.most()
	}
	if oldest != nil {
		l.remove(oldest)
	}
	l.of[conn.client] = append(l.of[conn.client], conn)
	l.open++
	return oldest
}

// most is the oldest connection of the client that has most.
func (l *listener) most() *countedConn {
	var longest []*countedConn
	for _, conns := range l.of {
		if len(conns) > len(longest) {
			longest = conns
		}
	}
	return longest[0]
}

// remove counts a connection no more, if it is counted. The mutex is held.
func (l *listener) remove(conn *countedConn) {
	conns := l.of[conn.client]
	at := slices.Index(conns, conn)
	if at < 0 {
		return
	}
	l.open--
	if conns = slices.Delete(conns, at, at+1); len(conns) == 0 {
		delete(l.of, conn.client)
	} else {
		l.of[conn.client] = conns
	}
}

// countedConn is counted until it is closed.
type countedConn struct {
	net.Conn

	listener *listener
	client   string
}

// Close implements net.Conn.
func (c *countedConn) Close() error {
	c.listener.mu.Lock()
	c.listener.remove(c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}
