package web

import (
	"cmp"
	"net"
	"net/netip"
	"sync"
)

// Bounds of connections.
const (
	// DefaultConnections is how many connections there are at once, and DefaultAddressConnections how many of one address.
	DefaultConnections        = 4096
	DefaultAddressConnections = 256
)

// Bound returns a listener that closes what is more than so many connections at once, or so many of one address, IPv6 by /64. 0 is the
// default. Idle and slow connections count, which no handler ever sees.
func Bound(inner net.Listener, all, address int) net.Listener {
	return &listener{
		Listener: inner, all: cmp.Or(all, DefaultConnections), address: cmp.Or(address, DefaultAddressConnections), of: map[netip.Addr]int{},
	}
}

type listener struct {
	net.Listener

	all, address int
	mu           sync.Mutex
	open         int
	of           map[netip.Addr]int
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from := clientOf(conn.RemoteAddr())
		if !l.enter(from) {
			_ = conn.Close()
			continue
		}
		return &countedConn{Conn: conn, leave: sync.OnceFunc(func() { l.leave(from) })}, nil
	}
}

func (l *listener) enter(from netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= l.all || l.of[from] >= l.address {
		return false
	}
	l.open++
	l.of[from]++
	return true
}

func (l *listener) leave(from netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if l.of[from]--; l.of[from] == 0 {
		delete(l.of, from)
	}
}

// countedConn is counted until it is closed.
type countedConn struct {
	net.Conn

	leave func()
}

// Close implements net.Conn.
func (c *countedConn) Close() error {
	c.leave()
	return c.Conn.Close()
}

// clientOf is who an address counts as.
func clientOf(at net.Addr) netip.Addr {
	tcp, ok := at.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return client(tcp.AddrPort().Addr())
}

// client is who an address counts as: an IPv6 address by its /64, which a host has to itself.
func client(from netip.Addr) netip.Addr {
	from = from.Unmap().WithZone("")
	if from.Is6() {
		if site, err := from.Prefix(ipv6Client); err == nil {
			return site.Addr()
		}
	}
	return from
}
