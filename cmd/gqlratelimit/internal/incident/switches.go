package incident

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/session"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/observe/report"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisswitch"
)

const modeShowHelp = `
Usage: gqlratelimit mode show [flags]

Shows the mode switches that are in force, and on how many instances each is. Those that Redis has
lost, and instances still apply, are shown too.
`

// RunMode runs a verb of the sub-command mode.
func RunMode(c cli.Console, args []string) error {
	return cli.RunVerb(c, "mode", "Eases limits on every instance, in an emergency, until that ends by itself.", []cli.Verb{
		{Name: "show", Summary: "show the mode switches that are in force", Run: modeShow},
		{Name: "set", Summary: "ease modes, or end that", Run: modeSet},
	}, args)
}

// switchJSON is a mode switch and where it is in force.
type switchJSON struct {
	event.ModeSwitch

	// Instances is how many there are, and InForce how many of them apply the switch.
	Instances int `json:"instances"`
	InForce   int `json:"inForce"`
	// Missing are those that do not.
	Missing []string `json:"missing,omitempty"`
	// Lost says that Redis has it no longer, although instances apply it.
	Lost bool `json:"lost,omitempty"`
}

// inForce are the switches that an instance applies.
func inForce(d *report.Instance) []event.ModeSwitch {
	if d.Modes == nil {
		return nil
	}
	return d.Modes.InForce
}

// same reports whether an instance means the switch of Redis. Instances cut and escape names, so that of such a name no more
// is known than that there is one.
func same(a, b *event.ModeSwitch) bool {
	return a.AtMost == b.AtMost && a.Until.Equal(b.Until) && sameName(a.Tenant, b.Tenant) && sameName(a.Operation, b.Operation)
}

func sameName(name, reported string) bool {
	const plain = 256
	if len(name) > plain || cli.Plain(name) != name || strings.ContainsAny(name, `\"`) {
		return reported != ""
	}
	return name == reported
}

// where says on which instances a switch is in force.
func where(m event.ModeSwitch, all []report.Instance) switchJSON {
	out := switchJSON{ModeSwitch: m, Instances: len(all)}
	for i := range all {
		if slices.ContainsFunc(inForce(&all[i]), func(other event.ModeSwitch) bool { return same(&m, &other) }) {
			out.InForce++
		} else {
			out.Missing = append(out.Missing, all[i].Name)
		}
	}
	return out
}

func modeShow(c cli.Console, args []string) error {
	var (
		in     session.Redis
		asJSON bool
	)
	fs := c.NewFlags("mode show", modeShowHelp)
	in.Register(fs)
	cli.JSONVar(fs, &asJSON)
	if err := cli.ParseAlone(fs, args); err != nil {
		return err
	}
	live, err := in.Open(c)
	if err != nil {
		return err
	}
	defer live.Close()
	switches, err := switchesOf(live)
	if err != nil {
		return err
	}
	var set []redisswitch.Switch
	err = live.Call(func(ctx context.Context) (err error) {
		set, err = switches.List(ctx)
		return err
	})
	if errors.Is(err, redisswitch.ErrUnreadable) {
		fmt.Fprintln(c.Stderr, "note:", cli.Plain(err.Error()))
	} else if err != nil {
		return err
	}
	all, err := summary(c, live)
	if err != nil {
		return err
	}
	list := everywhere(set, all.Instances)
	out := struct {
		Version  int          `json:"version"`
		Switches []switchJSON `json:"switches"`
	}{cli.FormatVersion, list}
	return c.Report(asJSON, out, false, func(io.Writer) error {
		if len(list) == 0 {
			fmt.Fprintln(c.Stdout, "No mode switch is in force.")
		} else {
			writeSwitches(c, list)
		}
		return nil
	})
}

// everywhere are the switches of Redis, and those that instances apply although Redis has lost them.
func everywhere(set []redisswitch.Switch, all []report.Instance) []switchJSON {
	list := []switchJSON{}
	for i := range set {
		list = append(list, where(set[i].ModeSwitch, all))
	}
	for i := range all {
		for _, m := range inForce(&all[i]) {
			if !slices.ContainsFunc(list, func(other switchJSON) bool { return same(&m, &other.ModeSwitch) }) {
				lost := where(m, all)
				lost.Lost = true
				list = append(list, lost)
			}
		}
	}
	return list
}

func writeSwitches(c cli.Console, list []switchJSON) {
	rows := [][]string{{"SCOPE", "AT MOST", "ENDS", "IN FORCE ON", "BY", "REASON"}}
	for i := range list {
		m := &list[i]
		on := fmt.Sprintf("%d of %d", m.InForce, m.Instances)
		if m.Lost {
			on += ", not in Redis"
		}
		rows = append(rows, []string{scopeText(m.Tenant, m.Operation), m.AtMost, m.Until.UTC().Format(time.RFC3339), on, m.By, m.Reason})
	}
	cli.WriteTable(c.Stdout, rows)
}

func scopeText(tenant, operation string) string {
	switch {
	case tenant == "" && operation == "":
		return "everything"
	case operation == "":
		return "tenant " + tenant
	case tenant == "":
		return "operation " + operation
	default:
		return "operation " + operation + " of " + tenant
	}
}

func switchesOf(live *session.Live) (*redisswitch.Switches, error) {
	s, err := redisswitch.New(redisswitch.Config{Client: live.Client, Namespace: live.Namespace})
	if err != nil {
		return nil, cli.Usagef("%v", err)
	}
	return s, nil
}
