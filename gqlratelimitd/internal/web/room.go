package web

import (
	"net/http"
	"sync"
	"time"
)

// room is for so many at once, and so many of one name.
type room struct {
	all, each int
	mu        sync.Mutex
	inside    int
	of        map[string]int
}

func newRoom(all, each int) *room { return &room{all: all, each: each, of: map[string]int{}} }

// enter counts somebody in, who leaves when the function is called.
func (r *room) enter(name string) (leave func(), _ error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.inside >= r.all || r.of[name] >= r.each {
		return nil, &problem{
			Status: http.StatusTooManyRequests, Title: "Too many requests at once", retryAfter: time.Second, Detail: "Wait for the answers to those that are under way.",
		}
	}
	r.inside++
	r.of[name]++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.inside--
		if r.of[name]--; r.of[name] == 0 {
			delete(r.of, name)
		}
	}, nil
}
