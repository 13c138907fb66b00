// Package used shows what tenants have used, as gqlratelimitd has collected it.
package used

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/daemon"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
)

const help = `
Usage: gqlratelimit usage [flags]

Shows what a tenant has used, as gqlratelimitd has collected it: by unit and field what was counted in
the step that charged it, and by limit how many operations the instances have refused. Without -tenant it
shows all tenants, by day or month.

Examples:

    gqlratelimit usage -tenant acme -by unit -window month -last 365d
    gqlratelimit usage -tenant acme -by limit -sum -last 7d
    gqlratelimit usage -by unit -window month -csv > usage.csv
`

// asked is what all of them are asked by.
type asked struct {
	daemon.UsageQuestion

	daemon         daemon.Flags
	from, to, last string
	json           bool
}

// register adds the flags that all of them have.
func (a *asked) register(flags *flag.FlagSet) {
	a.daemon.Register(flags)
	cli.JSONVar(flags, &a.json)
}

// registerTime adds those of a tenant and a time.
func (a *asked) registerTime(flags *flag.FlagSet) {
	flags.StringVar(&a.Tenant, "tenant", "", "`name` of the tenant")
	flags.StringVar(&a.from, "from", "", "a `time` or date, such as 2026-11-01 or 2026-11-01T15:00:00Z; all periods that it touches are shown")
	flags.StringVar(&a.to, "to", "", "a `time` or date, which is not shown any more (default now)")
	flags.StringVar(&a.last, "last", "", "for how `long` before -to, such as 90m, 24h or 7d, in the place of -from")
}

// times reads the time that is asked for.
func (a *asked) times(now time.Time) error {
	zone := time.UTC
	if a.Zone != "" {
		named, err := time.LoadLocation(a.Zone)
		if err != nil || a.Zone == "Local" {
			return cli.Usagef("there is no time zone %q here: say UTC, or a name such as Europe/Berlin", a.Zone)
		}
		zone = named
	}
	var err error
	if a.From, err = timeOf("from", a.from, zone); err != nil {
		return err
	}
	if a.To, err = timeOf("to", a.to, zone); err != nil {
		return err
	}
	if a.last == "" {
		return nil
	}
	if a.from != "" {
		return cli.Usagef("-from and -last say the same thing: leave one out")
	}
	long, err := durationOf(a.last)
	if err != nil {
		return err
	}
	if a.To.IsZero() {
		a.To = now
	}
	a.From = a.To.Add(-long)
	return nil
}

// timeOf reads a time, zero if it is not given.
func timeOf(flag, text string, zone *time.Location) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, form := range []string{time.RFC3339Nano, time.DateOnly, "2006-01-02T15:04"} {
		if at, err := time.ParseInLocation(form, text, zone); err == nil {
			return at, nil
		}
	}
	return time.Time{}, cli.Usagef("-%s %q is no time: say 2026-11-01, 2026-11-01T15:00 or 2026-11-01T15:00:00Z", flag, text)
}

// durationOf reads a duration, which may be in days.
func durationOf(text string) (time.Duration, error) {
	long, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		// Ten thousand years find no room in a duration.
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16)
		long = time.Duration(n) * 24 * time.Hour
	}
	if err != nil || long <= 0 {
		return 0, cli.Usagef("-last %q is no time: say 90m, 24h or 7d", text)
	}
	return long, nil
}

// Run runs the sub-command usage.
func Run(c cli.Console, args []string) error {
	a := &asked{}
	flags := c.NewFlags("usage", help)
	a.register(flags)
	a.registerTime(flags)
	flags.StringVar(&a.By, "by", "", "`what` there is a row for: unit, field or limit (default unit)")
	flags.StringVar(&a.Window, "window", "", "how long `periods` are: minute, hour, day or month (default hour, and day without -tenant)")
	flags.StringVar(&a.Zone, "zone", "", "time `zone` of days and months, such as Europe/Berlin (default UTC)")
	flags.StringVar(&a.Name, "name", "", "only the unit, field or limit of this `name`")
	sum := flags.Bool("sum", false, "add up all periods")
	asCSV := flags.Bool("csv", false, "write a table for a spreadsheet")
	if err := cli.ParseAlone(flags, args); err != nil {
		return err
	}
	switch {
	case *asCSV && (a.json || *sum):
		return cli.Usagef("-csv has every period: leave -json and -sum out")
	case a.Tenant == "" && a.Window == "":
		a.Window = "day"
	}
	if err := a.times(time.Now()); err != nil {
		return err
	}
	client, err := a.daemon.Open(c)
	if err != nil {
		return err
	}
	defer client.Close()
	if *asCSV {
		table, err := client.UsageCSV(&a.UsageQuestion)
		if err == nil {
			_, err = c.Stdout.Write(table)
		}
		return err
	}
	told, err := client.Usage(&a.UsageQuestion)
	if err != nil {
		return err
	}
	if *sum {
		told.Rows = summed(told.Rows)
	}
	if a.json {
		return c.WriteJSON(struct {
			Version int `json:"version"`
			*usage.Series
		}{cli.FormatVersion, told})
	}
	return writeUsage(c, told, *sum)
}

// note writes a line below a table.
func note(c cli.Console, format string, args ...any) {
	fmt.Fprintln(c.Stdout, cli.Plain(fmt.Sprintf(format, args...)))
}
