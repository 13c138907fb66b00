package store_test

import (
	"flag"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

// rounds is how often publishers compete: a thousand times in make test-long.
var rounds = flag.Int("rounds", 25, "how often 32 publishers compete for a revision")

// TestOf32PublishersOneWinsEachRoundAndTheLogHasNoFork has the publishers at four daemons, each with connections of its own.
func TestOf32PublishersOneWinsEachRoundAndTheLogHasNoFork(t *testing.T) {
	t.Parallel()
	for kind, empty := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			url := empty(t)
			var daemons []*store.DB
			for range 4 {
				daemons = append(daemons, open(t, store.Config{URL: url}))
			}
			for round := range *rounds {
				var publishers sync.WaitGroup
				var won, lost atomic.Int64
				for p := range 32 {
					publishers.Go(func() {
						err := compete(t, daemons[p%len(daemons)], uint64(round), fmt.Sprintf("publisher %d", p))
						if err == nil {
							won.Add(1)
							return
						}
						requireConflict(t, err, uint64(round)+1, "ada")
						lost.Add(1)
					})
				}
				publishers.Wait()
				require.Equal(t, []int64{1, 31}, []int64{won.Load(), lost.Load()})
			}
			entries := requireLog(t, daemons[0])
			require.Len(t, entries, *rounds)
			for i, e := range entries {
				require.Equal(t, []uint64{uint64(i), uint64(i) + 1}, []uint64{e.RevisionBefore, e.RevisionAfter})
			}
			require.Len(t, read(t, daemons[0], func(v *store.View) ([]store.Message, error) { return v.Outbox(0, 10) }), 1)
		})
	}
}

// compete publishes the revision after one, with its audit entry and its message.
func compete(t testing.TB, db *store.DB, expected uint64, who string) error {
	t.Helper()
	return db.Change(t.Context(), func(tx *store.Tx) error {
		// The entry comes first, so that a loser has to undo it.
		e := entry(who, "policy.publish", "policy", "")
		e.RevisionBefore, e.RevisionAfter = expected, expected+1
		if _, err := audit.Append(t.Context(), tx.Audit(), e); err != nil {
			return err
		}
		if err := tx.Publish(revision(expected+1), expected); err != nil {
			return err
		}
		return tx.Enqueue("policy", "", expected+1)
	})
}

// TestWhoReadsByRevisionMissesNothing reads what has changed while eight daemons write.
func TestWhoReadsByRevisionMissesNothing(t *testing.T) {
	t.Parallel()
	for kind, empty := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			url := empty(t)
			const writers, each = 8, 20
			reader := open(t, store.Config{URL: url})
			var writing sync.WaitGroup
			for w := range writers {
				db := open(t, store.Config{URL: url})
				writing.Go(func() {
					for i := range each {
						change(t, db, func(tx *store.Tx) {
							require.NoError(t, tx.PutTenant(&store.Tenant{Name: fmt.Sprint(w, i), Record: []byte("{}")}, 0))
						})
					}
				})
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				writing.Wait()
			}()
			have := uint64(0)
			for last := false; !last; {
				select {
				case <-ended:
					last = true
				default:
				}
				for _, c := range read(t, reader, func(v *store.View) ([]store.Tenant, error) { return v.TenantChanges(have, store.MaxPage) }) {
					require.Equal(t, have+1, c.Revision, "a gap would be a change that is there later")
					have = c.Revision
				}
			}
			require.Equal(t, uint64(writers*each), have)
		})
	}
}
