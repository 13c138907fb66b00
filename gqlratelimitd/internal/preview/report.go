package preview

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/digest/sample"
	"github.com/gqlgen-ratelimit/ratelimit/tiers/simulate"
)

// Shares of tenants and users.
const (
	// HaltAbove is the share of tenants or users newly refused above which a roll-out halts.
	HaltAbove = 0.05
	// RemarkBelow is the share below which a change is so small that it may not do what it is for.
	RemarkBelow = 0.001
)

// Report is what a policy would newly refuse.
type Report struct {
	// From and To are the times of the first and the last operation that was recorded, zero if none was.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Chunks is how many were read, and Unreadable how many could not be.
	Chunks     int `json:"chunks"`
	Unreadable int `json:"unreadable,omitempty"`
	// Share is which share of all tenants the records are about, 0 to 1, drawn by a hash of their names: each in it with everything
	// that it has asked for. LeftOut is how many tenants are not judged because one of them has asked for more than fits.
	Share   float64 `json:"share"`
	LeftOut int     `json:"leftOut,omitempty"`
	// Mixed is how many operations are judged by the mean price of several, and without their users, or by a part of their root fields.
	Mixed int64 `json:"mixed,omitempty"`
	// Total is about all tenants that were judged. Its name and tier are empty.
	Total Row `json:"total"`
	// Tenants and Users are how many of them are newly refused at least once.
	Tenants Group `json:"tenants"`
	Users   Group `json:"users"`
	// LargestShare is the largest part of what one tenant has asked for that is newly refused, 0 to 1.
	LargestShare float64 `json:"largestShare"`
	// Rows are the tenants that either policy refuses something, most newly refused first, then by name. Unlisted is how many more
	// there are.
	Rows     []Row `json:"rows,omitempty"`
	Unlisted int   `json:"unlisted,omitempty"`
	// NotJudged are limits of the policies of which records do not say what was asked of them. They refuse nothing here.
	NotJudged []string `json:"notJudged,omitempty"`
}

// Row is what a tenant has asked for, and how much of it is refused.
type Row struct {
	Tenant string `json:"tenant,omitempty"`
	// Tier is that of the last operation under the policy that may follow.
	Tier       string `json:"tier,omitempty"`
	Operations int64  `json:"operations"`
	// Live is how many were refused when they ran, Before how many the policy of now refuses, and After how many the other one.
	// Live and Before differ where budgets were not full at first.
	Live   int64 `json:"live,omitempty"`
	Before int64 `json:"before,omitempty"`
	After  int64 `json:"after,omitempty"`
	// NewlyRefused is how many the other one refuses and that of now does not.
	NewlyRefused int64 `json:"newlyRefused,omitempty"`
	// By says what newly refuses how many, most first, at most eight.
	By []Cause `json:"by,omitempty"`
}

// Cause is what newly refuses.
type Cause struct {
	// Level says whose limit it is, and Owner which operation rule's. Both are empty for what is no limit: blocked and maxCost.
	Level string `json:"level,omitempty"`
	Owner string `json:"owner,omitempty"`
	Limit string `json:"limit"`
	N     int64  `json:"n"`
}

