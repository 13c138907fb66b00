package bucket

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// UsageStore is a [Store] that tells what it has counted. A count that is forgotten, or lost, and counted on is another
// one: it has another generation, and begins at nothing. So whoever keeps counts keeps one row for each tenant, hour, name and
// generation, takes the larger one of two values of a row, and adds up rows: then nothing is counted twice, in whatever
// order and however often it reads.
type UsageStore interface {
	// ReadUsage returns what was counted of a tenant in the hour of a time, nil if nothing was. It changes nothing.
	ReadUsage(ctx context.Context, tenant string, hour time.Time, grade UsageGrade) (*UsageHour, error)

	// ForgetUsage removes what ReadUsage has returned. It returns false, and removes nothing, if something else is counted by now.
	// It is for hours that are over, and for which no settlement is to come: a settlement counts on under another generation.
	ForgetUsage(ctx context.Context, read *UsageHour) (bool, error)
}

// UsageGrade says how much a count is to be believed.
type UsageGrade uint8

const (
	// UsageExact was counted in the step that charged it: it is what the store has admitted, no more and no less, as long as the
	// store loses nothing.
	UsageExact UsageGrade = iota
	// UsageLocal was admitted by the local share of an instance while the store was away, and counted when that was settled, in
	// the minute of the settlement; or by what it leases, and counted about a second later, in its own minute. An instance that ends before has
	// not counted it.
	UsageLocal
)

// String returns the grade as pages write it.
func (g UsageGrade) String() string {
	if g == UsageLocal {
		return "local"
	}
	return "exact"
}

// UsageHour is what was counted of a tenant in an hour.
type UsageHour struct {
	Tenant string
	// Hour is when it began.
	Hour  time.Time
	Grade UsageGrade
	// Counts begin with those of points and requests, and are in the order in which their names came.
	Counts []UsageCount
	// Full says that there were more units and root fields than find room, so that some may have no count. Points and requests have one.
	Full bool

	// read is what is stored of each key.
	read []string
	of   usage
}

// UsageCount is what was counted of one unit or root field in an hour.
type UsageCount struct {
	// Generation tells the count from others under its name in the same hour.
	Generation uint64
	// Unit is what is counted. Of a root field it is Points.
	Unit Unit
	// Field is the coordinate of the root field, empty for a unit.
	Field   string
	Minutes [60]UsageMinute
}

// UsageMinute is what was counted in a minute. Each number only grows.
type UsageMinute struct {
	// Charged is what was admitted in the minute and charged on for it later, and GivenBack is what of that was given back.
	Charged, GivenBack int64
	// Calls is how often a root field was called. It is zero for a unit.
	Calls int64
}

// Net is what is left of all minutes.
func (c *UsageCount) Net() int64 {
	sum := int64(0)
	for i := range c.Minutes {
		sum += c.Minutes[i].Charged - c.Minutes[i].GivenBack
	}
	return sum
}

// ReadUsage implements [UsageStore].
func (s *core) ReadUsage(ctx context.Context, tenant string, hour time.Time, grade UsageGrade) (*UsageHour, error) {
	read := &UsageHour{Tenant: tenant, Hour: hour.UTC().Truncate(time.Hour), Grade: grade}
	read.of = usage{tenant: tenant, local: grade == UsageLocal, hour: read.Hour.UnixMilli(), all: []series{{}}}
	values, err := s.readUsage(ctx, &read.of, 0)
	if err != nil || values[0] == "" {
		return nil, err
	}
	names, full := state.ReadNames(values[0])
	for _, name := range names {
		if name.Kind != state.CountTenant && int(name.Kind) < len(countInfixes) {
			read.of.all = append(read.of.all, series{kind: name.Kind, name: name.Name})
		}
	}
	others, err := s.readUsage(ctx, &read.of, 1)
	if err != nil {
		return nil, err
	}
	read.Full, read.read = full, append(values, others...)
	for i, value := range read.read {
		if value == "" {
			continue
		}
		if !read.add(&read.of.all[i], i == 0, value) {
			return nil, fmt.Errorf("%w: something else is stored than a count", ErrUnavailable)
		}
	}
	return read, nil
}

// add takes in what is stored of a series.
func (h *UsageHour) add(of *series, first bool, value string) bool {
	mark, minutes, ok := state.ReadCount(value)
	count := UsageCount{Generation: mark, Unit: Points}
	if of.kind == state.CountUnit {
		count.Unit = Unit(of.name)
	} else if !first {
		count.Field = of.name
	}
	requests := UsageCount{Generation: mark, Unit: Requests}
	for i := range minutes {
		m := &minutes[i]
		count.Minutes[i] = UsageMinute{Charged: m.Charged[0], GivenBack: m.Back[0]}
		requests.Minutes[i] = UsageMinute{Charged: m.Charged[1], GivenBack: m.Back[1]}
		if count.Field != "" {
			count.Minutes[i].Calls = m.Charged[1]
		}
	}
	h.Counts = append(h.Counts, count)
	if first {
		h.Counts = append(h.Counts, requests)
	}
	return ok
}

// usageCall returns a call about the keys of a usage from one on.
func (s *core) usageCall(u *usage, from int, extra int64) *call {
	c := s.newCall(u.tenant, &s.scripts.Usage, len(u.all), 1+len(u.all))
	c.administers = true
	hour := strconv.FormatInt(u.hour/state.CountHour, 10)
	for i := from; i < len(u.all); i++ {
		c.key(u.address(i, hour))
	}
	c.values(nil, extra, 0, nil)
	return c
}

// readUsage returns what is stored under the keys of a usage from one on.
func (s *core) readUsage(ctx context.Context, u *usage, from int) ([]string, error) {
	if from == len(u.all) {
		return nil, nil
	}
	reply, err := s.usageCall(u, from, 0).do(ctx)
	if err != nil {
		return nil, err
	}
	values := make([]string, len(u.all)-from)
	rest, ok := reply.rest, reply.outcome == state.Applied
	for i := 0; ok && i < len(values); i++ {
		values[i], rest, ok = state.ReadValue(rest)
	}
	if !ok || rest != "" {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, errReply)
	}
	return values, nil
}

// ForgetUsage implements [UsageStore].
func (s *core) ForgetUsage(ctx context.Context, read *UsageHour) (bool, error) {
	c := s.usageCall(&read.of, 0, 1)
	for _, value := range read.read {
		c.arg(value)
	}
	reply, err := c.do(ctx)
	if err != nil {
		return false, err
	}
	return reply.outcome == state.Applied, reply.check()
}
