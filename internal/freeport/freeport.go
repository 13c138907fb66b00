// Package freeport gives tests and benchmarks ports of the loopback: for servers that cannot choose one themselves or come back at the one they had, and for
// addresses at which nobody is to answer.
//
// A port that the system chooses for a listener that is closed again is free for that moment only. Connections leave from ports of the same range, so that one of
// them, or the next who asks, has it before the server does. The ports of this package are below that range, and no two processes that ask here have the same.
package freeport

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

const (
	// Below are ports of services that a machine has.
	lowest = 10_000
	// Linux has connections leave from 32768 on, other systems from above that.
	highest = 32_767
	// leavesFrom has the range of this machine.
	leavesFrom = "/proc/sys/net/ipv4/ip_local_port_range"
)

// Reserve returns ports on which nobody listens. They stay those of this process until it ends. It is for any number of goroutines.
func Reserve(n int) ([]int, error) { return reserved.take(n) }

// Address returns an address of the loopback at such a port.
func Address() (string, error) {
	ports, err := Reserve(1)
	if err != nil {
		return "", err
	}
	return address(ports[0]), nil
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// reserved are the ports of this process.
var reserved = &pool{
	path: filepath.Join(os.TempDir(), fmt.Sprintf("gqlgen-ratelimit-ports-%d", os.Getuid())), low: lowest, high: highestHere(leavesFrom), mine: map[int]bool{},
}

// highestHere is the highest port that no connection leaves from, by the file with the range of a machine. Where connections leave from nearly all ports, those of
// this package are safe from each other only.
func highestHere(path string) int {
	text, err := os.ReadFile(path)
	if err != nil {
		return highest
	}
	from, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\t")
	const enough = 1000
	if first, err := strconv.Atoi(from); err == nil && first >= lowest+enough {
		return min(highest, first-1)
	}
	return highest
}

// pool is a range of ports, of which each byte of a file stands for one: who has locked it has the port. The system unlocks what an ended process had.
type pool struct {
	path      string
	low, high int

	mu   sync.Mutex
	file *os.File
	mine map[int]bool
}

var errNoneLeft = errors.New("freeport: no port is left")

func (p *pool) take(n int) ([]int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file == nil {
		file, err := os.OpenFile(p.path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, err
		}
		p.file = file
	}
	// Any place to begin at, so that processes seldom meet, and none has the port that another one has just given back.
	size := p.high - p.low + 1
	first := rand.IntN(size)
	ports := make([]int, 0, n)
	for i := 0; i < size && len(ports) < n; i++ {
		port := p.low + (first+i)%size
		free, err := p.lock(port)
		if err != nil {
			return nil, err
		}
		if free {
			ports = append(ports, port)
		}
	}
	if len(ports) < n {
		return nil, fmt.Errorf("%w: %d of %d between %d and %d", errNoneLeft, len(ports), n, p.low, p.high)
	}
	return ports, nil
}

// lock makes a port one of this process, and says whether it could. A port on which somebody else listens stays locked, which costs the others nothing.
func (p *pool) lock(port int) (bool, error) {
	if p.mine[port] {
		return false, nil
	}
	err := syscall.FcntlFlock(p.file.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart, Start: int64(port), Len: 1})
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("freeport: lock %s: %w", p.path, err)
	}
	p.mine[port] = true
	return vacant(port)
}

// vacant reports whether nobody listens at a port of the loopback. No process begins meanwhile: it would have the socket until it is its program,
// and the port would be taken as long.
func vacant(port int) (bool, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		return false, fmt.Errorf("freeport: %w", err)
	}
	defer func() { _ = syscall.Close(socket) }()
	// Connections that have ended take no port away.
	if err := syscall.SetsockoptInt(socket, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return false, fmt.Errorf("freeport: %w", err)
	}
	err = syscall.Bind(socket, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	// Otherwise somebody listens there.
	return err == nil, nil
}
