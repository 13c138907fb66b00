package bucket

import "time"

// Unit is what a limit counts.
type Unit string

const (
	// Points is the unit of query cost, and the unit of a limit that names none.
	Points Unit = "points"
	// Requests counts each operation once, whatever it costs.
	Requests Unit = "requests"
	// Records counts each charged operation under an idempotency key once: it leaves a record behind.
	Records Unit = "records"
	// AnswerBytes counts the bytes of answers that are stored for replays. An answer for which there are
	// none left is not stored.
	AnswerBytes Unit = "answer_bytes"
	// Replays counts answers that come from the store.
	Replays Unit = "replays"
	// ResponseBytes counts the bytes of answers as they leave: their data and the messages of their errors, before they are
	// compressed. One is taken before an operation runs, and the rest charged on afterwards, which cannot be refused and may
	// overdraw the limit: whoever has none left waits.
	ResponseBytes Unit = "response_bytes"
	// Events counts the events of subscriptions, the first when one begins, and then in batches of at most
	// sixteen.
	Events Unit = "events"
)

// Amount is a quantity of one unit.
type Amount struct {
	Unit Unit
	N    int64
}

// Amounts is what one operation takes: one amount a unit. A unit that is absent counts as zero.
type Amounts []Amount

// Of returns the amount of the unit, zero if it is absent.
func (a Amounts) Of(unit Unit) int64 {
	for i := range a {
		if a[i].Unit == unit {
			return a[i].N
		}
	}
	return 0
}

// Mode is what a limit does to an operation that exceeds it. The zero value enforces.
type Mode uint8

const (
	// Enforce refuses the operation.
	Enforce Mode = iota
	// Warn is Shadow, and the client is told as well: it is the last step before Enforce.
	Warn
	// Shadow reports what Enforce would have refused, charges nothing for it, and refuses nothing.
	Shadow
	// Off neither judges nor charges.
	Off
)

// String returns the word the policy document uses.
func (m Mode) String() string { return wordOf("mode", modeWords[:], m) }

var modeWords = [...]string{Enforce: "enforce", Warn: "warn", Shadow: "shadow", Off: "off"}

// FailMode is what happens to an operation while the store cannot answer. The zero value is [FailBounded]. Whom the store
// has blocked stays blocked under each of them.
type FailMode uint8

const (
	// FailBounded judges the operation in this process by its part of a stated multiple of the limit, which starts full: the
	// API stays up, and no outage gives away more than that.
	FailBounded FailMode = iota
	// FailClosed refuses the operation.
	FailClosed
	// FailLocal judges the operation by this instance's share of what the store last said was left of the limit: together
	// the instances stay within it.
	FailLocal
	// FailOpen admits everything, unjudged, and settles nothing afterwards.
	FailOpen
)

// Strictest returns which of two fail modes decides about an operation that is under both: closed beats local, local
// beats bounded, and bounded beats open.
func (f FailMode) Strictest(other FailMode) FailMode {
	if f.strictness() >= other.strictness() {
		return f
	}
	return other
}

// strictness orders the fail modes.
func (f FailMode) strictness() int {
	switch f {
	case FailClosed:
		return 3
	case FailLocal:
		return 2
	case FailBounded:
		return 1
	default:
		return 0
	}
}

// String returns the word the policy document uses.
func (f FailMode) String() string { return wordOf("failmode", failModeWords[:], f) }

var failModeWords = [...]string{FailBounded: "bounded", FailClosed: "closed", FailLocal: "local", FailOpen: "open"}

// Limit is one budget rule of an owner: a token bucket that holds at most Capacity and gains Refill
// each Period, continuously, or with Window an amount of Capacity for each window. The zero value is
// not a limit; [Compile] says what is missing.
type Limit struct {
	// Name tells the limits of one owner apart and addresses, with Unit, its stored state: second, minute, hour,
	// day, or what the user chooses, in at most 64 bytes. Renaming a limit starts it full. A limit that keeps its name keeps what was
	// spent, also if its Window or Period changes: as before until it is charged, and then as it says now.
	Name string
	// Unit is what the limit counts. Empty means [Points].
	Unit Unit
	// Capacity is the largest amount that can be taken at once.
	Capacity int64
	// Refill is how much comes back in each Period. Zero means Capacity, as it always is in windows.
	Refill int64
	// Period is the time in which Refill comes back, or the length of a window: whole milliseconds, at
	// most ten years. It is zero where the calendar gives the length.
	Period time.Duration
	// Window is when the budget comes back. The zero value is continuously: a token bucket.
	Window Window
	// Soft is a limit that only reports: it is always charged and refuses nothing. What it is
	// overdrawn by stands in LimitState.Overdraft, up to once the capacity, beyond which it counts
	// nothing, and what it did not count it does not give back.
	Soft bool
	// Mode is what happens to an operation that exceeds the limit.
	Mode Mode
	// Strictest is the strictest mode that an [Override] can give the limit: a policy that was eased in an
	// emergency stays so. The zero value allows every mode. It does not change Mode itself.
	Strictest Mode
	// FailMode is what happens while the store cannot answer.
	FailMode FailMode

	// overrides are the records that have changed the limit, nil if none has.
	overrides *overrides
}

// overrides are records in a form that leaves a limit comparable.
type overrides struct{ records []*Override }

// Overrides returns the override records that make the limit of a [LimitState] what it is, those of all
// limits of the owner before that of the single one, which beats them. It is nil for a limit that is as the
// policy has it. The records are copies.
func (l *Limit) Overrides() []Override {
	if l.overrides == nil {
		return nil
	}
	all := make([]Override, len(l.overrides.records))
	for i, o := range l.overrides.records {
		all[i] = o.clone()
	}
	return all
}

// Level is the rank of an owner.
type Level uint8

const (
	// Tenant is the organisation, customer or account at the top.
	Tenant Level = iota
	// Team is a group within a tenant.
	Team
	// User is a person or client within a tenant.
	User
	// Operation is a root field, or a pattern of them, within a tenant.
	Operation
)

// String returns the level in the word that clients and policies see.
func (l Level) String() string { return wordOf("level", levelWords[:], l) }

var levelWords = [...]string{Tenant: "tenant", Team: "team", User: "user", Operation: "operation"}

// Owner is whom a budget belongs to within a tenant. The zero value is the tenant itself.
type Owner struct {
	Level Level
	// Name tells owners of one level apart. It is empty at the level of the tenant, and may hold any
	// bytes elsewhere: stores encode it.
	Name string
	// Part tells apart those of whom each has a bucket of an operation for itself: a user, or the account that somebody
	// tries to log in to. It may hold any bytes; what comes from arguments a policy hashes before. Empty is the
	// operation as a whole, which is another owner. It is empty at all other levels.
	Part string
}

// whole returns the operation of which the owner is a part.
func (o Owner) whole() Owner {
	o.Part = ""
	return o
}

// Bucket is one owner with the limits it is under.
type Bucket struct {
	Owner  Owner
	Limits *Limits
	// Amounts are what a [Take] asks of this owner, in the place of [Take.Amounts] for their units: one operation may
	// call a field three times, and an owner that counts the calls is asked for three. Nil is none. They must not
	// change while the receipt of the take is in use; other calls pay no heed to them.
	Amounts Amounts
}

// asked returns what a take with the amounts asks of the bucket in a unit.
func (b *Bucket) asked(amounts Amounts, unit Unit) int64 {
	for i := range b.Amounts {
		if b.Amounts[i].Unit == unit {
			return b.Amounts[i].N
		}
	}
	return amounts.Of(unit)
}
