package control

import (
	"slices"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
)

// usageScan reads rows of a question, one page after the other.
type usageScan struct {
	in   *UsageSeriesInput
	by   store.UsageBy
	now  time.Time
	hash func(tenant, user string) string
	// counts is what is counted of the tenant.
	counts string
	// periods are those of the answer. Each is one of the level if aligned says so, and otherwise it has several of them.
	periods []usagePeriod
	level   store.UsageLevel
	aligned bool
	names   []string
	// clear are the names that were asked for, by what instances write for them.
	clear map[string]string

	// What is looked up first: the names that have a row of their own, and what there is.
	top                    []string
	since, kept, collected time.Time
}

// usageLevels are the levels of which windows are.
var usageLevels = map[UsageWindow]store.UsageLevel{
	UsageMinute: store.UsageMinutes, UsageHour: store.UsageHours, UsageDay: store.UsageDays, UsageMonth: store.UsageMonths,
}

// The first and the last year that can be asked for.
const (
	firstUsageYear = 1970
	lastUsageYear  = 9999
)

// plan finds the periods, and of what they are made.
func (s *usageScan) plan() error {
	in := s.in
	zone, err := zoneOf(in.Zone)
	if err != nil {
		return err
	}
	from, to := in.From, in.To
	if to.IsZero() {
		to = s.now
	}
	if from.IsZero() {
		last := in.Window.begin(to.Add(-time.Nanosecond), zone)
		from = in.Window.step(last, 1-usageWindows[in.Window].usual, zone)
	}
	for _, t := range [...]time.Time{from, to} {
		if year := t.UTC().Year(); year < firstUsageYear || year > lastUsageYear {
			return invalid("from", "years from %d to %d fit", firstUsageYear, lastUsageYear)
		}
	}
	if !from.Before(to) {
		return invalid("to", "it is not after from")
	}
	if s.periods, err = in.Window.periods(from, to, zone); err != nil {
		return err
	}
	s.level, s.aligned = usageLevels[in.Window], true
	for _, p := range s.periods {
		if !in.Window.begin(p.begin, time.UTC).Equal(p.begin) || !in.Window.step(p.begin, 1, time.UTC).Equal(p.end) {
			s.aligned = false
		}
	}
	if !s.aligned {
		s.level = store.UsageHours
		for _, p := range s.periods {
			if !p.begin.Truncate(time.Hour).Equal(p.begin) || !p.end.Truncate(time.Hour).Equal(p.end) {
				s.level = store.UsageMinutes
			}
		}
	}
	s.names = slices.Clone(in.Names)
	if s.by == store.UsageByUser && s.hash != nil {
		s.clear = map[string]string{}
		for _, name := range in.Names {
			hashed := s.hash(in.Tenant, name)
			s.names, s.clear[hashed] = append(s.names, hashed), name
		}
	}
	return nil
}

// indexOf is the number of the period of a level that begins at a time, since 1970.
func indexOf(level store.UsageLevel, t time.Time) int64 {
	switch level {
	case store.UsageMinutes:
		return t.Unix() / 60
	case store.UsageHours:
		return t.Unix() / (60 * 60)
	case store.UsageMonths:
		t = t.UTC()
		return int64(t.Year()-firstUsageYear)*12 + int64(t.Month()) - 1
	case store.UsageDays:
	}
	return store.DayOf(t)
}

