package edge

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// slotLease is how long a slot is kept for a document of which nothing more is heard, as after a panic of a custom
// validation rule on a server without [Door.Handler], which ends a turn with its request. What the bounds let in takes a fraction of a
// second.
const slotLease = 10 * time.Second

// slots bounds how many documents are parsed at once. Those who wait are served by how little they have under way, so that
// nobody who fills the queue keeps others from their turn.
type slots struct {
	most, mostWaiting int
	wait              time.Duration

	mu      sync.Mutex
	running map[*slot]struct{}
	waiting []*slot
	// loads counts by name of an address or key.
	loads map[string]*load
}

// load is what one address or key has under way.
type load struct{ running, waiting int }

// slot is the turn of one document, or the wait for it.
type slot struct {
	whose names
	since time.Time
	// called is closed when it is the turn, or when there will be none: then dropped was set before.
	called  chan struct{}
	dropped bool
}

func newSlots(most, mostWaiting int, wait time.Duration) *slots {
	return &slots{
		most: most, mostWaiting: mostWaiting, wait: wait, running: map[*slot]struct{}{}, loads: map[string]*load{},
	}
}

// enter waits for the turn of a document of the named, of whom an empty name is nobody. It returns nil if there is none
// in time. The context ends the wait as well.
func (s *slots) enter(ctx context.Context, whose names) *slot {
	w := &slot{whose: whose}
	s.mu.Lock()
	s.reclaim()
	if len(s.running) < s.most && s.fits(w) {
		s.run(w)
		s.mu.Unlock()
		return w
	}
	if !s.queue(w) {
		s.mu.Unlock()
		return nil
	}
	s.mu.Unlock()

	timer := time.NewTimer(s.wait)
	defer timer.Stop()
	select {
	case <-w.called:
	case <-timer.C:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.dropped || s.unqueue(w) {
		return nil
	}
	// It was called, perhaps in the same moment.
	return w
}

// leave ends the turn, which may have been ended before.
func (s *slots) leave(w *slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, runs := s.running[w]; !runs {
		return
	}
	s.stop(w)
	s.grant()
}

// runs is how many documents are parsed, none where that is not bounded, and waits how many wait for it.
func (s *slots) runs() int {
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.running)
}

func (s *slots) waits() int {
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting)
}

// grant gives free slots to those who wait.
func (s *slots) grant() {
	for len(s.running) < s.most {
		next := -1
		for i, w := range s.waiting {
			if s.fits(w) && (next < 0 || s.under(w) < s.under(s.waiting[next])) {
				next = i
			}
		}
		if next < 0 {
			return
		}
		w := s.waiting[next]
		s.unqueue(w)
		s.run(w)
		close(w.called)
	}
}

// reclaim ends turns of which nothing more was heard.
func (s *slots) reclaim() {
	if len(s.running) < s.most {
		return
	}
	for w := range s.running {
		if time.Since(w.since) > slotLease {
			s.stop(w)
		}
	}
	s.grant()
}

// fits says whether all the named have a slot left of their share.
func (s *slots) fits(w *slot) bool { return s.under(w) < max(1, s.most/2) }

// under is the most that one of the named has under way.
func (s *slots) under(w *slot) (most int) {
	for _, name := range w.whose {
		if l := s.loads[name]; name != "" && l != nil {
			most = max(most, l.running)
		}
	}
	return most
}

func (s *slots) run(w *slot) {
	w.since = time.Now()
	s.running[w] = struct{}{}
	s.count(w, func(l *load) { l.running++ })
}

func (s *slots) stop(w *slot) {
	delete(s.running, w)
	s.count(w, func(l *load) { l.running-- })
}

// queue lets it wait, if there is room. In a full queue the last of those who have most waiting gives way to who has fewer, so that
// nobody fills it for others (B. Suter, T. Lakshman, D. Stiliadis and A. Choudhury, "Buffer management schemes for
// supporting TCP in gigabit routers with per-flow queueing", 1999).
func (s *slots) queue(w *slot) bool {
	mine := s.waitingOf(w)
	if s.mostWaiting == 0 || mine >= max(1, s.mostWaiting/2) {
		return false
	}
	if len(s.waiting) >= s.mostWaiting {
		last := s.longest()
		if s.waitingOf(last) <= mine+1 {
			return false
		}
		s.unqueue(last)
		last.dropped = true
		close(last.called)
	}
	w.called = make(chan struct{})
	s.waiting = append(s.waiting, w)
	s.count(w, func(l *load) { l.waiting++ })
	return true
}

// longest returns the last that has come of those who have most waiting.
func (s *slots) longest() (last *slot) {
	most := -1
	for _, w := range s.waiting {
		if n := s.waitingOf(w); n >= most {
			last, most = w, n
		}
	}
	return last
}

// waitingOf is the most that one of the named has waiting.
func (s *slots) waitingOf(w *slot) (most int) {
	for _, name := range w.whose {
		if l := s.loads[name]; name != "" && l != nil {
			most = max(most, l.waiting)
		}
	}
	return most
}

// unqueue takes it out of the queue, if it is there.
func (s *slots) unqueue(w *slot) bool {
	for i := range s.waiting {
		if s.waiting[i] == w {
			s.waiting = append(s.waiting[:i], s.waiting[i+1:]...)
			s.count(w, func(l *load) { l.waiting-- })
			return true
		}
	}
	return false
}

// count changes the loads of the named, and forgets those who have nothing under way.
func (s *slots) count(w *slot, change func(*load)) {
	for _, name := range w.whose {
		if name == "" {
			continue
		}
		l := s.loads[name]
		if l == nil {
			l = &load{}
			s.loads[name] = l
		}
		if change(l); *l == (load{}) {
			delete(s.loads, name)
		}
	}
}

// parserSpread is by how much longer than retrySoon clients are told to wait at most: those who are refused together must
// not come back together.
const parserSpread = time.Second

// overloadedParser is the refusal of a document for which there was no turn in time.
func overloadedParser() *refusal {
	wait := retrySoon + rand.N(parserSpread) //nolint:gosec // It spreads load and is no secret.
	return refused(ratelimitclient.CodeOverloaded, LayerParser,
		"the server parses as many documents as it can: try again later", wait.Truncate(time.Millisecond))
}
