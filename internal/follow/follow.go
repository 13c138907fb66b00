// Package follow keeps an instance in step with something that others change: a policy, the records of tenants, a map of stores, mode
// switches.
//
// A [Follower] asks at an interval with jitter, at hints, and soon again where nobody has answered. What was good last holds until
// something better is read: the source may be away, or hold what a stranger wrote.
package follow

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/guard"
	"github.com/gqlgen-ratelimit/ratelimit/internal/pace"
)

// staleIntervals is after how many intervals without an answer an instance is out of touch.
const staleIntervals = 5

// minRetry is within which time a question is asked again that nobody has answered; the next one comes within twice as long, and so on,
// until that is the interval: five or six questions in the first second, and then no more than ever.
const minRetry = 50 * time.Millisecond

// defaultGap is [Config.Gap] where nothing else is said.
const defaultGap = 20 * time.Millisecond

// longestRetry is the longest time between two questions that nobody has answered, where there is no interval.
const longestRetry = time.Second

// Config says what is followed, and how. Read and Judge are required.
type Config[T any] struct {
	// Source names what Read and Subscribe are methods of, in the error of one that panics.
	Source string
	// Read asks once. It ends when its context does.
	Read func(ctx context.Context) (T, error)
	// Judge takes an answer, or the error of Read, and makes what is good hold. It returns nil if what holds is what the source has, an
	// error of [Refused] if the source has something else that does not hold, [ErrPending] if that is not known yet, and any other error
	// if there was no answer. It is called by one goroutine at a time.
	Judge func(ctx context.Context, answer T, err error) error
	// Asked is called after each question of [Follower.Run], by its goroutine. hinted says that a hint had it asked. Nil is nobody.
	Asked func(ctx context.Context, err error, hinted bool)
	// Subscribe blocks while a subscription to hints stands, and calls wake when it stands and at each hint. [ErrNoHints] ends it, and
	// any other error has the follower subscribe again. Nil is a source without hints.
	Subscribe func(ctx context.Context, wake func()) error

	// Interval is how often Read is called, each time up to a fifth sooner or later. Zero calls it at hints alone, and what holds is
	// never stale.
	Interval time.Duration
	// AtOnce has the first question asked at once. Otherwise it comes anywhere in the interval, so that instances that start together do
	// not ask together.
	AtOnce bool
	// Patience is for how long a question waits. It is required.
	Patience time.Duration
	// Gap is the shortest time between two questions because of hints: whoever can send hints cannot have an instance ask without end.
	// Zero means 20 ms.
	Gap time.Duration
}

// Errors that sources and judges return.
var (
	// ErrPending says that it is not known yet whether what holds is what the source has. It is no failure.
	ErrPending = errors.New("follow: it is not known yet whether the newest holds")
	// ErrNoHints says that a source has no hints.
	ErrNoHints = errors.New("follow: the source has no hints")
)

// refused is an answer that does not hold.
type refused struct{ error }

// Unwrap returns why not.
func (r refused) Unwrap() error { return r.error }

// Refused says of an error that the source has answered, and that what it has does not hold.
func Refused(err error) error { return refused{err} }

// Follower keeps an instance in step. It is made by [New], does nothing before [Follower.Run] or [Follower.Ask], and is safe for
// concurrent use.
type Follower[T any] struct {
	cfg   Config[T]
	began time.Time
	woken chan struct{}
	// asking is held by whoever asks, so that one answer is judged at a time.
	asking sync.Mutex
	known  atomic.Pointer[known]
}

// known is what is known of the source.
type known struct {
	asked time.Time
	err   error
}

// New returns a follower that has asked nothing yet.
func New[T any](cfg Config[T]) *Follower[T] {
	if cfg.Gap == 0 {
		cfg.Gap = defaultGap
	}
	f := &Follower[T]{cfg: cfg, began: time.Now(), woken: make(chan struct{}, 1)}
	f.known.Store(&known{})
	return f
}

// Ask asks once, and returns what Judge has.
func (f *Follower[T]) Ask(ctx context.Context) error {
	f.asking.Lock()
	defer f.asking.Unlock()
	bounded, cancel := context.WithTimeout(ctx, f.cfg.Patience)
	defer cancel()
	var answer T
	err := guard.Call(f.cfg.Source, func() (err error) {
		answer, err = f.cfg.Read(bounded)
		return err
	})
	err = f.cfg.Judge(bounded, answer, err)
	next := *f.known.Load()
	switch {
	case errors.Is(err, ErrPending):
		return err
	case !unanswered(err):
		next = known{asked: time.Now()}
	default:
		next.err = err
	}
	f.known.Store(&next)
	return err
}

// unanswered says that nobody has said what the source has.
func unanswered(err error) bool {
	is := refused{}
	return err != nil && !errors.Is(err, ErrPending) && !errors.As(err, &is)
}

// Run follows until the context ends.
func (f *Follower[T]) Run(ctx context.Context) {
	var listening sync.WaitGroup
	if f.cfg.Subscribe != nil {
		listening.Go(func() { f.listen(ctx) })
	}
	f.poll(ctx)
	listening.Wait()
}

// poll asks at each interval, when it is woken, and soon again when nobody has answered.
func (f *Follower[T]) poll(ctx context.Context) {
	timer := time.NewTimer(f.first())
	defer timer.Stop()
	retry, longest := minRetry, f.cfg.Interval
	if longest == 0 {
		longest = longestRetry
	}
	for {
		hinted := false
		select {
		case <-ctx.Done():
			return
		case <-f.woken:
			hinted = true
		case <-timer.C:
		}
		err := f.Ask(ctx) // Kept for State.
		if f.cfg.Asked != nil {
			f.cfg.Asked(ctx, err, hinted)
		}
		silent := unanswered(err)
		switch {
		case silent && retry < longest:
			timer.Reset(pace.Between(retry/2, retry))
			retry *= 2
		case !hinted:
			timer.Reset(f.next())
		}
		if !silent {
			retry = minRetry
		}
		if hinted && !pace.Sleep(ctx, f.cfg.Gap) {
			return
		}
	}
}

// never is a time that does not come.
const never = time.Duration(1<<63 - 1)

// first returns when the first question comes.
func (f *Follower[T]) first() time.Duration {
	switch {
	case f.cfg.AtOnce:
		return 0
	case f.cfg.Interval == 0:
		return never
	default:
		return pace.Between(0, f.cfg.Interval)
	}
}

// next returns when the next one does.
func (f *Follower[T]) next() time.Duration {
	if f.cfg.Interval == 0 {
		return never
	}
	return pace.Jittered(f.cfg.Interval)
}

// listen subscribes to hints again and again.
func (f *Follower[T]) listen(ctx context.Context) {
	pace.Subscribe(ctx, func(stands func()) bool {
		err := guard.Call(f.cfg.Source, func() error {
			return f.cfg.Subscribe(ctx, func() {
				stands()
				pace.Sign(f.woken)
			})
		})
		return !errors.Is(err, ErrNoHints)
	})
}