// look finds out what there is, and which names have a row of their own.
func (s *usageScan) look(v *store.View) error {
	span, err := v.UsageSpan(usagePass)
	if err != nil {
		return err
	}
	s.since, s.collected = spanTimes(&span)
	s.kept = keptFrom(&span.UsageState, s.level)
	if s.level != store.UsageMinutes {
		// What was read is perhaps not computed yet.
		waits, err := v.UsageWaiting()
		if err != nil {
			return err
		}
		if computed := waits.Add(-rollLag).Truncate(time.Minute); !waits.IsZero() && computed.Before(s.collected) {
			s.collected = computed
		}
	}
	first, last := s.periods[0], s.periods[len(s.periods)-1]
	if s.level == store.UsageMinutes && !s.aligned && !s.since.IsZero() && first.begin.Before(s.kept) {
		return invalid("zone", "its days do not begin on a full hour of UTC, and of what was before %s only hours are kept: ask for hours, or for UTC", s.kept.Format(time.RFC3339))
	}
	if s.in.Top == 0 {
		return nil
	}
	s.top, err = v.TopUsage(s.query(first.begin, last.end, nil), s.in.Top)
	if s.top == nil {
		s.top = []string{}
	}
	return err
}

// spanTimes says since when and up to when counts were collected, zero for never.
func spanTimes(span *store.UsageSpan) (since, collected time.Time) {
	if span.Began == 0 {
		return time.Time{}, time.Time{}
	}
	return time.Unix(span.Began*60, 0).UTC(), time.Unix(span.Collected*60, 0).UTC()
}

// keptFrom is from when on a level is kept.
func keptFrom(state *store.UsageState, level store.UsageLevel) time.Time {
	switch level {
	case store.UsageMinutes:
		return time.Unix(state.MinutesFrom*secondsOfDay, 0).UTC()
	case store.UsageHours:
		return time.Unix(state.HoursFrom*secondsOfDay, 0).UTC()
	case store.UsageDays, store.UsageMonths:
	}
	return time.Date(firstUsageYear, 1+time.Month(state.DaysFrom), 1, 0, 0, 0, 0, time.UTC)
}

const secondsOfDay = 24 * 60 * 60

const (
	// usagePass is the pass that says how far counts are collected: the collector notes the last minute of which it has read everything.
	usagePass = "told"
	// rollLag is how long after the end of a minute it is computed at most what comes of it, after it was read in time.
	rollLag = 2 * time.Minute
)

// query asks for the rows of a time, without what is forgotten.
func (s *usageScan) query(from, to time.Time, after *store.UsagePlace) *store.UsageQuery {
	q := &store.UsageQuery{
		Tenant: s.in.Tenant, Level: s.level, By: s.by, From: indexOf(s.level, from), To: indexOf(s.level, to), Top: s.top, After: after,
	}
	q.From = max(q.From, indexOf(s.level, s.kept))
	if len(s.names) > 0 {
		q.Names = s.names
	}
	return q
}

// fits returns an error if there are more rows than that.
func (s *usageScan) fits(v *store.View, most int) error {
	rows := len(s.periods)
	for _, p := range s.stretches(0) {
		q := s.query(p.begin, p.end, nil)
		q.Whole = !s.aligned
		n, err := v.CountUsage(q, most+1)
		if err != nil {
			return err
		}
		if rows += n; rows > most {
			do := "a shorter range, the names that you need, or the largest of them (top)"
			if coarser := usageWindows[s.in.Window].coarser; coarser != "" {
				do = "the window " + string(coarser) + ", " + do
			}
			if s.in.Tenant == "" {
				do = "a shorter range, or a page at a time"
			}
			return invalid("from", "it comes to more than %d rows: ask for %s", most, do)
		}
	}
	return nil
}

// stretches are what is asked for at once from a period on: everything, or period by period.
func (s *usageScan) stretches(from int) []usagePeriod {
	if s.aligned && from < len(s.periods) {
		return []usagePeriod{{s.periods[from].begin, s.periods[len(s.periods)-1].end}}
	}
	return s.periods[from:]
}

