package relay

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

//go:embed witness.lua
var witnessSource string

var witnessScript = redis.NewScript(witnessSource)

// witness is a key of Redis that differs after each write of the relay. A Redis that has not the one that was left there has lost
// something, or another daemon has written.
//
//	rl:NAMESPACE:relay  a random text of the process, and a number
type witness struct {
	client redis.UniversalClient
	// key is rl:NAMESPACE:relay, and life tells this process from all others.
	key, life string
	count     uint64
	looked    time.Time
}

func (w *witness) value() string { return fmt.Sprintf("%s:%d", w.life, w.count) }

// begin leaves another witness, whatever is there.
func (w *witness) begin(ctx context.Context) error {
	w.count++
	w.looked = time.Now()
	return w.call(ctx, func(ctx context.Context) error { return w.client.Set(ctx, w.key, w.value(), 0).Err() })
}

// stands reports whether the witness is there that was left.
func (w *witness) stands(ctx context.Context) (stands bool, _ error) {
	err := w.call(ctx, func(ctx context.Context) error {
		// One byte more than it has, of whatever somebody else has put there.
		is, err := w.client.GetRange(ctx, w.key, 0, int64(len(w.value()))).Result()
		stands = err == nil && is == w.value()
		return err
	})
	return stands, err
}

// next leaves another witness in the place of the one that was left, and reports whether that was there.
func (w *witness) next(ctx context.Context) (stood bool, _ error) {
	was := w.value()
	w.count++
	err := w.call(ctx, func(ctx context.Context) error {
		n, err := witnessScript.Run(ctx, w.client, []string{w.key}, was, w.value()).Int()
		stood = n == 1
		return err
	})
	return stood, err
}

func (w *witness) call(ctx context.Context, run func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, callPatience)
	defer cancel()
	if err := run(ctx); err != nil {
		return fmt.Errorf("relay: the witness: %w", err)
	}
	return nil
}

// look asks for the witness from time to time: what Redis has lost has to be put back although nothing changes.
func (r *Relay) look(ctx context.Context) error {
	// The first thing that is done is to compare everything.
	if !r.sweep.begun || time.Since(r.witness.looked) < r.cfg.Interval {
		return nil
	}
	stands, err := r.witness.stands(ctx)
	if err != nil {
		r.sweep.due = true
		return err
	}
	r.witness.looked = time.Now()
	if !stands {
		r.sweep.lost = true
	}
	if time.Since(r.modesLooked) < modesEvery {
		return nil
	}
	// They are few, and in one place. Who eases everything at 3 a.m. wants it to be seen.
	r.modesLooked = time.Now()
	return r.bringAll(ctx, store.ModesMessage, []string{""}, r.bringModes)
}
