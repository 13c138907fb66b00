package control

import (
	"slices"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
)

// usageScan reads rows of a question, one page after the other.
type usageScan struct {
	in  *UsageSeriesInput
	by  store.UsageBy
	now time.Time
	// counts is what is counted of the tenant.
	counts string
	// periods are those of the answer. Where they are all of one length, per says of how many periods of the level each has the sum. Otherwise it is 0.
	periods []usagePeriod
	level   store.UsageLevel
	per     int64

	// What is looked up first: what there is, and what nobody has collected.
	since, kept, collected time.Time
	gaps                   []usagePeriod
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
		last := beginOf(in.Window, to.Add(-time.Nanosecond), zone)
		from = step(in.Window, last, 1-usageWindows[in.Window].usual, zone)
	}
	for _, t := range [...]time.Time{from, to} {
		if year := t.UTC().Year(); year < firstUsageYear || year > lastUsageYear {
			return invalid("from", "years from %d to %d fit", firstUsageYear, lastUsageYear)
		}
	}
	if !from.Before(to) {
		return invalid("to", "it is not after from")
	}
	if s.periods, err = periodsOf(in.Window, from, to, zone); err != nil {
		return err
	}
	const hoursOfDay = 24
	s.level = store.UsageHours
	switch {
	case in.Window == usage.Minute:
		s.level, s.per = store.UsageMinutes, 1
	case in.Window == usage.Hour:
		s.per = 1
	case in.Window == usage.Day && zone == time.UTC:
		s.per = hoursOfDay
	}
	for _, p := range s.periods {
		if s.level == store.UsageHours && (!p.begin.Truncate(time.Hour).Equal(p.begin) || !p.end.Truncate(time.Hour).Equal(p.end)) {
			return invalid("zone", "its days do not begin on a full hour of UTC: ask for hours, or for UTC")
		}
	}
	return nil
}

// lengths are how long the periods of the levels are, in seconds.
var lengths = [...]int64{store.UsageMinutes: 60, store.UsageHours: 60 * 60}

// indexOf is the number of the period of a level that begins at a time, since 1970.
func (s *usageScan) indexOf(t time.Time) int64 { return t.Unix() / lengths[s.level] }

// look finds out what there is.
func (s *usageScan) look(v *store.View) error {
	pass, err := v.UsagePass()
	if err != nil {
		return err
	}
	state, err := v.UsageState()
	if err != nil {
		return err
	}
	at := func(n, length int64) time.Time { return time.Unix(n*length, 0).UTC() }
	if pass.Collected > 0 {
		s.since, s.collected = at(pass.Began, lengths[store.UsageMinutes]), at(pass.Collected, lengths[store.UsageMinutes])
	}
	s.kept = at([...]int64{store.UsageMinutes: state.MinutesFrom, store.UsageHours: state.HoursFrom}[s.level], lengths[s.level])
	first, last := s.periods[0].begin.Unix(), s.periods[len(s.periods)-1].end.Unix()
	gaps, err := v.UsageGaps(first/lengths[store.UsageMinutes], last/lengths[store.UsageMinutes])
	for _, g := range gaps {
		s.gaps = append(s.gaps, usagePeriod{at(g.First, lengths[store.UsageMinutes]), at(g.Until, lengths[store.UsageMinutes])})
	}
	return err
}

// query asks for the rows of a time, without what is forgotten.
func (s *usageScan) query(stretch usagePeriod, after *store.UsagePlace) *store.UsageQuery {
	q := &store.UsageQuery{
		Tenant: s.in.Tenant, Level: s.level, By: s.by, From: s.indexOf(stretch.begin), To: s.indexOf(stretch.end), Per: s.per, After: after,
	}
	q.From = max(q.From, s.indexOf(s.kept))
	if len(s.in.Names) > 0 {
		q.Names = s.in.Names
	}
	return q
}

