package control_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/storetest"
)

// records writes records of tenants as an earlier policy has let them pass.
func (s *scene) records(records map[string]string) {
	s.Helper()
	require.NoError(s, s.db.Change(s.ctx(), func(tx *store.Tx) error {
		for name, record := range records {
			if err := tx.PutTenant(&store.Tenant{Name: name, Record: []byte(record), Written: store.Written{By: "ada", Reason: "why"}}, 0); err != nil {
				return err
			}
		}
		return nil
	}))
}

func TestTenantsWhoseRecordsDoNotFitAreListedAPageAtATime(t *testing.T) {
	t.Parallel()
	s := newScene(t, control.Config{})
	s.records(map[string]string{"a": `{"tier":"gone"}`, "b": `{"tier":"pro"}`, "c": `{"tier":"gone"}`, "d": "what", "e": `{"tier":"free"}`})
	_, err := s.Misfitting(s.ctx(), viewer, "", 10)
	require.ErrorIs(t, err, control.ErrNotFound)
	s.publish(document, 0)
	page := func(after string, n int) *control.MisfitPage {
		t.Helper()
		p, err := s.Misfitting(s.ctx(), viewer, after, n)
		require.NoError(t, err)
		return p
	}
	first := page("", 2)
	require.Equal(t, []any{uint64(1), 3, "c", "a", "c"}, []any{first.Policy, first.Total, first.Next, first.Tenants[0].Tenant, first.Tenants[1].Tenant})
	require.Contains(t, first.Tenants[0].Problem, "gone")
	last := page(first.Next, 2)
	require.Equal(t, []any{"", 1, "d"}, []any{last.Next, len(last.Tenants), last.Tenants[0].Tenant})

	// What changes is seen within ten seconds, and another policy at once.
	s.records(map[string]string{"f": `{"tier":"gone"}`})
	require.Equal(t, 3, page("", 10).Total)
	s.now = s.now.Add(10 * time.Second)
	require.Equal(t, 4, page("", 10).Total)
	s.publish(document+"  gone: {unlimited: true}\n", 1)
	require.Equal(t, 1, page("", 10).Total)
	for _, n := range []int{0, -1, 1001} {
		_, err = s.Misfitting(s.ctx(), viewer, "", n)
		requireInvalid(t, err, "first", "")
	}
	_, err = s.Misfitting(s.ctx(), customer("acme"), "", 10)
	require.ErrorIs(t, err, access.ErrDenied)
}

func BenchmarkMisfitsAmong100000Tenants(b *testing.B) {
	db, err := store.Open(b.Context(), store.Config{URL: storetest.SQLite(b)})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, db.Close()) })
	now := time.Now()
	c, err := control.New(control.Config{Store: db, Now: func() time.Time { return now }})
	require.NoError(b, err)
	_, err = c.Publish(b.Context(), by(administrator), control.PublishInput{Document: []byte(document)})
	require.NoError(b, err)
	put := func(tx *store.Tx, name, record string) error {
		return tx.PutTenant(&store.Tenant{Name: name, Record: []byte(record)}, 0)
	}
	require.NoError(b, db.Change(b.Context(), func(tx *store.Tx) error {
		for i := range 100_000 {
			record := `{"tier":"pro"}`
			if i%10 == 0 {
				record = fmt.Sprintf(`{"limits":{"minute":{"capacity":%d,"per":"minute"}}}`, i+1)
			}
			if i%1000 == 1 {
				record = `{"tier":"gone"}`
			}
			if err := put(tx, fmt.Sprint(i), record); err != nil {
				return err
			}
		}
		return nil
	}))
	b.Run("looked at", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			require.NoError(b, db.Change(b.Context(), func(tx *store.Tx) error { return put(tx, fmt.Sprint("extra", now.UnixNano()), `{"tier":"pro"}`) }))
			now = now.Add(time.Minute)
			page, err := c.Misfitting(b.Context(), viewer, "", 100)
			require.NoError(b, err)
			require.Equal(b, 100, page.Total)
		}
	})
	b.Run("known", func(b *testing.B) {
		for b.Loop() {
			_, err := c.Misfitting(b.Context(), viewer, "", 100)
			require.NoError(b, err)
		}
	})
}
