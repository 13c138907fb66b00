package session

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Record is an override record as the command writes and reads it.
type Record struct {
	Tenant    string       `json:"tenant"`
	Team      string       `json:"team,omitempty"`
	User      string       `json:"user,omitempty"`
	Operation string       `json:"operation,omitempty"`
	Part      string       `json:"part,omitempty"`
	Limit     string       `json:"limit,omitempty"`
	Capacity  int64        `json:"capacity,omitempty"`
	Refill    int64        `json:"refill,omitempty"`
	Period    tiers.Period `json:"per,omitzero"`
	Mode      string       `json:"mode,omitempty"`
	Unlimited bool         `json:"unlimited,omitempty"`
	Blocked   bool         `json:"blocked,omitempty"`
	Expires   time.Time    `json:"expires,omitzero"`
	Reason    string       `json:"reason"`
	Actor     string       `json:"actor"`
	// SetAt is what the store says; it is not read.
	SetAt time.Time `json:"setAt,omitzero"`
}

// NewRecord returns a record of a store.
func NewRecord(tenant string, o *bucket.Override) Record {
	scope := ScopeOf(tenant, o.Owner)
	r := Record{
		Tenant: tenant, Team: scope.Team, User: scope.User, Operation: scope.Operation, Part: scope.Part, Limit: o.Limit,
		Capacity: o.Capacity, Refill: o.Refill, Period: tiers.Period(o.Period), Unlimited: o.Unlimited, Blocked: o.Blocked,
		Expires: o.Expires, Reason: o.Reason, Actor: o.Actor, SetAt: o.SetAt,
	}
	if o.Mode != nil {
		r.Mode = o.Mode.String()
	}
	return r
}

// Override returns the record for a store. Whom it is for, the scope says.
func (r *Record) Override(owner bucket.Owner) (bucket.Override, error) {
	o := bucket.Override{
		Owner: owner, Limit: r.Limit, Capacity: r.Capacity, Refill: r.Refill, Period: time.Duration(r.Period),
		Unlimited: r.Unlimited, Blocked: r.Blocked, Expires: r.Expires, Reason: r.Reason, Actor: r.Actor,
	}
	if r.Capacity < 0 || r.Refill < 0 || r.Period < 0 {
		return o, cli.Usagef("capacity, refill and period are not negative")
	}
	if r.Mode != "" {
		mode, err := ParseMode(r.Mode)
		if err != nil {
			return o, err
		}
		o.Mode = &mode
	}
	return o, nil
}

// ParseMode reads the word of a mode.
func ParseMode(word string) (bucket.Mode, error) {
	modes := []string{bucket.Enforce.String(), bucket.Warn.String(), bucket.Shadow.String(), bucket.Off.String()}
	at := slices.Index(modes, word)
	if at < 0 {
		return 0, cli.Unknown("mode", word, modes)
	}
	return bucket.Mode(at), nil
}

// Says returns what a record does, in words.
func Says(o *bucket.Override) string {
	var parts []string
	add := func(is bool, format string, args ...any) {
		if is {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(o.Blocked, "blocked")
	add(o.Unlimited, "unlimited")
	add(o.Capacity > 0, "capacity %d", o.Capacity)
	add(o.Refill > 0, "refill %d", o.Refill)
	add(o.Period > 0, "per %s", tiers.Period(o.Period))
	if o.Mode != nil {
		add(true, "mode %s", *o.Mode)
	}
	return strings.Join(parts, ", ")
}

// Ends says when a record ends.
func Ends(o *bucket.Override) string {
	if o.Expires.IsZero() {
		return "never"
	}
	return o.Expires.UTC().Format(time.RFC3339)
}

// RecordLimit names the limit of a record.
func RecordLimit(o *bucket.Override) string {
	if o.Limit == "" {
		return "(all)"
	}
	return o.Limit
}

// WriteRecords writes records as a table.
func WriteRecords(c cli.Console, records []bucket.Override) {
	rows := [][]string{{"OWNER", "LIMIT", "SAYS", "ENDS", "SET", "BY", "REASON"}}
	for i := range records {
		o := &records[i]
		rows = append(rows, []string{
			OwnerName(o.Owner), RecordLimit(o), Says(o), Ends(o), o.SetAt.UTC().Format(time.RFC3339), o.Actor, o.Reason,
		})
	}
	cli.WriteTable(c.Stdout, rows)
}

// Blocks returns the override records that block whoever the scope names: its tenant, its team, its user, and its operation,
// or any operation if it names none. Budgets do not show them.
func (s *Session) Blocks(h *Holding) ([]bucket.Override, error) {
	records, err := s.Overrides(h.Scope.Tenant)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(records, func(o bucket.Override) bool { return !o.Blocked || !h.about(o.Owner) }), nil
}

// about reports whether a record of the owner is about what the scope names.
func (h *Holding) about(owner bucket.Owner) bool {
	switch owner.Level {
	case bucket.Team:
		return owner.Name == h.Scope.Team
	case bucket.User:
		return owner.Name == h.Scope.User
	case bucket.Operation:
		return h.Scope.Operation == "" || owner == h.Owner || owner == bucket.Owner{Level: bucket.Operation, Name: h.Scope.Operation}
	case bucket.Tenant:
	}
	return true
}

// WriteBlocks says which records block something.
func WriteBlocks(c cli.Console, blocks []bucket.Override) {
	for i := range blocks {
		o := &blocks[i]
		fmt.Fprintf(c.Stdout, "A record of %s blocks the %s, and ends %s: %s\n", cli.Plain(o.Actor), OwnerName(o.Owner), Ends(o), cli.Plain(o.Reason))
	}
}
