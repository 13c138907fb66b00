package store_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
)

// change makes a change that has to succeed.
func change(t testing.TB, db *store.DB, f func(tx *store.Tx)) {
	t.Helper()
	require.NoError(t, db.Change(t.Context(), func(tx *store.Tx) error {
		f(tx)
		return nil
	}))
}

// read returns what is read in a view of its own.
func read[T any](t testing.TB, db *store.DB, f func(v *store.View) (T, error)) (found T) {
	t.Helper()
	require.NoError(t, db.Read(t.Context(), func(v *store.View) (err error) {
		found, err = f(v)
		return err
	}))
	return found
}

// clock is a clock that stands still.
type clock struct{ now time.Time }

func newClock() *clock { return &clock{time.Date(2026, 11, 22, 3, 0, 0, 123456000, time.UTC)} }

func (c *clock) Now() time.Time { return c.now }

// scene is a test with an empty database.
type scene struct {
	*testing.T
	db    *store.DB
	clock *clock
}

// both runs a test on an empty database of each kind.
func both(t *testing.T, test func(s scene)) {
	t.Helper()
	for kind, empty := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			c := newClock()
			test(scene{t, open(t, store.Config{URL: empty(t), Now: c.Now}), c})
		})
	}
}

// revision returns a revision whose document says its number.
func revision(number uint64) *policy.Revision {
	document := fmt.Appendf(nil, "version: 1\r\ndefault: free\ntiers: {free: {maxCost: %d}} # \x00 exact\n", number)
	return &policy.Revision{
		Number: number, Document: document, Hash: policy.HashOf(document), Author: "ada", Reason: "öffnen",
		Published: time.Date(2026, 11, 22, 3, 0, 0, 123e6, time.UTC), Signature: []byte{0, 1, 255},
	}
}

func requireConflict(t testing.TB, err error, current uint64, by string) {
	t.Helper()
	require.ErrorIs(t, err, store.ErrConflict)
	var conflict *store.ConflictError
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, current, conflict.Current)
	require.Equal(t, by, conflict.By)
	require.Equal(t, current == 0, conflict.At.IsZero())
	require.Contains(t, err.Error(), "nothing was changed")
}

func TestARevisionIsKeptByteForByteUnderTheNextNumber(t *testing.T) {
	t.Parallel()
	both(t, func(s scene) {
		t, db := s.T, s.db
		require.Nil(t, read(t, db, func(v *store.View) (*policy.Revision, error) { return v.Revision(1) }))
		change(t, db, func(tx *store.Tx) {
			requireConflict(t, tx.Publish(revision(2), 1), 0, "")
			require.NoError(t, tx.Publish(revision(1), 0))
			require.Equal(t, uint64(1), tx.Head().Policy)
			requireConflict(t, tx.Publish(revision(1), 0), 1, "ada")
			require.NoError(t, tx.Publish(revision(2), 1))
			forged := revision(3)
			forged.Hash = policy.HashOf(nil)
			require.ErrorContains(t, tx.Publish(forged, 2), "was cut or changed")
		})
		require.Equal(t, revision(1), read(t, db, func(v *store.View) (*policy.Revision, error) { return v.Revision(1) }))
		list := read(t, db, func(v *store.View) ([]policy.Revision, error) { return v.Revisions(0, 10) })
		require.Len(t, list, 2)
		newest := revision(2)
		newest.Document = nil
		require.Equal(t, *newest, list[0])
		require.Equal(t, list[1:], read(t, db, func(v *store.View) ([]policy.Revision, error) { return v.Revisions(2, 10) }))
		require.Equal(t, list[:1], read(t, db, func(v *store.View) ([]policy.Revision, error) { return v.Revisions(0, 1) }))
		require.Equal(t, uint64(2), read(t, db, (*store.View).Head).Policy)
	})
}

func TestOfAChangeThatFailsNothingIsThere(t *testing.T) {
	t.Parallel()
	both(t, func(s scene) {
		t, db := s.T, s.db
		refused := errors.New("refused")
		require.Equal(t, refused, db.Change(t.Context(), func(tx *store.Tx) error {
			require.NoError(t, tx.Publish(revision(1), 0))
			require.NoError(t, tx.PutTenant(&store.Tenant{Name: "acme", Record: []byte("{}")}, 0))
			require.NoError(t, tx.Enqueue("policy", "", 1))
			return refused
		}))
		require.Equal(t, store.Head{}, read(t, db, (*store.View).Head))
		require.Nil(t, read(t, db, func(v *store.View) (*policy.Revision, error) { return v.Revision(1) }))
		require.Empty(t, read(t, db, func(v *store.View) ([]store.Message, error) { return v.Outbox(0, 10) }))
	})
}

