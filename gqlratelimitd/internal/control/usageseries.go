package control

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
)

// usageBys are what usage is told by, and what the database calls it.
var usageBys = map[usage.By]store.UsageBy{usage.ByUnit: store.UsageByUnit, usage.ByField: store.UsageByField, usage.ByLimit: store.UsageByLimit}

const (
	// MaxUsagePage is how many rows a page of usage has at most.
	MaxUsagePage = store.MaxPage
	// MaxUsageExport is how many rows an export has at most.
	MaxUsageExport = 100_000
	// maxUsageNames is how many names are asked for at once.
	maxUsageNames = 20
)

// UsageSeriesInput says which usage is asked for. The zero value of a field but Tenant and N is a default.
type UsageSeriesInput struct {
	// Tenant is whose usage it is. Empty is that of all tenants: by day and month of UTC, and by unit and limit.
	Tenant string
	// From and To bound a time: all periods that it touches are told. A zero To is now, and a zero From some periods before it: 60 minutes,
	// 24 hours, 30 days, or 12 months.
	From, To time.Time
	// Window is how long periods are. Empty is usage.Hour.
	Window usage.Window
	// Zone is the time zone of days and months, as the database of time zones calls it. Empty is UTC.
	Zone string
	// By is what there is a row for. Empty is usage.ByUnit.
	By usage.By
	// Names leaves only those, at most 20. Empty leaves all.
	Names []string
	// After is the Next of the page before, and N how many rows there are on a page.
	After string
	N     int
}

// UsageSeries returns a page of what was counted: [access.ReadUsage], of a tenant or of all. It is read at once.
func (c *Control) UsageSeries(ctx context.Context, actor access.Actor, in UsageSeriesInput) (*usage.Series, error) {
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
	var page *usage.Series
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
func (c *Control) ExportUsage(ctx context.Context, actor access.Actor, in UsageSeriesInput, write func(*usage.Series) error) error {
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
		var page *usage.Series
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
	s := &usageScan{in: in, by: usageBys[in.By], now: c.now()}
	if err := s.plan(); err != nil {
		return nil, err
	}
	if in.Tenant == "" || !in.By.Charged() {
		return s, nil
	}
	counts, err := c.counts(ctx, in.Tenant)
	s.counts = counts
	return s, err
}

// check returns what is wrong with the question by itself, and puts in what is not said.
func (in *UsageSeriesInput) check() error {
	in.Window, in.By, in.Zone = cmp.Or(in.Window, usage.Hour), cmp.Or(in.By, usage.ByUnit), cmp.Or(in.Zone, "UTC")
	_, window := usageWindows[in.Window]
	_, by := usageBys[in.By]
	days := in.Window == usage.Day || in.Window == usage.Month
	switch {
	case !window:
		return invalid("window", "it is none of minute, hour, day and month")
	case !by:
		return invalid("by", "it is none of unit, field and limit")
	case in.By == usage.ByLimit && in.Window == usage.Minute:
		return invalid("window", "refusals are counted by the hour: ask for the window hour")
	case len(in.Names) > maxUsageNames:
		return invalid("name", "at most %d names are asked for at once", maxUsageNames)
	case in.Zone != "UTC" && !days:
		return invalid("zone", "minutes and hours are those of UTC: ask for days or months")
	case in.Tenant == "" && !days:
		return invalid("window", "of all tenants there are days and months: name a tenant, or ask for the window day")
	case in.Tenant == "" && in.By == usage.ByField:
		return invalid("by", "of all tenants there is usage by unit and limit: name a tenant")
	case in.Tenant == "" && in.Zone != "UTC":
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

func usagePlaceOf(text string) (*usagePlace, error) {
	if text == "" {
		return nil, nil
	}
	p := &usagePlace{}
	if decodePlace(text, p) != nil || !slices.Contains([]string{"", string(usage.Exact), string(usage.Local)}, p.Grade) {
		return nil, invalid("after", "it is not the end of a page of usage")
	}
	return p, nil
}
