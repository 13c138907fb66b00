package audit_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
)

// whole is an entry with every field.
func whole() audit.Entry {
	return audit.Entry{
		Sequence: 7, Time: time.Date(2026, 11, 22, 20, 41, 5, 120_000_000, time.UTC),
		Actor: audit.Actor{
			Subject: "ada", Issuer: "https://login.example.org", Method: "token", Owner: "https://login.example.org ada",
			Address: "2001:db8::1", Agent: "gqlratelimit/1",
		},
		Action: "override.set", Target: "acme second", Tenant: "acme", RevisionBefore: 3, RevisionAfter: 4,
		Before: json.RawMessage(`null`), After: json.RawMessage(`{"factor": 2, "text": "<a>"}`),
		Reason: "an \"import\"\nof two lines", Ticket: "T-1", Request: "r-1",
	}
}

func TestARecordHasTheseBytes(t *testing.T) {
	t.Parallel()
	e := whole()
	record, err := e.Record()
	require.NoError(t, err)
	requireText(t, `{"sequence":7,"time":"2026-11-22T20:41:05.12Z","actor":{"subject":"ada","issuer":"https://login.example.org",`+
		`"method":"token","owner":"https://login.example.org ada","address":"2001:db8::1","agent":"gqlratelimit/1"},"action":"override.set",`+
		`"target":"acme second","tenant":"acme","revisionBefore":3,"revisionAfter":4,"before":null,"after":{"factor":2,"text":"<a>"},`+
		`"reason":"an \"import\"\nof two lines","ticket":"T-1","request":"r-1"}`, record)
	read, err := audit.ParseRecord(record)
	require.NoError(t, err)
	e.After = json.RawMessage(`{"factor":2,"text":"<a>"}`)
	require.Equal(t, &e, read)

	least := audit.Entry{Actor: audit.Actor{Subject: "a"}, Action: "b", Target: "c", Time: time.Unix(0, 0)}
	record, err = least.Record()
	require.NoError(t, err)
	requireText(t, `{"sequence":0,"time":"1970-01-01T00:00:00Z","actor":{"subject":"a"},"action":"b","target":"c"}`, record)
}

func TestWhatIsNoRecordIsRefused(t *testing.T) {
	t.Parallel()
	e := whole()
	record, err := e.Record()
	require.NoError(t, err)
	text := string(record)
	for name, other := range map[string]string{
		"two":                  text + text,
		"an unknown field":     strings.Replace(text, `"tenant"`, `"x":1,"tenant"`, 1),
		"a number as text":     strings.Replace(text, `:7`, `:"7"`, 1),
		"a negative sequence":  strings.Replace(text, `:7`, `:-7`, 1),
		"a revision too large": strings.Replace(text, `"revisionAfter":4`, `"revisionAfter":9007199254740992`, 1),
		"no subject":           strings.Replace(text, `"subject":"ada",`, ``, 1),
		"nothing":              "",
		"another thing":        "[]",
		"too large":            strings.Repeat(" ", audit.MaxRecord+1),
	} {
		require.NotEqual(t, text, other, name)
		_, err := audit.ParseRecord([]byte(other))
		require.Error(t, err, name)
		require.NotContains(t, err.Error(), "T-1", name)
	}
}

func TestAnEntryIsBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat(`"`, audit.MaxName)
	largest := audit.Entry{
		Sequence: 1<<63 - 1, Time: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC),
		Actor:  audit.Actor{Subject: long, Issuer: long, Method: long, Owner: long + long, Address: long, Agent: long},
		Action: long, Target: long, Tenant: long, RevisionBefore: audit.MaxRevision, RevisionAfter: audit.MaxRevision,
		Before: json.RawMessage(`"` + strings.Repeat("x", audit.MaxValue-2) + `"`), After: json.RawMessage(`"` + strings.Repeat("x", audit.MaxValue-2) + `"`),
		Reason: strings.Repeat("\n", audit.MaxReason), Ticket: long, Request: long,
	}
	record, err := largest.Record()
	require.NoError(t, err)
	require.LessOrEqual(t, len(record), audit.MaxRecord)
	_, err = audit.ParseRecord(record)
	require.NoError(t, err)
	for field, spoil := range map[string]func(*audit.Entry){
		"time":          func(e *audit.Entry) { e.Time = time.Time{} },
		"actor.subject": func(e *audit.Entry) { e.Actor.Subject = "" },
		"actor.agent":   func(e *audit.Entry) { e.Actor.Agent += "x" },
		"action":        func(e *audit.Entry) { e.Action = "" },
		"target":        func(e *audit.Entry) { e.Target = "\xff" },
		"tenant":        func(e *audit.Entry) { e.Tenant = "a\nb" },
		"ticket":        func(e *audit.Entry) { e.Ticket = "a\u202eb" },
		"request":       func(e *audit.Entry) { e.Request = "\x1b[2J" },
		"reason":        func(e *audit.Entry) { e.Reason += "x" },
		"revision":      func(e *audit.Entry) { e.RevisionAfter++ },
		"before":        func(e *audit.Entry) { e.Before = append(e.Before, ' ') },
		"after":         func(e *audit.Entry) { e.After = json.RawMessage(`{"a":}`) },
	} {
		e := largest
		spoil(&e)
		var wrong *audit.EntryError
		require.ErrorAs(t, e.Check(), &wrong, field)
		require.Equal(t, field, wrong.Field)
		_, err := e.Record()
		require.ErrorAs(t, err, &wrong, field)
	}
}

func TestWhatLooksLikeASecretIsNoEntry(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{
		"use grl_abcdefghijklm_abcdefghijklmnopqrstuvwxyz234567abcdefghijklmnopqrst1234567",
		"PRIVATE+KEY+log+1f2e+AAAA", "-----BEGIN EC PRIVATE KEY-----", "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZGEifQ.",
		"postgres://admin:hunter2@db.example.org/limits",
	} {
		e := whole()
		e.Reason = "see " + secret
		var wrong *audit.EntryError
		require.ErrorAs(t, e.Check(), &wrong, secret)
		require.Equal(t, "audit: reason looks like a secret", wrong.Error())
		e = whole()
		e.After, _ = json.Marshal(map[string]string{"note": secret})
		require.EqualError(t, e.Check(), "audit: after looks like a secret", secret)
	}
	e := whole()
	e.Reason = "grl_ is the prefix; https://example.org:443/a@b is a page, and T-1:2@3 a line"
	require.NoError(t, e.Check())
}

// requireText compares bytes as they are: another text of the same JSON is another leaf.
func requireText(t *testing.T, want string, got []byte) {
	t.Helper()
	require.Equal(t, want, string(got))
}