func TestTheRecordOfATenantIsWrittenByWhoKnowsTheOneThatIsThere(t *testing.T) {
	t.Parallel()
	both(t, func(s scene) {
		t, db, c := s.T, s.db, s.clock
		names := []string{"acme", "\x00\xff any bytes", "überall"}
		change(t, db, func(tx *store.Tx) {
			for i, name := range names {
				tenant := &store.Tenant{
					Name: name, Document: []byte(`{"tier":"pro"}`), Record: []byte(`{"tier":"pro","x":1}`), Allocations: []byte(`{}`), Oversubscribe: true,
					Written: store.Written{By: "ada", Reason: "why"},
				}
				requireConflict(t, tx.PutTenant(tenant, 5), 0, "")
				require.NoError(t, tx.PutTenant(tenant, 0))
				require.Equal(t, uint64(i+1), tenant.Revision)
				require.Equal(t, c.now, tenant.At)
				requireConflict(t, tx.PutTenant(tenant, 0), uint64(i+1), "ada")
				there, err := tx.Tenant(name)
				require.NoError(t, err)
				require.Equal(t, tenant, there)
			}
			// A record that is removed leaves a change behind, and nothing else.
			require.NoError(t, tx.PutTenant(&store.Tenant{Name: "acme", Written: store.Written{By: "bob"}}, 1))
			there, err := tx.Tenant("acme")
			require.NoError(t, err)
			require.Nil(t, there)
		})
		list := func(after string, n int) []store.Tenant {
			return read(t, db, func(v *store.View) ([]store.Tenant, error) { return v.Tenants(after, n) })
		}
		require.Len(t, list("", 10), 2)
		require.Equal(t, names[1], list("", 1)[0].Name)
		require.Equal(t, names[2], list(names[1], 1)[0].Name)
		changes := read(t, db, func(v *store.View) ([]store.Tenant, error) { return v.TenantChanges(2, 10) })
		require.Len(t, changes, 2)
		require.Equal(t, []any{uint64(3), names[2], uint64(4), "acme"}, []any{changes[0].Revision, changes[0].Name, changes[1].Revision, changes[1].Name})
		require.Nil(t, changes[1].Record)
		change(t, db, func(tx *store.Tx) {
			require.NoError(t, tx.PutTenant(&store.Tenant{Name: "acme", Record: []byte("{}")}, 0), "what was removed is nothing")
		})
	})
}

func TestAnOverrideThatHasEndedIsNothing(t *testing.T) {
	t.Parallel()
	both(t, func(s scene) {
		t, db, c := s.T, s.db, s.clock
		owner := bucket.Owner{Level: bucket.Operation, Name: "Mutation.*", Part: "\x00\xff"}
		shadow := bucket.Shadow
		put := func(change bucket.Override, expected uint64) error {
			return db.Change(t.Context(), func(tx *store.Tx) error {
				change.Owner, change.Limit, change.Actor, change.Reason = owner, "minute", "ada", "why"
				return tx.PutOverride(&store.Override{Tenant: "acme", Override: change, Removed: change.Capacity == 0}, expected)
			})
		}
		there := func() *store.Override {
			return read(t, db, func(v *store.View) (*store.Override, error) {
				return v.Override(store.OverrideKey{Tenant: "acme", Owner: owner, Limit: "minute"})
			})
		}
		hour := c.now.Add(time.Hour)
		require.Nil(t, there())
		requireConflict(t, put(bucket.Override{Capacity: 1, Expires: hour}, 1), 0, "")
		require.NoError(t, put(bucket.Override{Capacity: 1, Expires: hour}, 0))
		requireConflict(t, put(bucket.Override{Capacity: 2, Expires: hour}, 0), 1, "ada")
		c.now = hour
		require.False(t, there().Holds(c.now))
		require.NoError(t, put(bucket.Override{Capacity: 2}, 0), "the first has expired")
		require.NoError(t, put(bucket.Override{}, 2))
		require.Equal(t, uint64(3), there().Revision)
		require.False(t, there().Holds(c.now))
		all := bucket.Override{Capacity: 3, Refill: 2, Period: 90 * time.Second, Mode: &shadow, Unlimited: true, Blocked: true, Expires: hour.Add(time.Hour)}
		require.NoError(t, put(all, 0))
		all.Owner, all.Limit, all.Actor, all.Reason, all.SetAt = owner, "minute", "ada", "why", hour
		require.Equal(t, &store.Override{Tenant: "acme", Override: all, Revision: 4}, there())
		require.True(t, there().Holds(c.now))
		intents := func(tenant string) []store.Intent {
			return read(t, db, func(v *store.View) ([]store.Intent, error) { return v.OpenIntents(tenant, c.now) })
		}
		require.Equal(t, []store.Intent{{Override: *there()}}, intents("acme"))
		require.Empty(t, intents("acm"))
	})
}