// page reads at most n rows after a place, and returns the place of the last one if there are more.
func (s *usageScan) page(v *store.View, after *usagePlace, n int) (*UsageSeries, *usagePlace, error) {
	first, last := s.periods[0], s.periods[len(s.periods)-1]
	page := &UsageSeries{From: first.begin, To: last.end, Since: s.since, Kept: s.kept, Collected: s.collected, Counts: s.counts}
	from := 0
	if after != nil {
		from, _ = slices.BinarySearchFunc(s.periods, after.Begin, func(p usagePeriod, begin int64) int { return int(p.begin.Unix() - begin) })
	}
	for i, stretch := range s.stretches(from) {
		var place *store.UsagePlace
		if i == 0 && from < len(s.periods) && after != nil && s.periods[from].begin.Unix() == after.Begin {
			place = &store.UsagePlace{At: indexOf(s.level, stretch.begin), Tenant: string(after.Tenant), Grade: after.Grade, Name: string(after.Name)}
		}
		// One more says that there is another page.
		found, err := v.FindUsage(s.whole(stretch, place), n+1-len(page.Rows))
		if err != nil {
			return nil, nil, err
		}
		in := s.periods[from : from+1]
		if s.aligned {
			in = s.periods[from:]
		}
		s.add(page, in, found, place != nil, n+1)
		if from++; len(page.Rows) > n {
			break
		}
	}
	if len(page.Rows) <= n {
		return page, nil, nil
	}
	page.Rows = page.Rows[:n]
	end := &page.Rows[n-1]
	next := &usagePlace{Begin: end.Begin.Unix(), Tenant: []byte(end.tenant), Name: []byte(end.name)}
	if s.by.Charged() {
		next.Grade = end.Grade.String()
	}
	page.Next = encodePlace(next)
	return page, next, nil
}

// whole asks for a stretch.
func (s *usageScan) whole(stretch usagePeriod, after *store.UsagePlace) *store.UsageQuery {
	q := s.query(stretch.begin, stretch.end, after)
	q.Whole = !s.aligned
	return q
}

// add adds the rows of some periods, up to so many in all, with one of zeros for each period that has none. Where the first period goes on from the
// page before it has had one.
func (s *usageScan) add(page *UsageSeries, periods []usagePeriod, found []store.UsageRow, goesOn bool, most int) {
	for i, p := range periods {
		at := indexOf(s.level, p.begin)
		rows := 0
		for len(found) > 0 && (!s.aligned || found[0].At == at) && len(page.Rows) < most {
			page.Rows = append(page.Rows, s.row(p, &found[0]))
			found = found[1:]
			rows++
		}
		if len(page.Rows) == most {
			return
		}
		if rows == 0 && (!goesOn || i > 0) {
			page.Rows = append(page.Rows, s.row(p, nil))
		}
	}
}

// row tells a row, nil for zeros.
func (s *usageScan) row(p usagePeriod, found *store.UsageRow) UsageRow {
	r := UsageRow{Begin: p.begin, End: p.end, Open: p.end.After(s.collected), Known: s.known(p, found != nil), Tenant: s.in.Tenant, Grade: usage.Instance}
	if s.by.Charged() {
		r.Grade = usage.Exact
	}
	if found == nil {
		if len(s.in.Names) == 1 {
			r.Name = s.in.Names[0]
		}
		return r
	}
	r.tenant, r.name = found.Tenant, found.Name
	r.Tenant, r.Name = visible(found.Tenant, len(found.Tenant)), visible(found.Name, len(found.Name))
	if asked, ok := s.clear[found.Name]; ok {
		// Who asks knows it.
		r.Name = asked
	}
	if found.Grade == usage.Local.String() {
		r.Grade = usage.Local
	}
	r.Charged, r.GivenBack, r.Calls = found.Charged, found.GivenBack, found.Calls
	r.Admitted, r.Refused, r.WouldRefuse, r.Points = found.Admitted, found.Refused, found.WouldRefuse, found.Points
	return r
}

// known says how much of a period is known. What was counted before anybody collected may be there all the same, in part.
func (s *usageScan) known(p usagePeriod, counted bool) UsageKnown {
	from := s.since
	if s.kept.After(from) {
		from = s.kept
	}
	switch {
	case s.since.IsZero() || !p.end.After(from):
		if counted {
			return KnownPart
		}
		return KnownNone
	case p.begin.Before(from):
		return KnownPart
	}
	return KnownAll
}
