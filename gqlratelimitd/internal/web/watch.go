package web

import (
	"context"
	"sync"
	"time"
)

// watchEvery is how often the database is asked for changes of other daemons, while anybody waits for one.
const watchEvery = time.Second

// watch lets requests wait for the next revision of the policy: one reader of the database for all that wait.
type watch struct {
	newest func(context.Context) (uint64, error)
	woken  chan struct{}
	mu     sync.Mutex
	// waiting is how many wait, known the newest revision that was seen, and changed is closed with the next one.
	waiting int
	known   uint64
	changed chan struct{}
	// ended says that nobody waits any more.
	ended bool
}

func newWatch(newest func(context.Context) (uint64, error)) *watch {
	return &watch{newest: newest, woken: make(chan struct{}, 1), changed: make(chan struct{})}
}

func (w *watch) wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// run looks for changes until the context ends.
func (w *watch) run(ctx context.Context) {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	defer w.end()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.woken:
		case <-ticker.C:
		}
		w.look(ctx)
	}
}

// look asks for the newest revision if anybody waits for it. A database that is away is asked again.
func (w *watch) look(ctx context.Context) {
	w.mu.Lock()
	idle := w.waiting == 0
	w.mu.Unlock()
	if idle {
		return
	}
	newest, err := w.newest(ctx)
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if newest != w.known {
		w.known = newest
		close(w.changed)
		w.changed = make(chan struct{})
	}
}

// end lets all go who wait.
func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	close(w.changed)
}

// wait returns when there may be another revision than the one that is known, or the time or the context is over.
func (w *watch) wait(ctx context.Context, known uint64, patience time.Duration) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	w.mu.Lock()
	w.waiting++
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.waiting--
	}()
	// What was published between the answer before and now was seen by nobody.
	w.wake()
	for {
		w.mu.Lock()
		changed, over := w.changed, w.ended || w.known > known
		w.mu.Unlock()
		if over {
			return
		}
		select {
		case <-changed:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}
