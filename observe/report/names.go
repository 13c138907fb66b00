package report

import (
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/pseudonym"
)

// Names says how the names of users are written.
type Names uint8

const (
	// Hashed names are hashes under [Config.Key]. [HashUser] finds what is about a user who is known.
	Hashed Names = iota
	// Plain names are written as they are.
	Plain
	// Omitted names are left out.
	Omitted
)

// HashTenant returns the hash of a tenant, by which instances agree on the tenants that they sample. The key is [Config.Key].
func HashTenant(key []byte, tenant string) uint64 { return pseudonym.Hash(key, 't', tenant, "") }

// HashUser returns the text that stands for a user of a tenant: h: and 16 hexadecimal digits. The key is [Config.Key].
func HashUser(key []byte, tenant, user string) string {
	return pseudonym.Text(pseudonym.User(key, tenant, user))
}

// HashKey returns a text that tells keys apart, and says nothing else of them.
func HashKey(key []byte) string { return pseudonym.Digits(pseudonym.Hash(key, 'k', "", "")) }

// HashValue returns the text that stands for the value of a parameter of custom limits: 16 hexadecimal digits. The key is [Config.Key].
func HashValue(key []byte, parameter, value string) string {
	return pseudonym.Digits(pseudonym.Hash(key, 'v', parameter, value))
}

// names writes names from outside.
type names struct {
	key   []byte
	users Names
}

// user returns the name of a user as it is written. hidden says that the policy hides names of users.
func (n names) user(tenant, user string, hidden bool) string {
	switch {
	case user == "" || n.users == Omitted:
		return ""
	case hidden || n.users == Hashed:
		return HashUser(n.key, tenant, user)
	default:
		return pseudonym.Written(user)
	}
}

// team returns the name of a team as it is written: a hash where the policy hides it, as that of a user.
func (n names) team(tenant, team string, hidden bool) string {
	if team != "" && hidden {
		return pseudonym.Text(pseudonym.Team(n.key, tenant, team))
	}
	return pseudonym.Written(team)
}

// owner returns the name of an owner of a level.
func (n names) owner(tenant, level, name string, hidden bool) string {
	switch level {
	case "user":
		return n.user(tenant, name, hidden)
	case "team":
		return n.team(tenant, name, hidden)
	default:
		return pseudonym.Written(name)
	}
}

// overrides returns override records of a tenant as they are written.
func (n names) overrides(tenant string, of []event.Override, hidden bool) []event.Override {
	told := make([]event.Override, 0, len(of))
	for _, o := range of {
		o.Owner, o.Part = n.owner(tenant, o.Level, o.Owner, hidden), n.user(tenant, o.Part, hidden)
		o.Reason, o.Actor = written(o.Reason), pseudonym.Written(o.Actor)
		told = append(told, o)
	}
	return told
}

// budget returns the limit that a fact is about as it is written.
func (n names) budget(b event.Budget) event.Budget {
	b.Owner, b.Part = n.owner(b.Tenant, b.Level, b.Owner, false), n.user(b.Tenant, b.Part, false)
	b.Tenant = pseudonym.Written(b.Tenant)
	return b
}

// event returns an event as it is written. Decisions are written as a [Refusal].
func (n names) event(e event.Event) event.Event {
	switch e := e.(type) {
	case event.WouldRefuse:
		e.Budget = n.budget(e.Budget)
		return e
	case event.ThresholdCrossed:
		e.Budget = n.budget(e.Budget)
		return e
	case event.LimitReached:
		e.Budget = n.budget(e.Budget)
		return e
	default:
		return e
	}
}

// written returns a text that may be longer than a name, as a reason or an error: cut to 1 KiB, and escaped as names are.
func written(text string) string {
	const longest = 1024
	var b []byte
	for text = text[:min(len(text), longest)]; text != ""; {
		part := text[:min(len(text), pseudonym.MaxName)]
		b = append(b, pseudonym.Written(part)...)
		text = text[len(part):]
	}
	return string(b)
}
