package bucket

import (
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// So many units and root fields one [Take] that is counted has at most.
const (
	MaxUsageUnits  = state.MaxCounted - 1 - MaxUsageFields + 2
	MaxUsageFields = 10
)

// Usage is what a store counts of a [Take], in the step that charges it and only if it is admitted: all of [Take.Amounts], by
// the tenant, the hour and the minute. What is replayed, refused or too late is not counted, nor is a further attempt of what
// was charged under its idempotency key before. A limit that refuses nothing, because of its mode or because it is soft,
// does not change what is counted: that is what was admitted, and not what the limit could hold.
//
// A settlement of the take corrects what was counted, in the minute of the take, by what the operation was worth. Charged and
// given back are two numbers of which each only grows.
//
// The zero value counts amounts and no root fields.
type Usage struct {
	// Fields are root fields of the operation, with what each has of the points. They are counted as they were taken, and no
	// settlement corrects them. No two have one name.
	Fields []FieldUsage
}

// FieldUsage is what is counted of a root field.
type FieldUsage struct {
	// Name is the coordinate, such as Query.search. What it has beyond 256 bytes is not kept.
	Name string
	// Points are those of all calls of the field in the operation, and Calls how many these are. None is negative.
	Points, Calls int64
}

// check returns what is wrong with what is to be counted of a take.
func (u *Usage) check(amounts Amounts) error {
	if u == nil {
		return nil
	}
	if len(amounts) > MaxUsageUnits || len(u.Fields) > MaxUsageFields {
		return fmt.Errorf("%w: usage of %d units and %d root fields; %d and %d fit", ErrInvalid, len(amounts), len(u.Fields), MaxUsageUnits, MaxUsageFields)
	}
	for i := range u.Fields {
		f := &u.Fields[i]
		if f.Name == "" || f.Points < 0 || f.Calls < 0 {
			return fmt.Errorf("%w: usage of %d points and %d calls of the root field %.64q", ErrInvalid, f.Points, f.Calls, f.Name)
		}
		for j := range i {
			if u.Fields[j].Name == f.Name {
				return fmt.Errorf("%w: two usages of the root field %.64q", ErrInvalid, f.Name)
			}
		}
	}
	return nil
}

// series is what is counted under one key: the points and requests of the tenant, or a unit, or a root field.
type series struct {
	kind    byte
	name    string
	numbers state.CountNumbers
}

// usage is what one call counts, in an hour.
type usage struct {
	tenant string
	// local says that it was admitted by a local share and is counted now.
	local bool
	// hour is the one of the keys.
	hour int64
	// date is one in the minute that a settlement is about.
	date int64
	mark [state.MarkSize]byte
	// all begins with the points and requests.
	all []series
}

// newUsage returns one that counts nothing yet, in room for the series.
func newUsage(tenant string, room []series) usage {
	u := usage{tenant: tenant, all: append(room, series{kind: state.CountTenant})}
	// It tells one value under a key from another, and is no secret.
	random := rand.Uint64() //nolint:gosec // See above.
	for i := range u.mark {
		u.mark[i] = byte(random >> (8 * i))
	}
	u.mark[0] = state.CountVersion
	return u
}

// count adds an amount of a unit.
func (u *usage) count(unit Unit, charged, back int64) {
	charged, back = state.Exact(charged), state.Exact(back)
	first := &u.all[0].numbers
	switch {
	case unit == Points:
		first.Charged[0], first.Back[0] = charged, back
	case unit == Requests:
		first.Charged[1], first.Back[1] = charged, back
	case charged+back > 0:
		u.all = append(u.all, series{kind: state.CountUnit, name: countName(string(unit)), numbers: state.CountNumbers{Charged: [2]int64{charged}, Back: [2]int64{back}}})
	}
}

// of adds what is counted of a take.
func (u *usage) of(take *Take) {
	for i := range take.Amounts {
		u.count(take.Amounts[i].Unit, take.Amounts[i].N, 0)
	}
	for i := range take.Usage.Fields {
		f := &take.Usage.Fields[i]
		u.all = append(u.all, series{kind: state.CountField, name: countName(f.Name), numbers: state.CountNumbers{Charged: [2]int64{state.Exact(f.Points), state.Exact(f.Calls)}}})
	}
}

// countName is what is kept of a name.
func countName(name string) string { return name[:min(len(name), state.MaxCountName)] }

// corrections returns what a settlement counts: what it corrects of what its take was counted, or what a local share has admitted. It is nil
// if that is nothing.
func (s *Settlement) corrections() *usage {
	r := &s.Receipt
	if r.admitted != nil {
		u := newUsage(r.tenant, nil)
		u.local, u.date, u.all = true, r.admitted.date, append(u.all[:0], r.admitted.all...)
		return &u
	}
	if r.IsZero() || !r.counted {
		return nil
	}
	u := newUsage(r.tenant, nil)
	u.date = r.takenAt
	changed := false
	for _, actual := range s.Actual {
		asked := r.amounts.all().Of(actual.Unit)
		u.count(actual.Unit, max(0, actual.N-asked), max(0, asked-actual.N))
		changed = changed || actual.N != asked
	}
	if !changed || len(u.all) > state.MaxCounted {
		return nil
	}
	return &u
}

// address returns what the series is kept under in an hour of this name.
func (u *usage) address(i int, hour string) address {
	a := address{kind: usageKey, name: hour}
	if u.local {
		a.kind = localUsageKey
	}
	if s := &u.all[i]; i > 0 {
		a.part = countInfixes[s.kind] + segment(s.name)
	}
	return a
}

// countInfixes are the letters of the kinds of series in their keys.
var countInfixes = [...]string{state.CountUnit: "u:", state.CountField: "f:"}

// stored is the name of a series as it is stored: that of a tenant only where its key does not tell it.
func (u *usage) stored(i int) string {
	if i > 0 {
		return state.CountName(u.all[i].kind, u.all[i].name)
	}
	if literal(u.tenant) {
		return ""
	}
	return state.CountName(state.CountTenant, u.tenant)
}

// countsUnder adds what a call counts, after all its other keys but that of the override records, and after its other arguments. What is
// counted under the first key stands in the numbers.
func (c *call) countsUnder(u *usage) {
	c.usage, c.usageKey, c.usageArg = u, len(c.keys), len(c.args)
	for i := range u.all {
		c.keys = append(c.keys, address{})
		if i > 0 {
			c.args = append(c.args, nil)
		}
	}
	u.hour = noHour
}

// noHour is the hour of a usage whose keys have no names yet.
const noHour = -1

// countIn names the keys for the hour of a date.
func (c *call) countIn(date int64) {
	u := c.usage
	if u == nil {
		return
	}
	hour := date - date%state.CountHour
	if hour == u.hour {
		return
	}
	u.hour = hour
	name := strconv.FormatInt(hour/state.CountHour, 10)
	for i := range u.all {
		c.keys[c.usageKey+i] = u.address(i, name)
		if i > 0 {
			c.args[c.usageArg+i-1] = state.AppendCount(make([]byte, 0, usualCountArg), &u.all[i].numbers, u.stored(i))
		}
	}
}

// first appends what is counted under the first key to the numbers of a call.
func (u *usage) first(b []byte, takes bool) []byte {
	date := u.date
	if takes {
		date = u.hour
	}
	return state.AppendFirstCount(b, &u.all[0].numbers, date, u.mark, u.stored(0))
}

const usualCountArg = 64

// admitted is usage that local shares have admitted and the store has not counted: of one tenant, and of as many units and root fields
// as one call may have.
type admitted struct {
	// date is one in the minute in which it is counted.
	date int64
	all  []series
}

// otherSeries is what root fields are counted under that find no room.
const otherSeries = "*"

// admit adds what a take was admitted.
func (a *admitted) admit(take *Take) {
	u := newUsage(take.Tenant, nil)
	u.of(take)
	a.join(u.all)
}

// join adds what others have. A unit that finds no room is not counted.
func (a *admitted) join(all []series) {
	if a.all == nil {
		a.all = []series{{kind: state.CountTenant}}
	}
	for i := range all {
		if of := a.find(all[i].kind, all[i].name); of != nil {
			of.numbers.Join(&all[i].numbers)
		}
	}
}

// find returns the series of a name, nil if there is no room for it.
func (a *admitted) find(kind byte, name string) *series {
	units, fields := 0, 0
	for i := range a.all {
		switch s := &a.all[i]; {
		case s.kind == kind && s.name == name:
			return s
		case s.kind == state.CountUnit:
			units++
		case s.kind == state.CountField:
			fields++
		}
	}
	switch {
	case kind == state.CountField && fields >= MaxUsageFields-1 && name != otherSeries:
		return a.find(kind, otherSeries)
	case kind == state.CountUnit && units >= MaxUsageUnits-2:
		return nil
	}
	a.all = append(a.all, series{kind: kind, name: name})
	return &a.all[len(a.all)-1]
}
