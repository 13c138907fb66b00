package control

import (
	"context"
	"slices"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
)

const (
	// maxThreshold is a limit that is used up, in percent.
	maxThreshold = 100
	// usualThreshold is the one of who is near a limit.
	usualThreshold = 80
	// usualNearDays is over how many days it is looked who is, and maxNearDays over how many at most.
	usualNearDays = 7
	maxNearDays   = 31
)

// ReachedInput says which crossings of thresholds of a tenant are asked for. The zero value of a field but Tenant and N is a default.
type ReachedInput struct {
	Tenant string
	// From and To are those of [UsageSeriesInput].
	From, To time.Time
	// Window is [UsageMinute] or [UsageDay], which is the default. Days are those of UTC.
	Window UsageWindow
	// Threshold is the smallest one, in percent, from 1 to 100. Zero is all.
	Threshold int
	// After is the Next of the page before, and N how many rows there are on a page.
	After string
	N     int
}

// ReachedPage is a page of what was used up to a threshold. Its times are those of [UsageSeries].
type ReachedPage struct {
	From, To               time.Time
	Since, Kept, Collected time.Time
	Rows                   []ReachedRow
	// Next is the After of the next page. It is empty at the end.
	Next string
}

// ReachedRow says that a limit of an owner was used up to a threshold in a period. The grade of its numbers is that of [usage.Sampled]: it was at least
// so often.
type ReachedRow struct {
	Begin, End time.Time
	// Level is the word for whose limit it is: tenant, team, user or operation. Owner tells owners of one level apart: users as instances write them.
	Level, Owner, Limit string
	// Threshold is in percent, and 100 if the limit has refused.
	Threshold int
	Times     int64
	Grade     usage.Grade
}

// reachedPlace is a place in the order of rows, as clients bring it back.
type reachedPlace struct {
	At        int64  `json:"a"`
	Level     string `json:"o"`
	Owner     []byte `json:"n,omitempty"`
	Limit     []byte `json:"l"`
	Threshold int    `json:"t"`
}

// Reached returns a page of the limits of a tenant that were used up to a threshold, in the order of time: [access.ReadUsage].
func (c *Control) Reached(ctx context.Context, actor access.Actor, in ReachedInput) (*ReachedPage, error) {
	if err := access.Authorize(actor, access.ReadUsage, in.Tenant); err != nil {
		return nil, err
	}
	if in.Window == "" {
		in.Window = UsageDay
	}
	switch {
	case in.Window != UsageMinute && in.Window != UsageDay:
		return nil, invalid("window", "it is neither minute nor day: nothing else is kept of this")
	case in.Threshold < 0 || in.Threshold > maxThreshold:
		return nil, invalid("threshold", "1 to %d fits, which are percent", maxThreshold)
	case in.N < 1 || in.N > MaxUsagePage:
		return nil, invalid("first", "1 to %d fits", MaxUsagePage)
	}
	if err := checkName("tenant", in.Tenant, store.MaxUsageTenant); err != nil {
		return nil, err
	}
	s := &usageScan{in: &UsageSeriesInput{Tenant: in.Tenant, From: in.From, To: in.To, Window: in.Window}, now: c.now()}
	if err := s.plan(); err != nil {
		return nil, err
	}
	after, err := reachedPlaceOf(in.After)
	if err != nil {
		return nil, err
	}
	first, last := s.periods[0], s.periods[len(s.periods)-1]
	page := &ReachedPage{From: first.begin, To: last.end}
	return page, c.cfg.Store.Read(ctx, func(v *store.View) error {
		if err := s.look(v); err != nil {
			return err
		}
		page.Since, page.Kept, page.Collected = s.since, s.kept, s.collected
		q := &store.ReachedQuery{
			Tenant: in.Tenant, Level: s.level, From: max(indexOf(s.level, first.begin), indexOf(s.level, s.kept)), To: indexOf(s.level, last.end), Least: in.Threshold, After: after,
		}
		found, err := v.FindReached(q, in.N+1)
		page.take(found, s.level, in.N)
		return err
	})
}

// take takes in at most n rows.
func (p *ReachedPage) take(found []store.ReachedRow, level store.UsageLevel, n int) {
	if len(found) > n {
		found = found[:n]
		last := &found[n-1]
		p.Next = encodePlace(reachedPlace{last.At, last.Level, []byte(last.Owner), []byte(last.Limit), last.Threshold})
	}
	length := 24 * time.Hour
	if level == store.UsageMinutes {
		length = time.Minute
	}
	p.Rows = []ReachedRow{}
	for i := range found {
		r := &found[i]
		begin := time.Unix(r.At*int64(length/time.Second), 0).UTC()
		p.Rows = append(p.Rows, ReachedRow{
			Begin: begin, End: begin.Add(length), Level: r.Level, Owner: visible(r.Owner, len(r.Owner)), Limit: visible(r.Limit, len(r.Limit)),
			Threshold: r.Threshold, Times: r.Times, Grade: usage.Sampled,
		})
	}
}

