package store_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

// step is a step of a plan that PostgreSQL has run.
type step struct {
	Rows    float64 `json:"Actual Rows"`
	Removed float64 `json:"Rows Removed by Filter"`
	Plans   []step  `json:"Plans"`
}

// most is how many rows a step has looked at that looked at most.
func (s *step) most() float64 {
	most := s.Rows + s.Removed
	for i := range s.Plans {
		most = max(most, s.Plans[i].most())
	}
	return most
}

func TestAPageOfTenantsWithOverridesReadsNoMoreThanThePage(t *testing.T) {
	t.Parallel()
	url := database(t, server)
	db := open(t, store.Config{URL: url})
	raw, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = raw.Close(t.Context()) })
	now := time.Now()
	// Each has its tenant, and ends a second after the one before.
	_, err = raw.Exec(t.Context(), fmt.Sprintf(`INSERT INTO %[1]s.override_intent (tenant, level, name, part, limit_name, revision, document, expires, author, reason, at)
		SELECT convert_to('tenant-' || i, 'UTF8'), 'tenant', '', '', 'minute', i, '{}', %[2]d + i * 1000000, 'ann', 'why', %[2]d FROM generate_series(1, 10000::bigint) AS g(i)`,
		store.Schema, now.UnixMicro()))
	require.NoError(t, err)
	_, err = raw.Exec(t.Context(), "ANALYZE "+store.Schema+".override_intent") //nolint:misspell // a word of SQL
	require.NoError(t, err)

	var plans []struct{ Plan step }
	require.NoError(t, db.Read(t.Context(), func(v *store.View) error {
		text, err := v.Explain(store.OverrideTenantsSQL, []byte("tenant-1"), 32)
		if err == nil {
			err = json.Unmarshal(text, &plans)
		}
		return err
	}))
	require.LessOrEqual(t, plans[0].Plan.most(), 200.0, "%v", plans)
}

// TestWhatIsOpenIsFoundWithoutWhatIsOver has 10 000 overrides of a tenant that are over, and a few that are open.
func TestWhatIsOpenIsFoundWithoutWhatIsOver(t *testing.T) {
	t.Parallel()
	both(t, func(s scene) {
		t, db := s.T, s.db
		change(t, db, func(tx *store.Tx) { require.NoError(t, tx.FillOver(10_000, 10)) })
		change(t, db, func(tx *store.Tx) {
			intents, err := tx.OpenIntents("acme", time.UnixMicro(1000))
			require.NoError(t, err)
			require.Len(t, intents, 20, "ten hold, and ten were removed and wait for Redis")
			plan, err := tx.Plan(store.OpenIntentsSQL, []byte("acme"), 1000)
			require.NoError(t, err)
			require.NotRegexp(t, `SCAN override_intent($|\n)|Seq Scan|override_intent_pkey`, plan)
			require.Contains(t, plan, "override_holds")
		})
	})
}
