// Package turn gives out turns to parse documents: so many at once, and the next to whoever has fewest under way.
package turn

import (
	"context"
	"sync"
	"time"
)

// lease is how long a turn is kept for a document of which nothing more is heard, as after a panic of a custom
// validation rule on a server without edge.Door.Handler, which ends a turn with its request. What the bounds let in takes a fraction of a
// second.
const lease = 10 * time.Second

// Queue bounds how many documents are parsed at once. Those who wait are served by how little they have under way, so that
// nobody who fills the queue keeps others from their turn.
type Queue struct {
	most, mostWaiting int
	wait              time.Duration

	mu      sync.Mutex
	running map[*Turn]struct{}
	waiting []*Turn
	// loads counts by name of an address or key.
	loads map[string]*load
}

// load is what one address or key has under way.
type load struct{ running, waiting int }

// Turn is the turn of one document, or the wait for it.
type Turn struct {
	// whose are the names of those for whom it counts.
	whose [3]string
	since time.Time
	// called is closed when it is the turn, or when there will be none: then dropped was set before.
	called  chan struct{}
	dropped bool
}

// New returns a queue of which so many run at once, and so many wait, each for so long.
func New(most, mostWaiting int, wait time.Duration) *Queue {
	return &Queue{
		most: most, mostWaiting: mostWaiting, wait: wait, running: map[*Turn]struct{}{}, loads: map[string]*load{},
	}
}

// Enter waits for the turn of a document of the named, of whom an empty name is nobody. It returns nil if there is none
// in time. The context ends the wait as well.
func (q *Queue) Enter(ctx context.Context, whose [3]string) *Turn {
	w := &Turn{whose: whose}
	q.mu.Lock()
	q.reclaim()
	if len(q.running) < q.most && q.fits(w) {
		q.run(w)
		q.mu.Unlock()
		return w
	}
	if !q.queue(w) {
		q.mu.Unlock()
		return nil
	}
	q.mu.Unlock()

	timer := time.NewTimer(q.wait)
	defer timer.Stop()
	select {
	case <-w.called:
	case <-timer.C:
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.dropped || q.unqueue(w) {
		return nil
	}
	// It was called, perhaps in the same moment.
	return w
}

// Leave ends the turn, which may have been ended before.
func (q *Queue) Leave(w *Turn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, runs := q.running[w]; !runs {
		return
	}
	q.stop(w)
	q.grant()
}

// Runs is how many documents are parsed, none where that is not bounded: on nil, and Waits how many wait for it.
func (q *Queue) Runs() int {
	if q == nil {
		return 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.running)
}

// Waits is described with [Queue.Runs].
func (q *Queue) Waits() int {
	if q == nil {
		return 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

// grant gives free turns to those who wait.
func (q *Queue) grant() {
	for len(q.running) < q.most {
		next := -1
		for i, w := range q.waiting {
			if q.fits(w) && (next < 0 || q.under(w) < q.under(q.waiting[next])) {
				next = i
			}
		}
		if next < 0 {
			return
		}
		w := q.waiting[next]
		q.unqueue(w)
		q.run(w)
		close(w.called)
	}
}

// reclaim ends turns of which nothing more was heard.
func (q *Queue) reclaim() {
	if len(q.running) < q.most {
		return
	}
	for w := range q.running {
		if time.Since(w.since) > lease {
			q.stop(w)
		}
	}
	q.grant()
}

// fits says whether all the named have a turn left of their share.
func (q *Queue) fits(w *Turn) bool { return q.under(w) < max(1, q.most/2) }

// under is the most that one of the named has under way.
func (q *Queue) under(w *Turn) (most int) {
	for _, name := range w.whose {
		if l := q.loads[name]; name != "" && l != nil {
			most = max(most, l.running)
		}
	}
	return most
}

func (q *Queue) run(w *Turn) {
	w.since = time.Now()
	q.running[w] = struct{}{}
	q.count(w, func(l *load) { l.running++ })
}

func (q *Queue) stop(w *Turn) {
	delete(q.running, w)
	q.count(w, func(l *load) { l.running-- })
}

// queue lets it wait, if there is room. In a full queue the last of those who have most waiting gives way to who has fewer, so that
// nobody fills it for others (B. Suter, T. Lakshman, D. Stiliadis and A. Choudhury, "Buffer management schemes for
// supporting TCP in gigabit routers with per-flow queueing", 1999).
func (q *Queue) queue(w *Turn) bool {
	mine := q.waitingOf(w)
	if q.mostWaiting == 0 || mine >= max(1, q.mostWaiting/2) {
		return false
	}
	if len(q.waiting) >= q.mostWaiting {
		last := q.longest()
		if q.waitingOf(last) <= mine+1 {
			return false
		}
		q.unqueue(last)
		last.dropped = true
		close(last.called)
	}
	w.called = make(chan struct{})
	q.waiting = append(q.waiting, w)
	q.count(w, func(l *load) { l.waiting++ })
	return true
}

// longest returns the last that has come of those who have most waiting.
func (q *Queue) longest() (last *Turn) {
	most := -1
	for _, w := range q.waiting {
		if n := q.waitingOf(w); n >= most {
			last, most = w, n
		}
	}
	return last
}

// waitingOf is the most that one of the named has waiting.
func (q *Queue) waitingOf(w *Turn) (most int) {
	for _, name := range w.whose {
		if l := q.loads[name]; name != "" && l != nil {
			most = max(most, l.waiting)
		}
	}
	return most
}

// unqueue takes it out of the queue, if it is there.
func (q *Queue) unqueue(w *Turn) bool {
	for i := range q.waiting {
		if q.waiting[i] == w {
			q.waiting = append(q.waiting[:i], q.waiting[i+1:]...)
			q.count(w, func(l *load) { l.waiting-- })
			return true
		}
	}
	return false
}

// count changes the loads of the named, and forgets those who have nothing under way.
func (q *Queue) count(w *Turn, change func(*load)) {
	for _, name := range w.whose {
		if name == "" {
			continue
		}
		l := q.loads[name]
		if l == nil {
			l = &load{}
			q.loads[name] = l
		}
		if change(l); *l == (load{}) {
			delete(q.loads, name)
		}
	}
}
