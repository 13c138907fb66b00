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

// Cause is why a question is asked.
type Cause uint8

// Why a question is asked.
const (
	// ByCall is a question of [Follower.Ask].
	ByCall Cause = iota
	// ByInterval is one that was due.
	ByInterval
	// ByHint is one because of a hint.
	ByHint
)

// Answer is what a question came to.
type Answer[T any] struct {
	// Value is what the source has, and Err why it has not answered.
	Value T
	Err   error
	// Cause is why it was asked.
	Cause Cause
}

// Config says what is followed, and how. Read, Judge and Patience are required.
type Config[T any] struct {
	// Source names what Read and Subscribe are methods of, in the error of one that panics.
	Source string
	// Read asks once. It ends when its context does.
	Read func(ctx context.Context) (T, error)
	// Judge makes what is good hold. It returns nil if what holds is what the source has, an error of [Refused] if the source has
	// something else that does not hold, one of [Behind] if the source does not know what its newest is, [ErrPending] if that is not known
	// yet, and any other error if there was no answer. It is called by one goroutine at a time.
	Judge func(ctx context.Context, answer Answer[T]) error
	// Asked is called after each question of [Follower.Run], by its goroutine. Nil is nobody.
	Asked func(ctx context.Context)
	// Subscribe blocks while a subscription to hints stands, and calls wake when it stands and at each hint. [ErrNoHints] ends it, and
	// any other error has the follower subscribe again. Nil is a source without hints.
	Subscribe func(ctx context.Context, wake func()) error

	// Interval is how often Read is called, each time up to a fifth sooner or later. Zero calls it at hints alone, and what holds is
	// never stale.
	Interval time.Duration
	// AtOnce has the first question asked at once. Otherwise it comes anywhere in the interval, so that instances that start together do
	// not ask together.
	AtOnce bool
	// Patience is for how long a question of [Follower.Run] waits for its answer.
	Patience time.Duration
	// Gap is the shortest time between two questions because of hints: whoever can send hints cannot have an instance ask without end.
	// Zero means 20 ms.
	Gap time.Duration
}

// Errors that sources and judges return.
var (
	// ErrPending says that it is not known yet whether what holds is what the source has. It is no failure.
	ErrPending = errors.New("the source waits whether what it has stays")
	// ErrNoHints says that a source has no hints.
	ErrNoHints = errors.New("the source has no hints")
)

// refused is an answer that does not hold.
type refused struct{ error }

// Unwrap returns why not.
func (r refused) Unwrap() error { return r.error }

// Refused says of an error that the source has answered, and that what it has does not hold.
func Refused(err error) error { return refused{err} }

// behind is an answer of a source that does not know its newest.
type behind struct{ error }

// Unwrap returns how that shows.
func (b behind) Unwrap() error { return b.error }

// Behind says of an error that the source has answered, and does not know what its newest is. It counts as out of touch, and is not asked
// sooner for that.
func Behind(err error) error { return behind{err} }

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

// Ask asks once, whatever [Follower.Run] does, and returns what Judge has returned.
func (f *Follower[T]) Ask(ctx context.Context) error { return f.ask(ctx, ctx, ByCall) }

// ask asks, and has the answer judged.
func (f *Follower[T]) ask(ctx, reading context.Context, cause Cause) error {
	f.asking.Lock()
	defer f.asking.Unlock()
	answer := Answer[T]{Cause: cause}
	answer.Err = guard.Call(f.cfg.Source, func() (err error) {
		answer.Value, err = f.cfg.Read(reading)
		return err
	})
	err := f.cfg.Judge(ctx, answer)
	next := *f.known.Load()
	switch is := (refused{}); {
	case errors.Is(err, ErrPending):
		return err
	case err == nil, errors.As(err, &is):
		next = known{asked: time.Now()}
	default:
		next.err = err
	}
	f.known.Store(&next)
	return err
}

// unanswered says that the source could not be read.
func unanswered(err error) bool {
	no, late := refused{}, behind{}
	return err != nil && !errors.Is(err, ErrPending) && !errors.As(err, &no) && !errors.As(err, &late)
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
		cause := ByInterval
		select {
		case <-ctx.Done():
			return
		case <-f.woken:
			cause = ByHint
		case <-timer.C:
		}
		reading, cancel := context.WithTimeout(ctx, f.cfg.Patience)
		err := f.ask(ctx, reading, cause) // Kept for State.
		cancel()
		if f.cfg.Asked != nil {
			f.cfg.Asked(ctx)
		}
		silent := unanswered(err)
		switch {
		case silent && retry < longest:
			timer.Reset(pace.Between(retry/2, retry))
			retry *= 2
		case cause != ByHint:
			timer.Reset(f.next())
		}
		if !silent {
			retry = minRetry
		}
		if cause == ByHint && !pace.Sleep(ctx, f.cfg.Gap) {
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
