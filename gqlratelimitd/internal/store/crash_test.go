package store_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/internal/postgrestest"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
)

// writerURL has the process publish for ever into the database that it names, instead of running tests.
const writerURL = "STORE_TEST_WRITER"

// publishForEver prints the number of each revision once it is there.
func publishForEver(url string) error {
	ctx := context.Background()
	db, err := store.Open(ctx, store.Config{URL: url})
	if err != nil {
		return err
	}
	for {
		var number uint64
		err := db.Change(ctx, func(tx *store.Tx) error {
			number = tx.Head().Policy + 1
			return publishNext(ctx, tx)
		})
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(os.Stdout, number); err != nil {
			return err
		}
	}
}

func publishNext(ctx context.Context, tx *store.Tx) error {
	expected := tx.Head().Policy
	e := entry("ada", "policy.publish", "policy", "")
	e.RevisionAfter = expected + 1
	if err := tx.Publish(revision(expected+1), expected); err != nil {
		return err
	}
	if _, err := audit.Append(ctx, tx.Audit(), e); err != nil {
		return err
	}
	return tx.Enqueue("policy", "", expected+1)
}

// requireWhole holds that nothing is missing of what was acknowledged, and that each change is there as a whole.
func requireWhole(t testing.TB, db *store.DB, acknowledged uint64) {
	t.Helper()
	head := read(t, db, (*store.View).Head)
	require.GreaterOrEqual(t, head.Policy, acknowledged)
	require.Len(t, requireLog(t, db), int(head.Policy))
	newest := read(t, db, func(v *store.View) ([]store.Message, error) { return v.Outbox(0, 10) })
	require.Equal(t, head.Policy, newest[0].Revision)
	for n := uint64(1); n <= head.Policy; n++ {
		require.Equal(t, revision(n), read(t, db, func(v *store.View) (*policy.Revision, error) { return v.Revision(n) }))
	}
}

func TestADaemonThatIsKilledLosesNothingThatItHasAcknowledged(t *testing.T) {
	t.Parallel()
	for kind, empty := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			url := empty(t)
			db := open(t, store.Config{URL: url})
			acknowledged := uint64(0)
			for kill := range 6 {
				writer := exec.Command(os.Args[0])
				writer.Env = append(os.Environ(), writerURL+"="+url)
				writer.Stderr = os.Stderr
				out, err := writer.StdoutPipe()
				require.NoError(t, err)
				require.NoError(t, writer.Start())
				lines := bufio.NewScanner(out)
				for range 3 + kill {
					require.True(t, lines.Scan(), "the writer has ended")
					acknowledged, err = strconv.ParseUint(lines.Text(), 10, 64)
					require.NoError(t, err)
				}
				require.NoError(t, writer.Process.Kill())
				for lines.Scan() {
					// What was said before the kill counts.
					if n, err := strconv.ParseUint(lines.Text(), 10, 64); err == nil {
						acknowledged = n
					}
				}
				require.Error(t, writer.Wait())
			}
			requireWhole(t, db, acknowledged)
			change(t, db, func(tx *store.Tx) { require.NoError(t, publishNext(t.Context(), tx)) })
		})
	}
}

func TestAPostgreSQLThatRestartsLosesNothingAndChangesGoOn(t *testing.T) {
	t.Parallel()
	own, err := postgrestest.Launch()
	require.NoError(t, err)
	defer func() { require.NoError(t, own.Close()) }()
	db, err := store.Open(t.Context(), store.Config{URL: database(t, own)})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	var writing sync.WaitGroup
	var mu sync.Mutex
	var once sync.Once
	acknowledged, restarted, done := uint64(0), make(chan struct{}), make(chan struct{})
	for range 4 {
		writing.Go(func() {
			after := 0
			for after < 5 {
				var number uint64
				err := db.Change(t.Context(), func(tx *store.Tx) error {
					number = tx.Head().Policy + 1
					return publishNext(t.Context(), tx)
				})
				select {
				case <-restarted:
					if err == nil {
						after++
					}
				default:
				}
				if err == nil {
					mu.Lock()
					acknowledged = max(acknowledged, number)
					if acknowledged >= 10 {
						once.Do(func() { close(done) })
					}
					mu.Unlock()
				}
			}
		})
	}
	<-done
	require.NoError(t, own.Restart())
	close(restarted)
	writing.Wait()
	requireWhole(t, db, acknowledged)
}
