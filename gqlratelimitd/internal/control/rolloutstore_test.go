package control_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/digest"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/rollout"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/storetest"
	"github.com/gqlgen-ratelimit/ratelimit/internal/postgrestest"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// daemons are several of them on one database, each with a connection of its own and a clock that all have.
type daemons struct {
	*testing.T
	controls []*control.Control
	dbs      []*store.DB
	now      time.Time
}

// inBoth runs a test with so many daemons on an empty database of each kind.
func inBoth(t *testing.T, n int, test func(d *daemons)) {
	t.Helper()
	kinds := map[string]func(t *testing.T) string{
		"SQLite": func(t *testing.T) string {
			t.Helper()
			return storetest.SQLite(t)
		},
		"PostgreSQL": func(t *testing.T) string {
			t.Helper()
			server, err := postgrestest.Launch()
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, server.Close()) })
			return server.URL("postgres")
		},
	}
	for kind, empty := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			d := &daemons{T: t, now: time.Date(2026, 11, 22, 3, 0, 0, 123456000, time.UTC)}
			url := empty(t)
			for range n {
				db, err := store.Open(t.Context(), store.Config{URL: url, Now: func() time.Time { return d.now }})
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, db.Close()) })
				c, err := control.New(control.Config{
					Store: db, Rollouts: true, SecondPerson: access.SecondPerson{MaxShare: access.None},
					Now: func() time.Time { return d.now },
				})
				require.NoError(t, err)
				d.controls, d.dbs = append(d.controls, c), append(d.dbs, db)
			}
			_, err := d.controls[0].Publish(t.Context(), by(publisher), control.PublishInput{Document: []byte(document)})
			require.NoError(t, err)
			_, err = d.controls[0].StartRollout(t.Context(), by(publisher), startInput(more, 1))
			require.NoError(t, err)
			test(d)
		})
	}
}

// kept is all that a change leaves behind.
type kept struct {
	head    store.Head
	entries []audit.Entry
	outbox  []store.Message
	rollout *store.Rollout
	newest  []string
}

func (d *daemons) kept() (k kept) {
	d.Helper()
	require.NoError(d, d.dbs[0].Read(d.Context(), func(v *store.View) (err error) {
		if k.head, err = v.Head(); err != nil {
			return err
		}
		if k.rollout, err = v.Rollout(); err != nil {
			return err
		}
		if k.outbox, err = v.Outbox(0, store.MaxPage); err != nil {
			return err
		}
		newest, err := v.Revision(k.head.Policy)
		if err != nil {
			return err
		}
		k.newest = []string{newest.Author, newest.Reason, string(newest.Document)}
		records, err := v.Audit().Records(d.Context(), 0, store.MaxPage)
		for _, record := range records {
			e, err := audit.ParseRecord(record)
			require.NoError(d, err)
			k.entries = append(k.entries, *e)
		}
		return err
	}))
	return k
}

