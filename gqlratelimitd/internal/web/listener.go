package web

import (
	"cmp"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

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

// Bound returns a listener with at most so many connections. Idle and slow connections count, which no handler ever sees. For one more of an address the
// oldest one of that address is closed that has no request under way, and the new one if each has. For one more of all that is one of the address that
// has most, also in the middle of a request if the new one is of an address that has less: whoever holds connections keeps nobody else out. [Track] says
// which have a request under way.
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
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		var from netip.Addr
		if tcp, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
			from = tcp.AddrPort().Addr().Unmap()
		}
		is := &countedConn{Conn: conn, listener: l, client: inbound.Network(from, inbound.ClientBits)}
		gone := l.enter(is, l.cfg.Proxy != nil && l.cfg.Proxy(from))
		if gone != nil {
			_ = gone.Conn.Close()
		}
		if gone != is {
			return is, nil
		}
	}
}

// enter counts a connection, and returns the one that has to make room for it, which is not counted any more. It is the new one itself if there is none.
func (l *listener) enter(conn *countedConn, proxy bool) (gone *countedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	mine := l.of[conn.client]
	switch {
	case len(mine) >= l.cfg.Address && !proxy:
		gone = idle(mine)
	case l.open >= l.cfg.All:
		most := l.most()
		if gone = idle(most); gone == nil && len(most) > len(mine) {
			gone = most[0]
		}
	default:
		l.add(conn)
		return nil
	}
	if gone == nil {
		return conn
	}
	l.remove(gone)
	l.add(conn)
	return gone
}

// idle is the oldest connection that has no request under way, nil if there is none.
func idle(conns []*countedConn) *countedConn {
	for _, conn := range conns {
		if !conn.busy.Load() {
			return conn
		}
	}
	return nil
}

// most are the connections of the client that has most.
func (l *listener) most() (longest []*countedConn) {
	for _, conns := range l.of {
		if len(conns) > len(longest) {
			longest = conns
		}
	}
	return longest
}

// add counts a connection. The mutex is held.
func (l *listener) add(conn *countedConn) {
	l.of[conn.client] = append(l.of[conn.client], conn)
	l.open++
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
	// busy says that it has a request under way.
	busy atomic.Bool
}

// Track notes whether a connection of a listener of [Bound] has a request under way. It is meant for http.Server.ConnState.
func Track(conn net.Conn, state http.ConnState) {
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn()
	}
	if counted, ok := conn.(*countedConn); ok {
		counted.busy.Store(state == http.StateActive || state == http.StateHijacked)
	}
}

// Close implements net.Conn.
func (c *countedConn) Close() error {
	c.listener.mu.Lock()
	c.listener.remove(c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}