func reachedPlaceOf(text string) (*store.ReachedPlace, error) {
	if text == "" {
		return nil, nil
	}
	var p reachedPlace
	if decodePlace(text, &p) != nil || checkText("after", p.Level, maxZone) != nil {
		return nil, invalid("after", "it is not the end of a page of this")
	}
	return &store.ReachedPlace{At: p.At, Level: p.Level, Owner: string(p.Owner), Limit: string(p.Limit), Threshold: p.Threshold}, nil
}

// NearInput says who was near a limit on many days. The zero value of a field but N is a default.
type NearInput struct {
	// Days is over how many days it is looked, the one of today included, at most 31. Zero is 7.
	Days int
	// AtLeast is on how many of them. Zero is more than half.
	AtLeast int
	// Threshold is the smallest share of the limit that counts, in percent. Zero is 80.
	Threshold int
	// Level is whose limits they are, in a word. Empty is tenant.
	Level string
	// After is the Next of the page before, and N how many rows there are on a page.
	After string
	N     int
}

// NearPage is a page of limits that were nearly used up, those of most days first.
type NearPage struct {
	// From is when the first day began, and To when the last one ends, in UTC.
	From, To time.Time
	// Since is when counts were collected for the first time, zero if they never were, and Collected up to when they have come.
	Since, Collected time.Time
	// AtLeast and Threshold are what was looked for.
	AtLeast, Threshold int
	Rows               []NearRow
	// Next is the After of the next page. It is empty at the end.
	Next string
}

// NearRow is a limit of an owner.
type NearRow struct {
	Tenant, Owner, Limit string
	// Days is on how many days the threshold was reached, Last when the last of them began, Times how often at least, and Most the largest
	// threshold, in percent.
	Days  int
	Last  time.Time
	Times int64
	Most  int
}

// nearPlace is a place in the order of rows, as clients bring it back.
type nearPlace struct {
	Days   int    `json:"d"`
	Tenant []byte `json:"t"`
	Owner  []byte `json:"n,omitempty"`
	Limit  []byte `json:"l"`
}

// NearLimits returns who was near a limit on many days, of all tenants: [access.ReadUsage] of all.
func (c *Control) NearLimits(ctx context.Context, actor access.Actor, in NearInput) (*NearPage, error) {
	if err := access.Authorize(actor, access.ReadUsage, ""); err != nil {
		return nil, err
	}
	if err := in.complete(); err != nil {
		return nil, err
	}
	q := &store.NearQuery{Level: in.Level, To: store.DayOf(c.now()) + 1, Days: in.AtLeast, Least: in.Threshold}
	q.From = q.To - int64(in.Days)
	if in.After != "" {
		var p nearPlace
		if decodePlace(in.After, &p) != nil {
			return nil, invalid("after", "it is not the end of a page of this")
		}
		q.After = &store.NearPlace{Days: p.Days, Tenant: string(p.Tenant), Owner: string(p.Owner), Limit: string(p.Limit)}
	}
	day := func(n int64) time.Time { return time.Unix(n*secondsOfDay, 0).UTC() }
	page := &NearPage{From: day(q.From), To: day(q.To), AtLeast: in.AtLeast, Threshold: in.Threshold, Rows: []NearRow{}}
	return page, c.cfg.Store.Read(ctx, func(v *store.View) error {
		span, err := v.UsageSpan(usagePass)
		if err != nil {
			return err
		}
		page.Since, page.Collected = spanTimes(&span)
		found, err := v.FindNear(q, in.N+1)
		if len(found) > in.N {
			found = found[:in.N]
			last := &found[in.N-1]
			page.Next = encodePlace(nearPlace{last.Days, []byte(last.Tenant), []byte(last.Owner), []byte(last.Limit)})
		}
		for i := range found {
			r := &found[i]
			page.Rows = append(page.Rows, NearRow{
				Tenant: visible(r.Tenant, len(r.Tenant)), Owner: visible(r.Owner, len(r.Owner)), Limit: visible(r.Limit, len(r.Limit)),
				Days: r.Days, Last: day(r.Last), Times: r.Times, Most: r.Most,
			})
		}
		return err
	})
}

// complete checks what is asked for, and puts in what is not said.
func (in *NearInput) complete() error {
	if in.Days == 0 {
		in.Days = usualNearDays
	}
	if in.AtLeast == 0 {
		in.AtLeast = in.Days/2 + 1
	}
	if in.Threshold == 0 {
		in.Threshold = usualThreshold
	}
	if in.Level == "" {
		in.Level = bucket.Tenant.String()
	}
	switch {
	case in.Days < 1 || in.Days > maxNearDays:
		return invalid("days", "1 to %d fits", maxNearDays)
	case in.AtLeast < 1 || in.AtLeast > in.Days:
		return invalid("atLeast", "1 to %d fits, which are the days", in.Days)
	case in.Threshold < 1 || in.Threshold > maxThreshold:
		return invalid("threshold", "1 to %d fits, which are percent", maxThreshold)
	case !slices.Contains([]string{bucket.Tenant.String(), bucket.Team.String(), bucket.User.String(), bucket.Operation.String()}, in.Level):
		return invalid("level", "it is none of tenant, team, user and operation")
	case in.N < 1 || in.N > MaxUsagePage:
		return invalid("first", "1 to %d fits", MaxUsagePage)
	}
	return nil
}
