package audit

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Bounds of an entry.
const (
	// MaxName is how many bytes a name has: of an actor, an action, a target, a tenant, a ticket, a request.
	MaxName = 512
	// MaxReason is how many bytes a reason has.
	MaxReason = 2048
	// MaxValue is how many bytes Before and After have each. A policy document is larger; its hash stands for it.
	MaxValue = 64 << 10
	// MaxRecord is how many bytes the record of an entry has: all of it, each character escaped.
	MaxRecord = 160 << 10
	// MaxRevision is the largest revision: JavaScript counts exactly up to there.
	MaxRevision = 1<<53 - 1
)

// Actor is who did it, as words. They are those of package access, which says what they mean.
type Actor struct {
	Subject string `json:"subject"`
	Issuer  string `json:"issuer,omitempty"`
	Method  string `json:"method,omitempty"`
	Owner   string `json:"owner,omitempty"`
	Address string `json:"address,omitempty"`
	Agent   string `json:"agent,omitempty"`
}

// Entry is one thing that was done. Texts are UTF-8 without control characters, except lines in the reason. What is empty is
// left out of the record.
type Entry struct {
	// Sequence numbers the entries of a log from 0, in the order in which they were committed. [Append] sets it.
	Sequence int64 `json:"sequence"`
	// Time is when, in UTC to the microsecond. Clocks differ and are set back: it orders nothing, the sequence does.
	Time time.Time `json:"time"`
	// Actor is who.
	Actor Actor `json:"actor"`
	// Action is what, such as policy.publish, and Target what it was done to. Both are needed.
	Action string `json:"action"`
	Target string `json:"target"`
	// Tenant is whom it concerns, if one tenant.
	Tenant string `json:"tenant,omitempty"`
	// RevisionBefore and RevisionAfter are the revision that held before, and the one that holds since. 0 is none.
	RevisionBefore uint64 `json:"revisionBefore,omitempty"`
	RevisionAfter  uint64 `json:"revisionAfter,omitempty"`
	// Before and After are the target before and after, as JSON. Empty means that there was none.
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
	// Reason is why, in the words of the actor, and Ticket where more is to be read.
	Reason string `json:"reason,omitempty"`
	Ticket string `json:"ticket,omitempty"`
	// Request is the id of the request.
	Request string `json:"request,omitempty"`
}

// EntryError says why an entry is none: one of its fields. It repeats nothing of what the field holds.
type EntryError struct {
	// Field is the name of the field in the record, and Problem what is wrong with it.
	Field, Problem string
}

// Error says what is wrong with which field.
func (e *EntryError) Error() string { return fmt.Sprintf("audit: %s %s", e.Field, e.Problem) }

// Check returns an [*EntryError] if the entry cannot be one, whatever its sequence: something that is missing, too long or not
// UTF-8, or that looks like a secret. What looks like one is a token of the control plane, a JSON Web Token, a private key, or a URL
// with a password. A log is read by many and nothing in it can be deleted.
func (e *Entry) Check() error {
	if year := e.Time.UTC().Year(); year < 1970 || year > 9999 {
		return &EntryError{"time", "is not between the years 1970 and 9999"}
	}
	for _, text := range e.texts() {
		if err := text.check(); err != nil {
			return err
		}
	}
	if e.RevisionBefore > MaxRevision || e.RevisionAfter > MaxRevision {
		return &EntryError{"revision", "is larger than 2^53 - 1"}
	}
	if err := checkValue("before", e.Before); err != nil {
		return err
	}
	return checkValue("after", e.After)
}

// text is a text of an entry with its bounds.
type text struct {
	field, value string
	most         int
	needed       bool
}

// texts returns all texts.
func (e *Entry) texts() []text {
	return []text{
		{"actor.subject", e.Actor.Subject, MaxName, true},
		{"actor.issuer", e.Actor.Issuer, MaxName, false},
		{"actor.method", e.Actor.Method, MaxName, false},
		{"actor.owner", e.Actor.Owner, 2*MaxName + 1, false},
		{"actor.address", e.Actor.Address, MaxName, false},
		{"actor.agent", e.Actor.Agent, MaxName, false},
		{"action", e.Action, MaxName, true},
		{"target", e.Target, MaxName, true},
		{"tenant", e.Tenant, MaxName, false},
		{"reason", e.Reason, MaxReason, false},
		{"ticket", e.Ticket, MaxName, false},
		{"request", e.Request, MaxName, false},
	}
}

// check returns what is wrong with a text.
func (t text) check() error {
	switch {
	case t.needed && t.value == "":
		return &EntryError{t.field, "is missing"}
	case len(t.value) > t.most:
		return &EntryError{t.field, fmt.Sprintf("has %d bytes, want at most %d", len(t.value), t.most)}
	case !utf8.ValidString(t.value):
		return &EntryError{t.field, "is not UTF-8"}
	case strings.ContainsFunc(t.value, unprintable) && (t.field != "reason" || strings.ContainsFunc(breaks.Replace(t.value), unprintable)):
		return &EntryError{t.field, "has a control character"}
	case secret.MatchString(t.value):
		return &EntryError{t.field, "looks like a secret"}
	}
	return nil
}

// unprintable says which characters would show a text otherwise than it is.
func unprintable(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }

// breaks takes out what a reason may have: it is a text of several lines.
var breaks = strings.NewReplacer("\n", "", "\t", "")

// checkValue returns what is wrong with Before or After.
func checkValue(field string, value json.RawMessage) error {
	switch {
	case len(value) > MaxValue:
		return &EntryError{field, fmt.Sprintf("has %d bytes, want at most %d", len(value), MaxValue)}
	case !utf8.Valid(value):
		return &EntryError{field, "is not UTF-8"}
	case len(value) > 0 && !json.Valid(value):
		return &EntryError{field, "is not JSON"}
	case secret.Match(value):
		return &EntryError{field, "looks like a secret"}
	}
	return nil
}

// secret matches what is recognisable as a secret: tokens of package access, private keys of PEM and of golang.org/x/mod/sumdb/note, JSON Web
// Tokens, and URLs with a password.
var secret = regexp.MustCompile(`grl_[a-z2-7]{13}_[a-z2-7]{20}` +
	`|PRIVATE\+KEY\+|PRIVATE KEY-----` +
	`|\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.` +
	`|[a-z]://[^/\s:@"]*:[^/\s@"]+@`)
