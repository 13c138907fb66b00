package control

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
)

// UsageBy is what usage is told by: there is a row for each such thing in each period.
type UsageBy string

// What usage is told by. Units and root fields were counted in the step that charged them; the others were counted by instances.
const (
	// UsageByTenant has one row for the whole tenant: what was admitted and refused. It is the default.
	UsageByTenant UsageBy = "tenant"
	// UsageByOperation has the root fields of operations, UsageByTeam and UsageByUser who asked, and UsageByLimit what refused.
	UsageByOperation UsageBy = "operation"
	UsageByTeam      UsageBy = "team"
	UsageByUser      UsageBy = "user"
	UsageByLimit     UsageBy = "limit"
	// UsageByUnit has points, requests and all other units that were charged, and UsageByField root fields.
	UsageByUnit  UsageBy = "unit"
	UsageByField UsageBy = "field"
)

var usageBys = map[UsageBy]store.UsageBy{
	"": store.UsageByTenant, UsageByTenant: store.UsageByTenant, UsageByOperation: store.UsageByOperation, UsageByTeam: store.UsageByTeam,
	UsageByUser: store.UsageByUser, UsageByLimit: store.UsageByLimit, UsageByUnit: store.UsageByUnit, UsageByField: store.UsageByField,
}

// Charged reports whether it was counted in the step that charged it: rows have what was charged then, and otherwise what was decided.
func (b UsageBy) Charged() bool { return usageBys[b].Charged() }

const (
	// MaxUsagePage is how many rows a page of usage has at most.
	MaxUsagePage = store.MaxPage
	// MaxUsageExport is how many rows an export has at most.
	MaxUsageExport = 100_000
	// maxUsageNames is how many names are asked for at once, and maxUsageTop how many have a row of their own.
	maxUsageNames = 20
	maxUsageTop   = 100
)

// UsageSeriesInput says which usage is asked for. The zero value of a field but Tenant and N is a default.
type UsageSeriesInput struct {
	// Tenant is whose usage it is. Empty is that of all tenants: by day and month of UTC, and by tenant and unit.
	Tenant string
	// From and To bound a time: all periods that it touches are told. A zero To is now, and a zero From some periods before it: 60 minutes,
	// 24 hours, 30 days, or 12 months.
	From, To time.Time
	// Window is how long periods are. Empty is [UsageHour].
	Window UsageWindow
	// Zone is the time zone of days and months, as the database of time zones calls it. Empty is UTC.
	Zone string
	By   UsageBy
	// Names leaves only those, at most 20. A user is found by the name, and by the hash that instances write for it. Empty leaves all.
	Names []string
	// Top gives so many names a row of their own in each period, at most 100: those of most points in the whole range, and where there are
	// none of most refusals. What all others have is added up under the name *. Zero gives each its own.
	Top int
	// After is the Next of the page before, and N how many rows there are on a page.
	After string
	N     int
}

// UsageSeries is a page of usage.
type UsageSeries struct {
	// From is when the first period of the range began, and To when the last one ends.
	From, To time.Time
	// Since is when counts were collected for the first time. It is zero if they never were.
	Since time.Time
	// Kept is from when on there are counts by this window. What is before was forgotten, and stays in coarser windows.
	Kept time.Time
	// Collected is up to when counts have come from the instances.
	Collected time.Time
	// Counts is what the policy of now says that is counted of the tenant in the step that charges it: none, totals or fields. It is empty where
	// nobody knows, or where it has nothing to do with what is asked for.
	Counts string
	Rows   []UsageRow
	// Next is the After of the next page. It is empty at the end.
	Next string
}

// UsageKnown says how much of a period is known.
type UsageKnown string

// How much is known. Where something is not, nobody has collected counts at that time, or they were forgotten.
const (
	KnownAll  UsageKnown = "all"
	KnownPart UsageKnown = "part"
	KnownNone UsageKnown = "none"
)

// UsageRow is what a name has in a period. A period in which nothing was counted has one row of zeros, without a name unless one is asked for; and
// a name without a row in a period that has others has nothing in it.
type UsageRow struct {
	Begin, End time.Time
	// Open says that the period is not over, or not everything collected that was counted in it: the numbers may still grow.
	Open bool
	// Known says whether the numbers are all that was counted. If it is [KnownNone], zeros say nothing.
	Known  UsageKnown
	Tenant string
	Name   string
	// Grade says how much the numbers are to be believed.
	Grade usage.Grade
	// Charged, GivenBack and Calls are there if [UsageBy.Charged] says so, and otherwise the others. Calls are those of root fields.
	Charged, GivenBack, Calls              int64
	Admitted, Refused, WouldRefuse, Points int64

	// tenant and name are the bytes that were counted.
	tenant, name string
}

// Net is what was charged and not given back. It may be below zero in a period in which what was charged before was given back.
func (r *UsageRow) Net() int64 { return r.Charged - r.GivenBack }

// UsageSeries returns a page of what was counted: [access.ReadUsage], of a tenant or of all. It is read at once.
func (c *Control) UsageSeries(ctx context.Context, actor access.Actor, in UsageSeriesInput) (*UsageSeries, error) {
	s, err := c.usageScan(ctx, actor, &in)
	if err != nil {
		return nil, err
	}
	if in.N < 1 || in.N > MaxUsagePage {
		return nil, invalid("first", "1 to %d fits", MaxUsagePage)
	}
	after, err := usagePlaceOf(in.After)
	if err != nil {
		return nil, err
	}
	var page *UsageSeries
	err = c.cfg.Store.Read(ctx, func(v *store.View) (err error) {
		if err = s.look(v); err == nil {
			page, _, err = s.page(v, after, in.N)
		}
		return err
	})
	return page, err
}

