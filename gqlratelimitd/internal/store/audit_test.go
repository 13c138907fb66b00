package store_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

var (
	_ audit.Reader  = store.AuditReader{}
	_ audit.Storage = store.AuditLog{}
)

func entry(subject, action, target, tenant string) audit.Entry {
	return audit.Entry{Time: newClock().now, Actor: audit.Actor{Subject: subject}, Action: action, Target: target, Tenant: tenant}
}

// requireLog holds that the rows of a log are numbered without a gap, and that each follows from the one before. It returns the entries.
func requireLog(t testing.TB, db *store.DB) (entries []audit.Entry) {
	t.Helper()
	ctx := t.Context()
	require.NoError(t, db.Read(ctx, func(v *store.View) error {
		log := v.Audit()
		report, err := audit.VerifyLog(ctx, log, nil)
		require.NoError(t, err)
		size, err := log.Size(ctx)
		require.NoError(t, err)
		require.Equal(t, size, report.Rows)
		for int64(len(entries)) < size {
			rows, err := log.Rows(ctx, int64(len(entries)), 100)
			require.NoError(t, err)
			require.NotEmpty(t, rows)
			for _, row := range rows {
				e, err := audit.ParseRecord(row.Record)
				require.NoError(t, err)
				entries = append(entries, *e)
			}
		}
		return nil
	}))
	return entries
}

func TestTheAuditLogKeepsRowsAndFindsThem(t *testing.T) {
	t.Parallel()
	both(t, func(s scene) {
		t, db := s.T, s.db
		ctx := t.Context()
		require.Empty(t, requireLog(t, db))
		for i := range 9 {
			change(t, db, func(tx *store.Tx) {
				_, err := audit.Append(ctx, tx.Audit(), entry("ada", "policy.publish", "policy", ""))
				require.NoError(t, err)
				if i == 3 {
					// Two in one change.
					_, err := audit.Append(ctx, tx.Audit(), entry("bob", "override.set", "user b of acme", "acme"))
					require.NoError(t, err)
				}
				require.ErrorContains(t, tx.Audit().Append(ctx, 100, audit.Row{Record: []byte("{}")}), "row 100 of an audit log of")
			})
		}
		require.Len(t, requireLog(t, db), 10)
		require.NoError(t, db.Read(ctx, func(v *store.View) error {
			log := v.Audit()
			for _, f := range []store.AuditFilter{
				{Subject: "bob"}, {Action: "override.set"}, {Target: "user b of acme"}, {Tenant: "acme"}, {Subject: "bob", Tenant: "acme"},
			} {
				found, err := log.Find(f, 10, 10)
				require.NoError(t, err)
				require.Len(t, found, 1)
				e, err := audit.ParseRecord(found[0])
				require.NoError(t, err)
				require.Equal(t, int64(4), e.Sequence)
			}
			found, err := log.Find(store.AuditFilter{Subject: "ada"}, 9, 2)
			require.NoError(t, err)
			require.Len(t, found, 2)
			var first audit.Entry
			require.NoError(t, json.Unmarshal(found[0], &first))
			require.Equal(t, int64(8), first.Sequence, "the newest below comes first")
			return nil
		}))
	})
}

func TestWhatWasWrittenOnceStaysAlsoForWhoOwnsTheTables(t *testing.T) {
	t.Parallel()
	statements := map[string]string{}
	for _, table := range []string{"policy_revision", "audit_entry"} {
		statements["DELETE FROM "+table] = table + " is append-only"
	}
	statements["UPDATE policy_revision SET reason = 'x'"] = "policy_revision is append-only"
	statements["UPDATE audit_entry SET record = record"] = "audit_entry is append-only"
	statements["UPDATE audit_entry SET hash = hash"] = "audit_entry is append-only"
	for kind, empty := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			ctx, url := t.Context(), empty(t)
			db := open(t, store.Config{URL: url})
			change(t, db, func(tx *store.Tx) {
				require.NoError(t, tx.Publish(revision(1), 0))
				_, err := audit.Append(ctx, tx.Audit(), entry("ada", "policy.publish", "policy", ""))
				require.NoError(t, err)
			})
			execute := func(statement string) error {
				admin, err := pgx.Connect(ctx, url)
				require.NoError(t, err)
				defer func() { _ = admin.Close(context.Background()) }()
				_, err = admin.Exec(ctx, "SET search_path = gqlratelimitd; "+statement, pgx.QueryExecModeSimpleProtocol)
				return err
			}
			if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
				admin, err := sql.Open("sqlite", path)
				require.NoError(t, err)
				defer func() { require.NoError(t, admin.Close()) }()
				execute = func(statement string) error {
					_, err := admin.ExecContext(ctx, statement)
					return err
				}
			} else {
				require.ErrorContains(t, execute("TRUNCATE audit_entry"), "audit_entry is append-only")
			}
			for statement, want := range statements {
				require.ErrorContains(t, execute(statement), want, statement)
			}
			require.Len(t, requireLog(t, db), 1)
		})
	}
}