// Group says how many of those who were seen are newly refused at least once.
type Group struct {
	Seen         int `json:"seen"`
	NewlyRefused int `json:"newlyRefused"`
	// Share is the part of those seen, and Low and High are between which that of all of them lies with a probability of 95 %.
	// Where everybody is recorded they are Share.
	Share float64 `json:"share"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Halts says that a roll-out of the policy halts: more tenants or users are newly refused than [HaltAbove].
func (r *Report) Halts() bool { return r.Tenants.Share > HaltAbove || r.Users.Share > HaltAbove }

// Remark is what is to be said about the shares, empty if nothing is.
func (r *Report) Remark() string {
	switch {
	case r.Tenants.Seen == 0:
		return "nothing was recorded: it is not known who would be refused"
	case r.Halts():
		return fmt.Sprintf("more than %g %% of tenants or users are newly refused: a roll-out halts", 100*HaltAbove)
	case r.Tenants.High > HaltAbove || r.Users.High > HaltAbove:
		return fmt.Sprintf("the sample is too small to rule out that more than %g %% are newly refused", 100*HaltAbove)
	case r.Tenants.Share < RemarkBelow && r.Users.Share < RemarkBelow:
		return fmt.Sprintf("less than %g %% of tenants and users are newly refused: is that what the change is for?", 100*RemarkBelow)
	default:
		return ""
	}
}

func (c *count) report(s *sample.Sample, cfg *Config) *Report {
	r := &Report{
		From: s.From, To: s.To, Chunks: s.Chunks, Unreadable: s.Unreadable, LeftOut: s.LeftOut, Mixed: c.mixed, Total: c.total,
		Share: s.Share(), NotJudged: simulate.NotJudged(s.Recorded(), c.units, cfg.Before, cfg.After),
	}
	by := make(map[Cause]int64)
	for _, t := range c.tenants {
		r.Tenants.Seen++
		r.Tenants.NewlyRefused += int(min(1, t.NewlyRefused))
		r.LargestShare = max(r.LargestShare, float64(t.NewlyRefused)/float64(t.Operations))
		for cause, n := range t.by {
			by[cause] += n
		}
		if t.Before > 0 || t.After > 0 {
			t.By = most(t.by)
			r.Rows = append(r.Rows, t.Row)
		}
	}
	for _, newly := range c.users {
		r.Users.Seen++
		r.Users.NewlyRefused += int(number(newly))
	}
	r.Total.By = most(by)
	r.Tenants.finish(s.Whole())
	r.Users.finish(s.Whole())
	slices.SortFunc(r.Rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.NewlyRefused, a.NewlyRefused), cmp.Compare(a.Tenant, b.Tenant))
	})
	if len(r.Rows) > cfg.Rows {
		r.Unlisted, r.Rows = len(r.Rows)-cfg.Rows, slices.Clone(r.Rows[:cfg.Rows])
	}
	return r
}

// most returns the causes that refuse most.
func most(by map[Cause]int64) []Cause {
	const shown = 8
	all := slices.Collect(maps.Keys(by))
	for i := range all {
		all[i].N = by[all[i]]
	}
	slices.SortFunc(all, func(a, b Cause) int {
		return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Level, b.Level), cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Limit, b.Limit))
	})
	return all[:min(shown, len(all))]
}

// finish computes the shares: the interval is that of Wilson (Probable Inference, the Law of Succession, and Statistical Inference, 1927).
func (g *Group) finish(whole bool) {
	if g.Seen == 0 {
		if !whole {
			g.High = 1
		}
		return
	}
	n := float64(g.Seen)
	g.Share = float64(g.NewlyRefused) / n
	if whole {
		g.Low, g.High = g.Share, g.Share
		return
	}
	const z = 1.96
	middle := (g.Share + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(g.Share*(1-g.Share)/n+z*z/(4*n*n))
	g.Low, g.High = max(0, middle-half), min(1, middle+half)
}

// String returns the table of [Report.WriteTable].
func (r *Report) String() string {
	var b strings.Builder
	// A strings.Builder takes everything.
	_ = r.WriteTable(&b)
	return b.String()
}

// WriteTable writes a line for each tenant and one for all, and then how sure it is. The error is that of the writer.
func (r *Report) WriteTable(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	// The writer of the table keeps the first error until Flush.
	_, _ = fmt.Fprintln(table, "TENANT\tTIER\tOPERATIONS\tREFUSED NOW\tREFUSED THEN\tNEWLY\tBY")
	for i := range r.Rows {
		r.Rows[i].write(table, cell(r.Rows[i].Tenant))
	}
	r.Total.write(table, "total")
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "newly refused: %s of tenants, %s of users; recorded: %.3g %% of tenants\n", r.Tenants.words(), r.Users.words(), 100*r.Share)
	if remark := r.Remark(); err == nil && remark != "" {
		_, err = fmt.Fprintln(w, remark)
	}
	if err == nil && len(r.NotJudged) > 0 {
		_, err = fmt.Fprintln(w, "not judged:", strings.Join(r.NotJudged, ", "))
	}
	return err
}

func (g *Group) words() string {
	return fmt.Sprintf("%.2f %% (%.2f to %.2f, %d of %d)", 100*g.Share, 100*g.Low, 100*g.High, g.NewlyRefused, g.Seen)
}

func (r *Row) write(w io.Writer, name string) {
	causes := make([]string, len(r.By))
	for i, c := range r.By {
		switch {
		case c.Owner != "":
			causes[i] = c.Owner + "/" + c.Limit
		case c.Level != "" && c.Level != "tenant":
			causes[i] = c.Level + "/" + c.Limit
		default:
			causes[i] = c.Limit
		}
		causes[i] += " " + strconv.FormatInt(c.N, 10)
	}
	_, _ = fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%s\n", name, cmp.Or(r.Tier, "-"), r.Operations, r.Before, r.After, r.NewlyRefused,
		cmp.Or(strings.Join(causes, ", "), "-"))
}

// cell returns a name that may hold any bytes in a form that keeps the table whole.
func cell(name string) string {
	const longest = 64
	shown := name
	if runes := []rune(name); len(runes) > longest {
		shown = string(runes[:longest-1]) + "…"
	}
	if quoted := strconv.Quote(shown); quoted != `"`+name+`"` {
		return quoted
	}
	return name
}
