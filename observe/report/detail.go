package report

import (
	"slices"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/number"
	"github.com/gqlgen-ratelimit/ratelimit/internal/pseudonym"
)

const (
	// maxFields is how many root fields a record names, and MaxCalls how many calls it has.
	maxFields = 16
	// maxParameters is of how many parameters a record has the values.
	maxParameters = 16
)

// MaxCalls is how many calls of root fields a [Record] has at most. One of more is [Record.Cut].
const MaxCalls = 256

// detail is what an operation was beside its verdict. Values are hashes already.
type detail struct {
	// asked says that the operation may be recorded, and told that it has said what it was.
	asked, told bool
	parts       []event.Part
	carried     []event.Carried
	cut         bool
}

// detailOf returns the detail of an operation that may be recorded. It is asked for outside of locks, since it works.
func (c *counter) detailOf(v *event.Verdict) (d detail) {
	if !isSampled(v.Outcome) {
		return d
	}
	if bound := c.below.Load(); bound != everybody && !below(HashTenant(c.key, v.Tenant), bound) {
		return d
	}
	d.asked, d.told, d.cut = true, v.Detail != nil, len(v.RootFields) > maxFields
	if !d.told {
		// Then it makes one call, under a policy that looks at nothing else, or was refused before it was read.
		return d
	}
	if !d.cut {
		d.parts = v.Detail.Parts()
	}
	calls := int64(0)
	for i := range d.parts {
		calls = number.Sum(calls, d.parts[i].Calls)
	}
	if calls > MaxCalls {
		d.parts, d.cut = nil, true
	}
	d.carried = v.Detail.Carried()
	if len(d.carried) > maxParameters {
		d.carried = d.carried[:maxParameters]
	}
	for i := range d.carried {
		if one := &d.carried[i]; one.Value != "" {
			one.Value = HashValue(c.key, one.Parameter, one.Value)
		}
	}
	return d
}

// known is what all operations of a sample have said.
type known struct {
	some bool
	// parameters are those of which all have the values.
	parameters []string
}

// meet takes an operation in.
func (k *known) meet(d detail) {
	same := k.some && len(k.parameters) == len(d.carried)
	for i := 0; same && i < len(d.carried); i++ {
		same = k.parameters[i] == d.carried[i].Parameter
	}
	switch {
	case same, !d.told:
	case !k.some:
		k.some = true
		for _, one := range d.carried {
			k.parameters = append(k.parameters, one.Parameter)
		}
	default:
		k.parameters = slices.DeleteFunc(slices.Clone(k.parameters), func(name string) bool {
			return !slices.ContainsFunc(d.carried, func(one event.Carried) bool { return one.Parameter == name })
		})
	}
}

// merge takes in what those of another shard say.
func (k *known) merge(o *known) {
	switch {
	case !o.some:
	case !k.some:
		*k = known{some: true, parameters: slices.Clone(o.parameters)}
	default:
		k.parameters = slices.DeleteFunc(k.parameters, func(name string) bool { return !slices.Contains(o.parameters, name) })
	}
}

// written returns the names of the parameters as a sample has them.
func (k *known) written() []string {
	var names []string
	for _, name := range k.parameters {
		names = append(names, pseudonym.Written(name))
	}
	return names
}
