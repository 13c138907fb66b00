package incident

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/session"
	"github.com/gqlgen-ratelimit/ratelimit/digest"
)

const topHelp = `
Usage: gqlratelimit top [-by decisions|refused|wouldRefuse|cost] [-watch TIME] [flags]

Shows what all instances have decided in the last minute: the busiest tenants, who is refused, and
each instance with the revision that it serves. Instances write it once a second (docs/guide/digest.md).
On a terminal it is shown anew every two seconds, until it is interrupted.

Example:

    gqlratelimit top -by refused -n 10
`

// builtIn is the revision of an instance that has a policy of its own.
const builtIn = "(built in)"

// pause is how long top waits on a terminal before it asks again.
const pause = 2 * time.Second

// Top is the sub-command top.
func Top(c cli.Console, args []string) error {
	var (
		in    flags
		by    string
		n     int
		every time.Duration
	)
	fs := c.NewFlags("top", topHelp)
	in.Redis.Register(fs)
	in.RegisterJSON(fs)
	fs.StringVar(&by, "by", "decisions", "the `number` by which tenants are sorted: decisions, refused, wouldRefuse or cost")
	fs.IntVar(&n, "n", 20, "show so many tenants")
	fs.DurationVar(&every, "watch", 0, "show it anew after this `time`, from 1s on, until it is interrupted; 2s on a terminal unless given, 0 elsewhere")
	if err := cli.ParseAlone(fs, args); err != nil {
		return err
	}
	order, ok := orders[by]
	switch {
	case !ok:
		return cli.Unknown("number", by, []string{"decisions", "refused", "wouldRefuse", "cost"})
	case n < 1 || n > 1000:
		return cli.Usagef("-n %d: 1 to 1000 fit", n)
	case every != 0 && every < time.Second:
		return cli.Usagef("-watch %v: instances write once a second", every)
	}
	if every == 0 && c.Asks && !in.JSON {
		every = pause
	}
	live, err := in.Redis.Open(c)
	if err != nil {
		return err
	}
	defer live.Close()
	for {
		all, err := digests(c, live)
		if err != nil {
			return err
		}
		fleet := digest.Merge(all)
		slices.SortStableFunc(fleet.Tenants, func(a, b digest.Tenant) int { return cmp.Compare(order(b.Counts), order(a.Counts)) })
		fleet.Tenants = fleet.Tenants[:min(n, len(fleet.Tenants))]
		if in.JSON {
			if err := c.WriteJSON(newTopJSON(all, fleet)); err != nil {
				return err
			}
		} else {
			if every > 0 && c.Asks {
				fmt.Fprint(c.Stdout, "\x1b[H\x1b[2J")
			}
			writeTop(c, live.Namespace, all, fleet)
		}
		if every == 0 {
			if len(all) == 0 {
				return cli.ErrFound
			}
			return nil
		}
		<-time.After(every)
	}
}

var orders = map[string]func(digest.Counts) int64{
	"decisions":   func(n digest.Counts) int64 { return n.Decisions },
	"refused":     func(n digest.Counts) int64 { return n.Refused },
	"wouldRefuse": func(n digest.Counts) int64 { return n.WouldRefuse },
	"cost":        func(n digest.Counts) int64 { return n.Cost },
}

// topJSON is the JSON of top.
type topJSON struct {
	Version   int            `json:"version"`
	Instances []instanceJSON `json:"instances"`
	Fleet     fleetJSON      `json:"fleet"`
}

type instanceJSON struct {
	Instance string         `json:"instance"`
	At       time.Time      `json:"at"`
	Policy   *digest.Policy `json:"policy,omitempty"`
	Recent   digest.Counts  `json:"recent"`
	Switches int            `json:"switches,omitempty"`
}

type fleetJSON struct {
	Instances int             `json:"instances"`
	From      time.Time       `json:"from,omitzero"`
	Recent    digest.Counts   `json:"recent"`
	Unlisted  int64           `json:"unlisted,omitempty"`
	Tenants   []digest.Tenant `json:"tenants"`
}

func newTopJSON(all []digest.Digest, fleet digest.Fleet) topJSON {
	out := topJSON{Version: session.FormatVersion, Instances: []instanceJSON{}, Fleet: fleetJSON{
		Instances: fleet.Instances, From: fleet.From, Recent: fleet.Recent, Unlisted: fleet.Unlisted,
		Tenants: append([]digest.Tenant{}, fleet.Tenants...),
	}}
	for _, d := range all {
		out.Instances = append(out.Instances, instanceJSON{d.Instance, d.At, d.Policy, d.Recent, len(inForce(&d))})
	}
	return out
}

// instances says how many there are.
func instances(n int) string {
	if n == 1 {
		return "1 instance"
	}
	return fmt.Sprintf("%d instances", n)
}

func writeTop(c cli.Console, namespace string, all []digest.Digest, fleet digest.Fleet) {
	if len(all) == 0 {
		fmt.Fprintf(c.Stdout, "No instance has written a digest in the namespace %s within ten seconds: name another with -namespace, or see docs/guide/digest.md for how they do.\n", namespace)
		return
	}
	fmt.Fprintf(c.Stdout, "%s, in the last minute: %d decisions, %d refused (%s), %d more if everything were enforced, %d points\n\n",
		instances(fleet.Instances), fleet.Recent.Decisions, fleet.Recent.Refused, cli.Percent(fleet.Recent.RefusedShare()), fleet.Recent.WouldRefuse, fleet.Recent.Cost)
	rows := [][]string{{"TENANT", "TIER", "DECISIONS", "REFUSED", "SHARE", "WOULD REFUSE", "POINTS"}}
	for _, t := range fleet.Tenants {
		rows = append(rows, []string{
			t.Name, t.Tier, fmt.Sprint(t.Decisions), fmt.Sprint(t.Refused), cli.Percent(t.RefusedShare()), fmt.Sprint(t.WouldRefuse), fmt.Sprint(t.Cost),
		})
	}
	if fleet.Unlisted > 0 {
		rows = append(rows, []string{"(others)", "", fmt.Sprint(fleet.Unlisted)})
	}
	cli.WriteTable(c.Stdout, rows)
	fmt.Fprintln(c.Stdout)
	rows = [][]string{{"INSTANCE", "REVISION", "BY", "DECISIONS", "REFUSED", "MODE SWITCHES"}}
	for _, d := range all {
		// Nobody has told the instance of a revision: it has no feed.
		revision, author := builtIn, ""
		if d.Policy != nil {
			revision, author = fmt.Sprint(d.Policy.Revision), d.Policy.Author
		}
		rows = append(rows, []string{d.Instance, revision, author, fmt.Sprint(d.Recent.Decisions), fmt.Sprint(d.Recent.Refused), fmt.Sprint(len(inForce(&d)))})
	}
	cli.WriteTable(c.Stdout, rows)
}
