package redistest

import (
	"bytes"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Proxy forwards connections to a server and breaks them as networks do. What its methods order holds at
// once for all connections, open or not, until [Proxy.Heal]. They may be called at any time by any
// goroutine.
type Proxy struct {
	// Addr is host:port.
	Addr string

	listener net.Listener
	running  sync.WaitGroup
	ended    chan struct{}
	opened   atomic.Int64
	lost     atomic.Int64
	delay    atomic.Int64
	dropping atomic.Bool

	mu sync.Mutex
	// server is where connections lead.
	server string
	// whole is closed while the network is not cut.
	whole chan struct{}
	// losing is a text whose next request gets no answer. Empty means none.
	losing []byte
	links  map[*link]struct{}
}

// link is one connection of a client with that to the server behind it.
type link struct {
	client, server net.Conn
	// losing says that the next answer is lost, and the connection with it.
	losing atomic.Bool
	// dropped says that an answer is missing: what follows would be taken for it.
	dropped atomic.Bool
}

// StartProxy starts a proxy in front of a server and stops it when the test ends.
func StartProxy(t testing.TB, server string) *Proxy {
	t.Helper()
	p, err := LaunchProxy(server)
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	t.Cleanup(p.Close)
	return p
}

// LaunchProxy starts a proxy for a program that is no test. The caller ends it with [Proxy.Close]. The
// server need not be there yet: a connection is ended at once while it is not.
func LaunchProxy(server string) (*Proxy, error) { return LaunchProxyAt("127.0.0.1:0", server) }

// LaunchProxyAt is [LaunchProxy] at an address: that of one that was killed, whose clients look for it there.
func LaunchProxyAt(address, server string) (*Proxy, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	p := &Proxy{
		Addr: listener.Addr().String(), server: server, listener: listener,
		ended: make(chan struct{}), whole: make(chan struct{}), links: map[*link]struct{}{},
	}
	close(p.whole)
	p.running.Go(p.accept)
	return p, nil
}

// Close ends all connections and waits until nothing of the proxy runs. It may be called once.
func (p *Proxy) Close() {
	close(p.ended)
	_ = p.listener.Close()
	p.mu.Lock()
	for l := range p.links {
		l.close()
	}
	p.mu.Unlock()
	p.running.Wait()
}

// Opened returns how many connections clients have opened so far.
func (p *Proxy) Opened() int64 { return p.opened.Load() }

// Lost returns how many times the server has answered what no client will see.
func (p *Proxy) Lost() int64 { return p.lost.Load() }

// Delay makes each round trip longer: half of it on the way there and half on the way back.
func (p *Proxy) Delay(roundTrip time.Duration) { p.delay.Store(int64(roundTrip / 2)) }

// Cut stops all traffic and ends no connection, as a broken network does: what is sent arrives when it
// is healed, even from a client that has gone.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.whole:
		p.whole = make(chan struct{})
	default:
	}
}

// DropReplies lets requests pass and swallows the answers: everything is applied and nobody is told.
// Connections on which an answer was lost are ended by [Proxy.Heal].
func (p *Proxy) DropReplies() { p.dropping.Store(true) }

// LoseReply loses the answer to the next request that contains the text, such as the SHA of a script,
// and once the server has given it ends that connection.
func (p *Proxy) LoseReply(of string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.losing = []byte(of)
}

// Sever ends all connections that are open, and returns how many these were. New ones pass.
func (p *Proxy) Sever() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.close()
	}
	return len(p.links)
}

// Lead has new connections lead to another server, as a name does after a failover. Those that are open stay.
func (p *Proxy) Lead(server string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.server = server
}

func (p *Proxy) leads() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.server
}

// Heal ends everything that the other methods have ordered.
func (p *Proxy) Heal() {
	p.delay.Store(0)
	p.dropping.Store(false)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.losing = nil
	for l := range p.links {
		if l.dropped.Load() {
			l.close()
		}
	}
	select {
	case <-p.whole:
	default:
		close(p.whole)
	}
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.opened.Add(1)
		p.running.Go(func() { p.serve(client) })
	}
}

func (p *Proxy) serve(client net.Conn) {
	defer client.Close()
	if !p.passes() {
		return
	}
	server, err := net.Dial("tcp", p.leads())
	if err != nil {
		return
	}
	l := &link{client: client, server: server}
	defer l.close()
	if !p.add(l) {
		return
	}
	defer p.remove(l)
	var lines sync.WaitGroup
	lines.Go(func() { p.forward(client, server, func(data []byte) bool { return p.request(l, data) }) })
	lines.Go(func() {
		// A server that has gone ends the connection. A client that has gone has sent something before.
		defer l.close()
		p.forward(server, client, func([]byte) bool { return p.answer(l) })
	})
	lines.Wait()
}

// forward passes on what it reads and permits, each piece after the delay at which it came.
func (p *Proxy) forward(from, to net.Conn, permit func(data []byte) bool) {
	type piece struct {
		data []byte
		due  time.Time
	}
	const room = 256
	pieces := make(chan piece, room)
	p.running.Go(func() {
		defer close(pieces)
		buffer := make([]byte, 64<<10)
		for {
			n, err := from.Read(buffer)
			if n > 0 {
				next := piece{bytes.Clone(buffer[:n]), time.Now().Add(time.Duration(p.delay.Load()))}
				select {
				case pieces <- next:
				case <-p.ended:
					return
				}
			}
			if err != nil {
				return
			}
		}
	})
	for next := range pieces {
		if !p.waits(next.due) || !p.passes() {
			break
		}
		if !permit(next.data) {
			continue
		}
		if _, err := to.Write(next.data); err != nil {
			break
		}
	}
	if tcp, ok := to.(*net.TCPConn); ok {
		_ = tcp.CloseWrite()
	}
	for range pieces {
		// The reader ends when its connection does, and not before somebody takes what it has read.
		continue
	}
}

// waits returns true at that time, and false if the proxy has ended before.
func (p *Proxy) waits(due time.Time) bool {
	left := time.Until(due)
	if left <= 0 {
		return true
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.ended:
		return false
	}
}

// passes returns true when the network is not cut, and false if the proxy has ended before.
func (p *Proxy) passes() bool {
	p.mu.Lock()
	whole := p.whole
	p.mu.Unlock()
	select {
	case <-whole:
		return true
	case <-p.ended:
		return false
	}
}

// request looks at what a client sends.
func (p *Proxy) request(l *link, data []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.losing) > 0 && bytes.Contains(data, p.losing) {
		p.losing = nil
		l.losing.Store(true)
	}
	return true
}

// answer says whether the client may see what the server has sent.
func (p *Proxy) answer(l *link) bool {
	switch {
	case l.losing.Load():
		p.lost.Add(1)
		l.close()
		return false
	case l.dropped.Load():
		p.lost.Add(1)
		return false
	case p.dropping.Load():
		p.lost.Add(1)
		l.dropped.Store(true)
		if !p.dropping.Load() {
			// Healed meanwhile, by a call that may have found nothing to end here.
			l.close()
		}
		return false
	default:
		return true
	}
}

func (p *Proxy) add(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.ended:
		return false
	default:
	}
	p.links[l] = struct{}{}
	return true
}

func (p *Proxy) remove(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

func (l *link) close() {
	_ = l.client.Close()
	_ = l.server.Close()
}
