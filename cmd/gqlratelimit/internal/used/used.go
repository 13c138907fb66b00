// Package used shows what tenants have used, as gqlratelimitd has collected it.
package used

import (
	"io"
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
    gqlratelimit usage -tenant acme -by limit -last 7d
`

// Run runs the sub-command usage.
func Run(c cli.Console, args []string) error {
	var (
		asks   daemon.Flags
		q      daemon.UsageQuestion
		asJSON bool
	)
	flags := c.NewFlags("usage", help)
	asks.Register(flags)
	cli.JSONVar(flags, &asJSON)
	flags.StringVar(&q.Tenant, "tenant", "", "`name` of the tenant")
	flags.StringVar(&q.By, "by", "", "`what` there is a row for: unit, field or limit (default unit)")
	flags.StringVar(&q.Window, "window", "", "how long `periods` are: minute, hour, day or month (default hour, and day without -tenant)")
	flags.Func("last", "for how `long` until now, such as 90m, 24h or 7d; all periods that it touches are shown", func(text string) (err error) {
		q.Last, err = durationOf(text)
		return err
	})
	if err := cli.ParseAlone(flags, args); err != nil {
		return err
	}
	if q.Tenant == "" && q.Window == "" {
		q.Window = "day"
	}
	client, err := asks.Open(c)
	if err != nil {
		return err
	}
	defer client.Close()
	told, err := client.Usage(&q)
	if err != nil {
		return err
	}
	out := struct {
		Version int `json:"version"`
		*usage.Series
	}{cli.FormatVersion, told}
	return c.Report(asJSON, out, false, func(io.Writer) error { return writeUsage(c, told) })
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
		return 0, cli.Usagef("say 90m, 24h or 7d")
	}
	return long, nil
}
