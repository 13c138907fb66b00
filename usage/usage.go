package usage

import (
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

const (
	// Grace is how long after its end a minute is told in full: until then, what was told at its end may be on its way.
	Grace = 30 * time.Second
	// CountedLife is for how long it is kept who was told as counted. A collector that was away for longer looks for what it has missed
	// with [Source.Found].
	CountedLife = 3 * time.Hour
	// ReportLife is for how long reports are kept at most. An instance that has no room for so many keeps the newest.
	ReportLife = 48 * time.Hour

	// Other is the name under which is counted what found no room under its own, of tenants and of names in a dimension. What is really called
	// so is counted with it.
	Other = "*"
	// MaxName is how many bytes of a name in [Decisions] and [Reached] are kept.
	MaxName = 256
)

// Grade says how much a number is to be believed. The zero value is [Exact].
type Grade uint8

const (
	// Exact was counted in the step that charged it.
	Exact Grade = iota
	// Local was admitted by the share of an instance while the store was away, and counted when that was settled; or by what it leases, and counted a
	// second later. An instance that ends before has not counted it.
	Local
	// Instance was counted by an instance in its memory. One that is killed loses a second or so of it.
	Instance
	// Sampled is a lower bound: not everything that happens is told.
	Sampled
)

// String returns the grade as pages write it.
func (g Grade) String() string {
	switch g {
	case Exact:
		return "exact"
	case Local:
		return "local"
	case Instance:
		return "instance"
	default:
		return "sampled"
	}
}

// GradeOf returns the grade of what a store has counted.
func GradeOf(g bucket.UsageGrade) Grade {
	if g == bucket.UsageLocal {
		return Local
	}
	return Exact
}

// Dimension is by what decisions are counted. The zero value is [ByTenant].
type Dimension uint8

const (
	// ByTenant has all decisions about a tenant. There is no name.
	ByTenant Dimension = iota
	// ByOperation has the root fields of the operation as the name, sorted and joined by +. There is no name of one that could not be read.
	ByOperation
	// ByTeam has the team of the subject. Where there is none, nothing is counted.
	ByTeam
	// ByUser has the user of the subject, as the configuration of the instance says how to write it. Where there is none, nothing is counted.
	ByUser
	// ByLimit has what refused or would have: of a limit its level and its name, such as tenant:minute, and otherwise the outcome in the word that
	// metrics carry, such as too_expensive. Nothing else is counted.
	ByLimit
)

// String returns the dimension as pages write it.
func (d Dimension) String() string {
	switch d {
	case ByTenant:
		return "tenant"
	case ByOperation:
		return "operation"
	case ByTeam:
		return "team"
	case ByUser:
		return "user"
	default:
		return "limit"
	}
}

// Counted is an hour of a tenant in which a store has counted something, or corrected it.
type Counted struct {
	// Tenant is its whole name, which may hold any bytes.
	Tenant string
	// Hour is when it began, in UTC.
	Hour time.Time
	// Grade is that of what was counted, with which bucket.UsageStore reads it.
	Grade bucket.UsageGrade
}

// Numbers are what was decided about operations, without those that were only to be validated. Each only grows. The grade is [Instance].
type Numbers struct {
	// Admitted ran, or were answered from an idempotency key. WouldRefuse are those of them that would have been refused if everything were enforced.
	Admitted, WouldRefuse int64
	// Refused did not run.
	Refused int64
	// Points are the price of those that ran, before it was corrected, without those of exempt subjects. What is billed is counted by the store.
	Points int64
}

// IsZero says that nothing was counted.
func (n Numbers) IsZero() bool { return n == Numbers{} }

// Decisions are what an instance has decided in a minute about a tenant, by one name of a dimension.
type Decisions struct {
	// Tenant is cut to [MaxName] bytes, or [Other].
	Tenant string
	// Minute is when it began, by the clock of the instance, in UTC.
	Minute time.Time
	By     Dimension
	// Name is cut to [MaxName] bytes, or [Other]. Of [ByTenant] it is empty.
	Name string
	Numbers
}

// Reached is how often a threshold of a limit was crossed in a minute, as far as the instance was told. The grade is [Sampled].
type Reached struct {
	// Tenant is cut to [MaxName] bytes, or [Other].
	Tenant string
	// Minute is when it began, by the clock of the instance, in UTC.
	Minute time.Time
	// Level is whose limit it is: tenant, team, user or operation, and Owner tells owners of one level apart. It is empty at the level of the
	// tenant. Names of users are written as in [Decisions]; those that have a part of an operation are left out.
	Level, Owner string
	// Limit is the name of the limit.
	Limit string
	// Threshold is the share that was reached, in percent, and 100 if the limit has refused.
	Threshold int
	// Times only grows.
	Times int64
}

// Report is what an instance has told of itself.
type Report struct {
	// Instance is what the instance is called, and Boot tells its runs apart: a process that starts anew counts anew.
	Instance, Boot string
	Decisions      []Decisions
	Reached        []Reached
}