// TestWhatHappensByItselfIsOneTransactionInBothDatabases is the contract of rollout.Store.
func TestWhatHappensByItselfIsOneTransactionInBothDatabases(t *testing.T) {
	t.Parallel()
	inBoth(t, 1, func(d *daemons) {
		keeper := d.controls[0].RolloutStore()
		load := func() rollout.Situation {
			there, err := keeper.Load(d.Context())
			require.NoError(d, err)
			return there
		}
		there := load()
		began := d.kept()
		require.Equal(d, []any{uint64(2), uint64(1), 0}, []any{there.Newest, there.State.Version, there.State.Step})
		stagedFirst, err := tiers.StageDocument([]byte(document), []byte(more), there.State.Stage())
		require.NoError(d, err)
		require.Equal(d, []string{rollout.Actor, "roll-out rollout-2: step 1 of 3: a candidate, which refuses nobody. why", string(stagedFirst)}, began.newest)
		require.Equal(d, []string{document, more}, []string{string(there.State.Old), string(there.State.New)})

		// What was measured is kept, and is no entry.
		next, publication, err := there.Advance(d.now.Add(10*time.Minute), &rollout.Shares{Tenants: 0.01})
		require.NoError(d, err)
		require.NoError(d, keeper.Save(d.Context(), next, publication))
		after := d.kept()
		require.Equal(d, began.entries, after.entries)
		require.Equal(d, began.head, after.head)
		require.Equal(d, rollout.Shares{Tenants: 0.01}, load().State.Highest)
		require.ErrorIs(d, keeper.Save(d.Context(), next, publication), rollout.ErrConflict, "it is there already")
		require.Equal(d, after, d.kept())

		// A step is published by the control plane itself.
		there = load()
		next, publication, err = there.Advance(d.now.Add(time.Hour), nil)
		require.NoError(d, err)
		require.NoError(d, keeper.Save(d.Context(), next, publication))
		stepped := d.kept()
		e := stepped.entries[len(stepped.entries)-1]
		require.Len(d, stepped.entries, len(after.entries)+1)
		require.Equal(d, access.System(rollout.Actor).Audit(), e.Actor)
		require.Equal(d, []any{"rollout.advance", "roll-out rollout-2", uint64(2), uint64(3)}, []any{e.Action, e.Target, e.RevisionBefore, e.RevisionAfter})
		require.Contains(d, e.Reason, "step 2 of 3: 50 % of tenants")
		message := stepped.outbox[len(stepped.outbox)-1]
		require.Equal(d, []any{store.PolicyMessage, uint64(3)}, []any{message.Kind, message.Revision})
		snapshot, err := tiers.Load([]byte(stepped.newest[2]), 3)
		require.NoError(d, err)
		stage, _ := snapshot.Stage()
		require.Equal(d, 50, stage.Percent)

		// So is a halt, which publishes nothing.
		d.now = d.now.Add(time.Hour)
		next, publication, err = load().Advance(d.now.Add(10*time.Minute), &rollout.Shares{Users: 0.5})
		require.NoError(d, err)
		require.NoError(d, keeper.Save(d.Context(), next, publication))
		halted := d.kept()
		e = halted.entries[len(halted.entries)-1]
		require.Equal(d, []any{"rollout.halt", uint64(3), uint64(3)}, []any{e.Action, e.RevisionBefore, e.RevisionAfter})
		require.Contains(d, e.Reason, "50.0 % of users are newly refused")
		require.Equal(d, stepped.head, halted.head)

		// Somebody publishes between the look and what comes of it: nothing of that is there.
		next, publication, err = load().Abort("too late")
		require.NoError(d, err)
		_, err = d.controls[0].Publish(d.Context(), by(publisher), control.PublishInput{Document: []byte(document), Expected: 3})
		require.NoError(d, err)
		before := d.kept()
		require.ErrorIs(d, keeper.Save(d.Context(), next, publication), rollout.ErrConflict)
		require.Equal(d, before, d.kept())
	})
}

// TestOfManyDaemonsThatLookAtOnceOneTakesAStep has each of several daemons look all the time, as if none knew of the others.
func TestOfManyDaemonsThatLookAtOnceOneTakesAStep(t *testing.T) {
	t.Parallel()
	inBoth(t, 4, func(d *daemons) {
		var drivers []*rollout.Driver
		for _, c := range d.controls {
			driver, err := rollout.New(rollout.Config{
				Store: c.RolloutStore(), Now: func() time.Time { return d.now },
				Digests: func(context.Context) ([]digest.Digest, error) {
					seen := digest.Digest{Candidate: "rollout-2"}
					seen.Groups.Tenants.Seen.Add(digest.HashTenant(nil, "acme"))
					return []digest.Digest{seen}, nil
				},
			})
			require.NoError(d, err)
			drivers = append(drivers, driver)
		}
		for _, after := range []time.Duration{2 * time.Minute, time.Hour, 2 * time.Minute, time.Hour, time.Hour} {
			d.now = d.now.Add(after)
			var looks sync.WaitGroup
			for range 4 {
				for _, driver := range drivers {
					looks.Go(func() { require.NoError(d, driver.Look(d.Context())) })
				}
			}
			looks.Wait()
		}
		k := d.kept()
		require.Equal(d, uint64(4), k.head.Policy, "the policy, a candidate, half, all")
		require.Equal(d, more, k.newest[2])
		var actions []string
		for _, e := range k.entries {
			actions = append(actions, e.Action)
		}
		require.Equal(d, []string{"policy.publish", "rollout.start", "rollout.advance", "rollout.advance"}, actions)
	})
}