// fits returns an error if there are more rows than that.
func (s *usageScan) fits(v *store.View, most int) error {
	rows := len(s.periods)
	for _, p := range s.stretches(0) {
		n, err := v.CountUsage(s.query(p, nil), most+1)
		if err != nil {
			return err
		}
		if rows += n; rows > most {
			do := "a shorter range, or the names that you need"
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
	if s.per > 0 && from < len(s.periods) {
		return []usagePeriod{{s.periods[from].begin, s.periods[len(s.periods)-1].end}}
	}
	return s.periods[from:]
}

// page reads at most n rows after a place, and returns the place of the last one if there are more.
func (s *usageScan) page(v *store.View, after *usagePlace, n int) (*usage.Series, *usagePlace, error) {
	first, last := s.periods[0], s.periods[len(s.periods)-1]
	page := &usage.Series{
		Tenant: s.in.Tenant, Window: s.in.Window, By: s.in.By, Zone: s.in.Zone, From: first.begin, To: last.end,
		Since: s.since, Kept: s.kept, Collected: s.collected, Counts: s.counts, Rows: []usage.Row{},
	}
	var places []usagePlace
	from := 0
	if after != nil {
		from, _ = slices.BinarySearchFunc(s.periods, after.Begin, func(p usagePeriod, begin int64) int { return int(p.begin.Unix() - begin) })
	}
	for i, stretch := range s.stretches(from) {
		var place *store.UsagePlace
		if i == 0 && from < len(s.periods) && after != nil && s.periods[from].begin.Unix() == after.Begin {
			place = &store.UsagePlace{At: s.quotient(stretch), Tenant: string(after.Tenant), Grade: after.Grade, Name: string(after.Name)}
		}
		// One more says that there is another page.
		found, err := v.FindUsage(s.query(stretch, place), n+1-len(page.Rows))
		if err != nil {
			return nil, nil, err
		}
		in := s.periods[from : from+1]
		if s.per > 0 {
			in = s.periods[from:]
		}
		places = s.add(page, places, in, found, place != nil, n+1)
		if from++; len(page.Rows) > n {
			break
		}
	}
	if len(page.Rows) <= n {
		return page, nil, nil
	}
	page.Rows = page.Rows[:n]
	next := &places[n-1]
	page.Next = encodePlace(next)
	return page, next, nil
}

// quotient is that of the rows of a period.
func (s *usageScan) quotient(p usagePeriod) int64 {
	if s.per == 0 {
		return 0
	}
	return s.indexOf(p.begin) / s.per
}

// add adds the rows of some periods and their places, up to so many in all, with one of zeros for each period that has none. Where the first period goes
// on from the page before it has had one.
func (s *usageScan) add(page *usage.Series, places []usagePlace, periods []usagePeriod, found []store.UsageRow, goesOn bool, most int) []usagePlace {
	for i, p := range periods {
		at := s.quotient(p)
		rows := 0
		for len(found) > 0 && found[0].At == at && len(page.Rows) < most {
			r := &found[0]
			page.Rows = append(page.Rows, s.row(p, r))
			places = append(places, usagePlace{Begin: p.begin.Unix(), Tenant: []byte(r.Tenant), Grade: r.Grade, Name: []byte(r.Name)})
			found = found[1:]
			rows++
		}
		if len(page.Rows) == most {
			return places
		}
		if rows == 0 && (!goesOn || i > 0) {
			page.Rows = append(page.Rows, s.row(p, nil))
			places = append(places, usagePlace{Begin: p.begin.Unix()})
		}
	}
	return places
}

// row tells a row, nil for zeros.
func (s *usageScan) row(p usagePeriod, found *store.UsageRow) usage.Row {
	r := usage.Row{Begin: p.begin, End: p.end, Open: p.end.After(s.collected), Known: s.known(p, found != nil), Grade: usage.Exact}
	if !s.in.By.Charged() {
		r.Grade = usage.Instance
	}
	if found == nil {
		if len(s.in.Names) == 1 {
			r.Name = s.in.Names[0]
		}
		found = &store.UsageRow{}
	} else {
		r.Name = visible(found.Name, len(found.Name))
		if s.in.Tenant == "" {
			r.Tenant = visible(found.Tenant, len(found.Tenant))
		}
		if found.Grade != "" {
			r.Grade = usage.Grade(found.Grade)
		}
	}
	if r.Known == usage.KnownNone {
		return r
	}
	if !s.in.By.Charged() {
		r.Refused = &found.Refused
		return r
	}
	net := found.Charged - found.GivenBack
	r.Charged, r.GivenBack, r.Net, r.Calls = &found.Charged, &found.GivenBack, &net, &found.Calls
	return r
}

// known says how much of a period is known. What was counted before anybody collected may be there all the same, in part.
func (s *usageScan) known(p usagePeriod, counted bool) usage.Known {
	from := s.since
	if s.kept.After(from) {
		from = s.kept
	}
	switch {
	case s.since.IsZero() || !p.end.After(from):
		if counted {
			return usage.KnownPart
		}
		return usage.KnownNone
	case p.begin.Before(from) || slices.ContainsFunc(s.gaps, func(gap usagePeriod) bool { return gap.begin.Before(p.end) && p.begin.Before(gap.end) }):
		return usage.KnownPart
	}
	return usage.KnownAll
}
