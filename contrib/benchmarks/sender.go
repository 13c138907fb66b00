package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// window is a number of requests that are sent at moments that do not depend on the answers.
type window struct {
	// Address is that of the server, empty to send nothing, and Path that of one of its handlers.
	Address string `json:"address"`
	Path    string `json:"path"`
	// PerSecond is how many requests are due in a second, evenly.
	PerSecond int `json:"perSecond"`
	Requests  int `json:"requests"`
	// Tells is what answers tell of limits.
	Tells telling `json:"tells"`
}

// seen is what a window showed, in nanoseconds, in no order.
type seen struct {
	// Took is from the moment when a request was due to its answer: a request that had to wait for a connection, or for its
	// sender, waits in this time.
	Took []int64 `json:"took"`
	// Late is from the moment when a request was due to that when its sender had woken up.
	Late []int64 `json:"late"`
	// Away is how many answers the server gave without its store. They are answers of Took.
	Away int `json:"away"`
}

// mostConnections is how many requests may be on their way.
const mostConnections = 128

// sender sends the requests of windows, over connections that stay open in between.
type sender struct {
	address string
	idle    chan *connection
	all     []*connection
	// asked is how many requests were sent.
	asked int
}

// connection has one request on its way at most.
type connection struct {
	net.Conn

	answers *bufio.Reader
	request []byte
}

// sendWindows is the part of a process that sends windows.
func sendWindows(in io.Reader, out io.Writer) error {
	s := &sender{}
	defer s.hangUp()
	return answering(in, out, func(question json.RawMessage) (any, error) {
		var w window
		if err := json.Unmarshal(question, &w); err != nil {
			return nil, err
		}
		return s.send(context.Background(), &w)
	})
}

// dial opens the connections to a server.
func (s *sender) dial(ctx context.Context, address string) error {
	if address == s.address {
		return nil
	}
	s.hangUp()
	s.idle = make(chan *connection, mostConnections)
	for range mostConnections {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		one := &connection{Conn: c, answers: bufio.NewReader(c)}
		s.all = append(s.all, one)
		s.idle <- one
	}
	s.address = address
	return nil
}

// hangUp closes the connections. Nothing may be on its way.
func (s *sender) hangUp() {
	for _, c := range s.all {
		_ = c.Close()
	}
	s.address, s.all = "", nil
}

// send sends a window, and returns when all answers are there.
func (s *sender) send(ctx context.Context, w *window) (*seen, error) {
	if w.Address != "" {
		if err := s.dial(ctx, w.Address); err != nil {
			return nil, err
		}
	}
	// The runtime's timers are late by up to a millisecond when nothing else happens; a sleeping thread is not.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var (
		mu     sync.Mutex
		found  = &seen{Took: []int64{}, Late: make([]int64, 0, w.Requests)}
		failed error
		asking sync.WaitGroup
	)
	start, pause := time.Now().Add(time.Millisecond), time.Second/time.Duration(max(1, w.PerSecond))
	for i := range w.Requests {
		due := start.Add(time.Duration(i) * pause)
		if err := sleepUntil(due); err != nil {
			return nil, err
		}
		found.Late = append(found.Late, int64(time.Since(due)))
		if w.Address == "" {
			continue
		}
		c := <-s.idle
		s.asked++
		tenant := tenantNames[s.asked%tenants]
		asking.Go(func() {
			err := c.ask(w, tenant)
			took := int64(time.Since(due))
			s.idle <- c
			mu.Lock()
			defer mu.Unlock()
			found.Took = append(found.Took, took)
			if errors.Is(err, errStoreAway) {
				found.Away++
				err = nil
			}
			failed = cmp.Or(failed, err)
		})
	}
	asking.Wait()
	return found, failed
}

// sleepUntil sleeps, on the thread of the caller.
func sleepUntil(due time.Time) error {
	for {
		left := time.Until(due)
		if left <= 0 {
			return nil
		}
		pause := syscall.NsecToTimespec(int64(left))
		if err := syscall.Nanosleep(&pause, nil); err != nil && !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// ask sends one request and reads its answer. It spares what a client of net/http does besides, because the processors are
// those of the server.
func (c *connection) ask(w *window, tenant string) error {
	c.request = append(c.request[:0], "POST "...)
	c.request = append(c.request, w.Path...)
	c.request = append(c.request, " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nX-Tenant: "...)
	c.request = append(c.request, tenant...)
	c.request = append(c.request, "\r\nContent-Length: "...)
	c.request = strconv.AppendInt(c.request, int64(len(requestBody)), 10)
	c.request = append(c.request, "\r\n\r\n"...)
	c.request = append(c.request, requestBody...)
	if _, err := c.Write(c.request); err != nil {
		return err
	}
	response, err := http.ReadResponse(c.answers, nil)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	return check(response.StatusCode, body, w.Tells)
}
