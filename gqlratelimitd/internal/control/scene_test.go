package control_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/storetest"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisswitch"
)

// document is a policy with limits at all levels.
const document = `version: 1
default: free
tiers:
  free:
    limits:
      minute: {capacity: 1000, per: minute}
      month: {capacity: 100000, per: month, window: calendar}
      writes: {unit: requests, capacity: 50, per: minute}
    teams: {limits: {minute: {capacity: 500, per: minute}}}
    users: {limits: {minute: {capacity: 100, per: minute}}}
    operations: {Mutation.*: {limits: {minute: {unit: requests, capacity: 10, per: minute}}}}
  pro:
    limits: {minute: {capacity: 5000, per: minute}}
  house: {unlimited: true}
`

// scene is a control plane on a file, whose clock stands still.
type scene struct {
	*testing.T
	*control.Control
	db      *store.DB
	path    string
	now     time.Time
	changed int
	// tick is called when the control plane asks what time it is. It may be nil.
	tick func()
	// switched is the revision of a mode switch.
	switched uint64
	// token is one that was issued.
	token string
	// hook is an endpoint that was registered, and hooks counts what has changed of endpoints.
	hook  *control.WebhookSecret
	hooks int
}

func newScene(t *testing.T, cfg control.Config) *scene {
	t.Helper()
	url := storetest.SQLite(t)
	s := &scene{T: t, path: strings.TrimPrefix(url, "sqlite:"), now: time.Date(2026, 11, 22, 3, 0, 0, 123456000, time.UTC)}
	clock := func() time.Time { return s.now }
	var err error
	s.db, err = store.Open(t.Context(), store.Config{URL: url, Now: clock})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.db.Close()) })
	cfg.Store, cfg.Changed = s.db, func() { s.changed++ }
	cfg.Now = func() time.Time {
		if tick := s.tick; tick != nil {
			s.tick = nil
			tick()
		}
		return s.now
	}
	if cfg.Webhooks == nil {
		cfg.Webhooks = s.webhooks()
	}
	s.Control, err = control.New(cfg)
	require.NoError(t, err)
	return s
}

// modesOf are the mode switches of a Redis of the test's own, which has the clock of the system.
func modesOf(t *testing.T) *redisswitch.Switches {
	t.Helper()
	modes, err := redisswitch.New(redisswitch.Config{Client: redistest.Connect(t, redistest.Start(t).Addr)})
	require.NoError(t, err)
	return modes
}

// ctx is the context of the test.
func (s *scene) ctx() context.Context { return s.Context() }

func actor(subject string, roles ...access.Role) access.Actor {
	return access.Actor{Subject: subject, Issuer: "https://login.example.org", Method: access.MethodOIDC, Roles: roles}
}

var (
	administrator = actor("ada", access.Admin)
	operator      = actor("bob", access.Operator)
	viewer        = actor("eve", access.Viewer)
)

// customer is the operator of a tenant.
func customer(tenant string) access.Actor {
	a := actor("carl", access.Operator)
	a.Tenants = []string{tenant}
	return a
}

// by is a request that says why.
func by(a access.Actor) control.Request {
	return control.Request{Actor: a, Reason: "why", Ticket: "T-1", ID: "r-1"}
}

// publish publishes a policy that holds for what follows.
func (s *scene) publish(document string, expected uint64) {
	s.Helper()
	_, err := s.Publish(s.ctx(), by(administrator), control.PublishInput{Document: []byte(document), Expected: expected})
	require.NoError(s, err)
}

// dump is all that the database has, as text.
func (s *scene) dump() string {
	s.Helper()
	db, err := sql.Open("sqlite", s.path)
	require.NoError(s, err)
	defer func() { require.NoError(s, db.Close()) }()
	var text strings.Builder
	for _, table := range s.strings(db, "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name") {
		rows, err := db.QueryContext(s.ctx(), "SELECT * FROM "+table+" ORDER BY 1, 2")
		require.NoError(s, err)
		columns, err := rows.Columns()
		require.NoError(s, err)
		for rows.Next() {
			values := make([]any, len(columns))
			into := make([]any, len(columns))
			for i := range values {
				into[i] = &values[i]
			}
			require.NoError(s, rows.Scan(into...))
			fmt.Fprintf(&text, "%s %q\n", table, values)
		}
		require.NoError(s, rows.Err())
		require.NoError(s, rows.Close())
	}
	return text.String()
}

func (s *scene) strings(db *sql.DB, query string) (found []string) {
	s.Helper()
	rows, err := db.QueryContext(s.ctx(), query)
	require.NoError(s, err)
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var text string
		require.NoError(s, rows.Scan(&text))
		found = append(found, text)
	}
	require.NoError(s, rows.Err())
	return found
}

// entries are those of the audit log.
func (s *scene) entries() (entries []audit.Entry) {
	s.Helper()
	require.NoError(s, s.db.Read(s.ctx(), func(v *store.View) error {
		rows, err := v.Audit().Rows(s.ctx(), 0, store.MaxPage)
		for _, row := range rows {
			e, err := audit.ParseRecord(row.Record)
			require.NoError(s, err)
			entries = append(entries, *e)
		}
		return err
	}))
	return entries
}

// outbox is what somebody has to hear of.
func (s *scene) outbox() (messages []store.Message) {
	s.Helper()
	require.NoError(s, s.db.Read(s.ctx(), func(v *store.View) (err error) {
		messages, err = v.Outbox(0, store.MaxPage)
		return err
	}))
	return messages
}

func requireInvalid(t testing.TB, err error, field, problem string) {
	t.Helper()
	require.ErrorIs(t, err, control.ErrInvalid)
	var wrong *control.InvalidError
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, field, wrong.Field, err)
	require.Contains(t, err.Error(), problem)
}
