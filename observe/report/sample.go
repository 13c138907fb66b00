package report

import (
	"slices"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/event"
)

// Sample is everything that some tenants have asked for: the operations of each tenant whose hash is below a bound, and nothing of others.
// So a tenant is there whole, and a simulation judges it as the server would.
type Sample struct {
	// From is when the first of the operations was decided, and To when the last was, by the clock of the instance.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Below is the bound: [Sample.Has].
	Below   uint64   `json:"below,string"`
	Records []Record `json:"records,omitempty"`
	// Parameters are the parameters of custom limits whose values the records have.
	Parameters []string `json:"parameters,omitempty"`
	// Key is what [HashKey] makes of the key of the instance. A reader with another key cannot read the hashes.
	Key string `json:"key,omitempty"`
}

// Has says whether the sample has the operations of a tenant of this hash, which is [HashTenant].
func (s *Sample) Has(hash uint64) bool { return below(hash, s.Below) }

// everybody is the bound below which all tenants are.
const everybody = 1<<64 - 1

func below(hash, bound uint64) bool { return hash < bound || bound == everybody }

// plausible reports whether a reporter can have written it.
func (s *Sample) plausible() bool {
	const maxUnits = 4 * event.MaxUnits
	return len(s.Records) <= maxRecords && !slices.ContainsFunc(s.Records, func(r Record) bool {
		return max(len(r.Fields), len(r.Parts), len(r.Carried)) > maxFields || len(r.Units) > maxUnits
	})
}

// Record is one or more operations of a tenant that were alike, in one second.
type Record struct {
	// Tenant, Team, User and Tier are those of the subject, named as in a [Refusal]. Tier is the one that it carried.
	Tenant string `json:"tenant"`
	Team   string `json:"team,omitempty"`
	User   string `json:"user,omitempty"`
	Tier   string `json:"tier,omitempty"`
	// Fields are the coordinates of the root fields, the first 16 of them, and Document the id of a trusted document.
	Fields   []string `json:"fields,omitempty"`
	Document string   `json:"document,omitempty"`
	// Cost is the price in points of each, and Units what else each asked for.
	Cost  int64          `json:"cost"`
	Units []event.Amount `json:"units,omitempty"`
	// Parts are the calls of each of Fields, in their order. They are nil where each was called once and there is one of them.
	Parts []Part `json:"parts,omitempty"`
	// Carried are the values of parameters of custom limits, as [HashValue] makes them, by their names. Those that the request did not have
	// are left out.
	Carried map[string]string `json:"carried,omitempty"`
	// N is how many there were, and Refused how many of them did not run.
	N       int64 `json:"n"`
	Refused int64 `json:"refused,omitempty"`
	// Mixed says that the operations were not alike, because the tenant had too many kinds of them in the second: Cost is the
	// rounded mean, and there are neither users nor fields nor units.
	Mixed bool `json:"mixed,omitempty"`
	// Cut says that there were more root fields or calls than fit.
	Cut bool `json:"cut,omitempty"`
}

// Part are the calls of one root field in an operation that makes several.
type Part struct {
	// N is how many there are.
	N int64 `json:"n"`
}
