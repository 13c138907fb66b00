package state_test

import (
	"testing"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// FuzzCallsOfAnyBytesEnd feeds the calls what nobody has packed.
func FuzzCallsOfAnyBytesEnd(f *testing.F) {
	for chain := range uint64(50) {
		w := newWorld(1, chain)
		for range chainLength {
			c := w.next()
			if len(c.Values) < 2 || len(c.Args) < 3 {
				continue
			}
			f.Add(c.Values[0], c.Values[len(c.Values)-1], c.Args[0], c.Args[1], c.Args[len(c.Args)-1], c.Now)
		}
	}
	f.Fuzz(func(_ *testing.T, owner, last []byte, numbers, claim, rules string, now int64) {
		for _, call := range []func(state.Call) (state.Reply, error){
			state.Take, state.Settle, state.Adjust, state.Override, state.Heartbeat,
		} {
			for _, args := range [][]string{{numbers, claim, rules}, {numbers, claim, "answer", rules}, {numbers, rules}} {
				for _, values := range [][][]byte{{owner, last}, {owner, last, nil}, {last}, {owner}} {
					_, _ = call(state.Call{Values: values, Args: args, Now: now})
				}
			}
		}
	})
}