// ExportUsage returns all of what was counted, page by page: [access.ReadUsage]. N says nothing. What comes to more than [MaxUsageExport] rows is an
// [InvalidError] before the first page. The function is called in the order of the pages; its error ends the export.
func (c *Control) ExportUsage(ctx context.Context, actor access.Actor, in UsageSeriesInput, write func(*UsageSeries) error) error {
	s, err := c.usageScan(ctx, actor, &in)
	if err != nil {
		return err
	}
	if in.After != "" {
		return invalid("after", "an export has no pages")
	}
	err = c.exporting(ctx, func(v *store.View) error {
		if err := s.look(v); err != nil {
			return err
		}
		return s.fits(v, c.mostExported)
	})
	if err != nil {
		return err
	}
	for after := (*usagePlace)(nil); ; {
		var page *UsageSeries
		err := c.exporting(ctx, func(v *store.View) (err error) {
			page, after, err = s.page(v, after, MaxUsagePage)
			return err
		})
		if err != nil {
			return err
		}
		if err := write(page); err != nil || after == nil {
			return err
		}
	}
}

// exporting reads for an export, of which one reads at a time, but not while its client does: that takes as long as it likes.
func (c *Control) exporting(ctx context.Context, read func(*store.View) error) error {
	leave, err := c.exports.take(ctx)
	if err != nil {
		return err
	}
	defer leave()
	return c.cfg.Store.Read(ctx, read)
}

// usageScan checks who asks, and what for.
func (c *Control) usageScan(ctx context.Context, actor access.Actor, in *UsageSeriesInput) (*usageScan, error) {
	if err := access.Authorize(actor, access.ReadUsage, in.Tenant); err != nil {
		return nil, err
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	s := &usageScan{in: in, by: usageBys[in.By], now: c.now(), hash: c.cfg.HashUser}
	if err := s.plan(); err != nil {
		return nil, err
	}
	if in.Tenant == "" || !s.by.Charged() {
		return s, nil
	}
	counts, err := c.counts(ctx, in.Tenant)
	s.counts = counts
	return s, err
}

// check returns what is wrong with the question by itself.
func (in *UsageSeriesInput) check() error {
	if in.Window == "" {
		in.Window = UsageHour
	}
	_, window := usageWindows[in.Window]
	_, by := usageBys[in.By]
	switch {
	case !window:
		return invalid("window", "it is none of minute, hour, day and month")
	case !by:
		return invalid("by", "it is none of tenant, operation, team, user, limit, unit and field")
	case in.Top < 0 || in.Top > maxUsageTop:
		return invalid("top", "1 to %d fits", maxUsageTop)
	case len(in.Names) > maxUsageNames:
		return invalid("name", "at most %d names are asked for at once", maxUsageNames)
	case in.Top > 0 && len(in.Names) > 0:
		return invalid("top", "it says nothing beside names")
	case in.Zone != "" && in.Zone != "UTC" && in.Window != UsageDay && in.Window != UsageMonth:
		return invalid("zone", "minutes and hours are those of UTC: ask for days or months")
	case in.Tenant == "" && (in.Window == UsageMinute || in.Window == UsageHour):
		return invalid("window", "of all tenants there are days and months: name a tenant, or ask for the window day")
	case in.Tenant == "" && in.By != "" && in.By != UsageByTenant && in.By != UsageByUnit:
		return invalid("by", "of all tenants there is usage by tenant and unit: name a tenant")
	case in.Tenant == "" && in.Zone != "" && in.Zone != "UTC":
		return invalid("zone", "of all tenants there are days and months of UTC: name a tenant")
	}
	if err := checkText("tenant", in.Tenant, store.MaxUsageTenant); err != nil {
		return err
	}
	for _, name := range in.Names {
		if err := checkText("name", name, store.MaxUsageName); err != nil {
			return err
		}
	}
	return nil
}

// counts is what is counted of a tenant by the policy of now, in the word of the policy. It is empty where nobody knows.
func (c *Control) counts(ctx context.Context, tenant string) (word string, _ error) {
	newest, err := c.current(ctx)
	if err != nil || newest.rules() == nil {
		return "", err
	}
	err = c.cfg.Store.Read(ctx, func(v *store.View) error {
		h, err := c.hold(v, newest, &EffectiveInput{Tenant: tenant}, nil)
		word = h.rules.Usage.String()
		return err
	})
	return word, err
}

// usagePlace is a place in the order of rows, as clients bring it back. Names are any bytes.
type usagePlace struct {
	// Begin is that of the period, in seconds since 1970.
	Begin  int64  `json:"b"`
	Tenant []byte `json:"t,omitempty"`
	Grade  string `json:"g,omitempty"`
	Name   []byte `json:"n,omitempty"`
}

// errPlace says that somebody has brought something else back.
var errPlace = errors.New("no place")

// encodePlace writes the place at the end of a page.
func encodePlace(place any) string {
	// It has no value that JSON has not.
	text, _ := json.Marshal(place)
	return base64.RawURLEncoding.EncodeToString(text)
}

// decodePlace reads one.
func decodePlace(text string, into any) error {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if len(text) > maxCursor || err != nil || json.Unmarshal(raw, into) != nil {
		return errPlace
	}
	return nil
}

func usagePlaceOf(text string) (*usagePlace, error) {
	if text == "" {
		return nil, nil
	}
	p := &usagePlace{}
	if decodePlace(text, p) != nil || !slices.Contains([]string{"", usage.Exact.String(), usage.Local.String()}, p.Grade) {
		return nil, invalid("after", "it is not the end of a page of usage")
	}
	return p, nil
}