func TestATokenIsKeptAsItIsAndRevokedOnce(t *testing.T) {
	t.Parallel()
	both(t, func(s scene) {
		t, db, c := s.T, s.db, s.clock
		require.False(t, read(t, db, (*store.View).HasTokens))
		a := &access.Token{
			ID: "a", Hash: [32]byte{0, 1}, Subject: "ci", Owner: "ada", Roles: []access.Role{access.Viewer, access.Operator}, Tenants: []string{"a\"b"},
			Bootstrap: true, Issued: c.now, Expires: c.now.Add(time.Hour),
		}
		b := &access.Token{ID: "b", Hash: [32]byte{2}, Subject: "page"}
		change(t, db, func(tx *store.Tx) {
			require.NoError(t, tx.AddToken(a))
			there, err := tx.HasTokens()
			require.NoError(t, err)
			require.False(t, there, "but for bootstrap tokens")
			require.NoError(t, tx.AddToken(b))
		})
		token := func(id string) *access.Token {
			return read(t, db, func(v *store.View) (*access.Token, error) { return v.Token(id) })
		}
		require.Equal(t, a, token("a"))
		require.Equal(t, b, token("b"))
		require.Nil(t, token("c"))
		require.True(t, read(t, db, (*store.View).HasTokens))
		first := c.now
		revoke := func(tx *store.Tx, ended int64) {
			n, err := tx.RevokeToken("b")
			require.NoError(t, err)
			require.Equal(t, ended, n)
		}
		change(t, db, func(tx *store.Tx) { revoke(tx, 1) })
		c.now = c.now.Add(time.Minute)
		change(t, db, func(tx *store.Tx) {
			revoke(tx, 0)
			require.NoError(t, tx.UseToken("b", c.now))
			require.NoError(t, tx.UseToken("b", first))
			require.NoError(t, tx.RevokeBootstrap())
		})
		require.Equal(t, c.now, token("a").Revoked)
		require.Equal(t, first, token("b").Revoked)
		require.Equal(t, c.now, token("b").Used)
		require.Error(t, db.Change(t.Context(), func(tx *store.Tx) error { return tx.AddToken(&access.Token{ID: "a", Hash: [32]byte{3}}) }))
		require.Equal(t, []access.Token{*token("b")}, read(t, db, func(v *store.View) ([]access.Token, error) { return v.Tokens("a", 10) }))
	})
}

func TestATokenEndsWithTheOneThatItWasIssuedWith(t *testing.T) {
	t.Parallel()
	both(t, func(s scene) {
		t, db, c := s.T, s.db, s.clock
		change(t, db, func(tx *store.Tx) {
			for i, link := range [][2]string{{"a", ""}, {"b", "a"}, {"c", "b"}, {"d", "c"}, {"e", "c"}, {"f", "a"}, {"g", ""}} {
				token := &access.Token{ID: link[0], Hash: [32]byte{byte(i)}, Subject: "ci", Owner: "ada", Parent: link[1], Apart: i == 1, Expires: c.now.Add(time.Hour)}
				require.NoError(t, tx.AddToken(token))
			}
		})
		ids := func(tokens []access.Token, which func(*access.Token) bool) (found string) {
			for i := range tokens {
				if which(&tokens[i]) {
					found += tokens[i].ID
				}
			}
			return found
		}
		all := func(*access.Token) bool { return true }
		children := func(of, after string, n int) string {
			return ids(read(t, db, func(v *store.View) ([]access.Token, error) { return v.Children(of, after, n) }), all)
		}
		require.Equal(t, []string{"bf", "f", "b", "de", ""}, []string{children("a", "", 10), children("a", "b", 10), children("a", "", 1), children("c", "", 10), children("g", "", 10)})
		live := func() (n int64) {
			change(t, db, func(tx *store.Tx) {
				var err error
				n, err = tx.LiveTokens("ada", "")
				require.NoError(t, err)
				none, err := tx.LiveTokens("bob", "")
				require.NoError(t, err)
				require.Zero(t, none)
			})
			return n
		}
		require.EqualValues(t, 7, live())
		revoke := func(id string) (ended int64) {
			change(t, db, func(tx *store.Tx) {
				var err error
				ended, err = tx.RevokeToken(id)
				require.NoError(t, err)
			})
			return ended
		}
		require.EqualValues(t, 1, revoke("d"))
		require.EqualValues(t, 3, revoke("b"), "with c and e: d had ended")
		page := read(t, db, func(v *store.View) ([]access.Token, error) { return v.Tokens("", 10) })
		require.Equal(t, "bcde", ids(page, func(token *access.Token) bool { return !token.Revoked.IsZero() }))
		require.Equal(t, "b", ids(page, func(token *access.Token) bool { return token.Apart }))
		require.EqualValues(t, 3, live())
		c.now = c.now.Add(time.Hour)
		require.Zero(t, live())
	})
}

