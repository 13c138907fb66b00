package web

import (
	"net/http"
	"sync"
	"time"
)

// reservePlaces is how many places the reserve of a sender has.
const reservePlaces = 4

// room is for so many requests at once, and so many of one sender. Its parts are those of [party].
type room struct {
	all, each int
	mu        sync.Mutex
	inside    int
	of        map[string]int
}

func newRoom(all, each int) *room { return &room{all: all, each: each, of: map[string]int{}} }

// enter counts a request in, which leaves when the function is called.
func (r *room) enter(p *party) (leave func(), _ error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	reserve := "reserve of " + p.sender
	switch {
	case r.inside < r.all && r.of[p.sender] < r.each && r.of[p.person] < personShare*r.each:
		return r.take(1, p.sender, p.person), nil
	case p.urgent && r.of[reserve] < reservePlaces:
		return r.take(0, reserve), nil
	}
	return nil, &problem{
		Status: http.StatusTooManyRequests, Title: "Too many requests at once", retryAfter: time.Second, Detail: "Wait for the answers to those that are under way.",
	}
}

// take counts a request under these names, and among all as so many. The mutex is held.
func (r *room) take(inside int, names ...string) (leave func()) {
	r.inside += inside
	for _, name := range names {
		r.of[name]++
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.inside -= inside
		for _, name := range names {
			if r.of[name]--; r.of[name] == 0 {
				delete(r.of, name)
			}
		}
	}
}