func TestTokensThatHaveEndedAreKeptForATime(t *testing.T) {
	t.Parallel()
	both(t, func(s scene) {
		t, db, c := s.T, s.db, s.clock
		add := func(id byte, life time.Duration) {
			change(t, db, func(tx *store.Tx) {
				token := &access.Token{ID: string(id), Hash: [32]byte{id}, Root: string(id), Issued: c.now, Expires: c.now.Add(life)}
				require.NoError(t, tx.AddToken(token))
			})
		}
		kept := func() (found string) {
			for _, token := range read(t, db, func(v *store.View) ([]access.Token, error) { return v.Tokens("", 30) }) {
				require.Equal(t, token.ID, token.Root)
				found += token.ID
			}
			return found
		}
		add('a', time.Hour)
		add('b', 2*time.Hour)
		add('c', access.MaxTokenLife)
		add('d', access.MaxTokenLife)
		change(t, db, func(tx *store.Tx) {
			_, err := tx.RevokeToken("c")
			require.NoError(t, err)
		})
		c.now = c.now.Add(access.EndedTokenLife)
		add('e', time.Hour)
		require.Equal(t, "abde", kept())
		c.now = c.now.Add(time.Hour)
		for i := range byte(15) {
			add('f'+i, time.Minute)
		}
		require.Equal(t, "bdefghijklmnopqrst", kept())
		c.now = c.now.Add(access.EndedTokenLife + time.Hour)
		add('u', time.Hour)
		add('v', time.Hour)
		require.Equal(t, "duv", kept())
	})
}

func TestAnswersAreKeptUntilTheyExpire(t *testing.T) {
	t.Parallel()
	both(t, func(s scene) {
		t, db, c := s.T, s.db, s.clock
		for i := range 30 {
			change(t, db, func(tx *store.Tx) {
				require.NoError(t, tx.KeepAnswer(&store.Answer{ID: []byte{0, byte(i)}, Request: []byte{byte(i)}, Body: []byte{0}, Expires: c.now.Add(time.Hour)}))
			})
		}
		answer := func(i byte) (found *store.Answer) {
			change(t, db, func(tx *store.Tx) {
				var err error
				found, err = tx.Answer([]byte{0, i}, c.now)
				require.NoError(t, err)
			})
			return found
		}
		require.Equal(t, &store.Answer{ID: []byte{0, 29}, Request: []byte{29}, Body: []byte{0}, Expires: c.now.Add(time.Hour)}, answer(29))
		require.Nil(t, answer(30))
		c.now = c.now.Add(time.Hour)
		require.Nil(t, answer(29))
		for i := range 3 {
			change(t, db, func(tx *store.Tx) {
				require.NoError(t, tx.KeepAnswer(&store.Answer{ID: []byte{0, byte(i)}, Request: []byte{}, Body: []byte("b"), Expires: c.now.Add(time.Hour)}))
			})
		}
		c.now = c.now.Add(-time.Hour)
		require.Nil(t, answer(29), "three calls have removed all thirty")
		require.Equal(t, []byte("b"), answer(0).Body)
	})
}

func TestTheOutboxHasOneMessageForEachThing(t *testing.T) {
	t.Parallel()
	both(t, func(s scene) {
		t, db, c := s.T, s.db, s.clock
		change(t, db, func(tx *store.Tx) {
			require.NoError(t, tx.Enqueue("tenant", "a", 1))
			require.NoError(t, tx.Enqueue("tenant", "b\x00", 2))
			require.NoError(t, tx.Enqueue("override", "a", 3))
			require.NoError(t, tx.Enqueue("tenant", "a", 4))
		})
		outbox := func(after uint64, n int) []store.Message {
			return read(t, db, func(v *store.View) ([]store.Message, error) { return v.Outbox(after, n) })
		}
		all := outbox(0, 10)
		require.Equal(t, []store.Message{
			{Sequence: 2, Kind: "tenant", Name: "b\x00", Revision: 2, At: c.now},
			{Sequence: 3, Kind: "override", Name: "a", Revision: 3, At: c.now},
			{Sequence: 4, Kind: "tenant", Name: "a", Revision: 4, At: c.now},
		}, all)
		require.Equal(t, all[1:2], outbox(2, 1))
		// It changes again while the message is on its way.
		change(t, db, func(tx *store.Tx) { require.NoError(t, tx.Enqueue("tenant", "a", 5)) })
		change(t, db, func(tx *store.Tx) {
			for _, m := range all {
				require.NoError(t, tx.Dequeue(m.Sequence))
			}
		})
		require.Equal(t, []store.Message{{Sequence: 5, Kind: "tenant", Name: "a", Revision: 5, At: c.now}}, outbox(0, 10))
	})
}
