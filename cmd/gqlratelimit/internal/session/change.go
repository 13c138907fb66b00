package session

import (
	"cmp"
	"flag"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
)

// Change are the flags of whatever changes something: who does it, and why.
type Change struct {
	Reason, Actor string
}

// Register adds the flags.
func (f *Change) Register(flags *flag.FlagSet) {
	flags.StringVar(&f.Reason, "reason", "", "why, in a `text` for those who find it later; required")
	flags.StringVar(&f.Actor, "actor", "", "`who` changes it; the user of this machine unless given")
}

// Complete fails if nobody says why. Who it is, the environment says where no flag does.
func (f *Change) Complete(c cli.Console) error {
	f.Reason = strings.TrimSpace(f.Reason)
	f.Actor = cmp.Or(strings.TrimSpace(f.Actor), c.Getenv("SUDO_USER"), c.Getenv("USER"), c.Getenv("LOGNAME"))
	switch {
	case f.Reason == "":
		return cli.Usagef("say why: -reason TEXT")
	case f.Actor == "":
		return cli.Usagef("say who you are: -actor NAME")
	}
	return nil
}

// Term are the flags that say when something ends by itself.
type Term struct {
	For     time.Duration
	Until   string
	Forever bool
}

// Register adds the flags.
func (t *Term) Register(flags *flag.FlagSet) {
	flags.DurationVar(&t.For, "for", 0, "how `long` it holds, such as 2h or 90m, by the clock of Redis")
	flags.StringVar(&t.Until, "until", "", "`when` it ends: 2026-11-30T18:00:00Z, or 18:00 for the next time it is that late in UTC")
	flags.BoolVar(&t.Forever, "forever", false, "it holds until somebody ends it")
}

// maxTerm is how far away an end may be.
const maxTerm = 10 * 365 * 24 * time.Hour

// Check returns what is wrong with the flags by themselves.
func (t *Term) Check() error {
	given := 0
	for _, is := range []bool{t.For != 0, t.Until != "", t.Forever} {
		if is {
			given++
		}
	}
	switch {
	case given == 0:
		return cli.Usagef("say when it ends by itself: -for DURATION or -until TIME; or -forever, which somebody has to remember")
	case given > 1:
		return cli.Usagef("say one of -for, -until and -forever")
	case t.For < 0 || t.For > maxTerm:
		return cli.Usagef("-for %v: up to ten years from now fit", t.For)
	}
	if t.Until != "" {
		_, err := t.until(time.Unix(0, 0))
		return err
	}
	return nil
}

// End returns when it ends, by a clock that says now. It is zero for never.
func (t *Term) End(now time.Time) (time.Time, error) {
	if err := t.Check(); err != nil || t.Forever {
		return time.Time{}, err
	}
	end := now.Add(t.For)
	if t.Until != "" {
		var err error
		if end, err = t.until(now); err != nil {
			return end, err
		}
	}
	end = end.UTC().Truncate(time.Millisecond)
	switch {
	case !end.After(now):
		return end, cli.Usagef("-until %s has passed: Redis says that it is %s", t.Until, now.UTC().Format(time.RFC3339))
	case end.After(now.Add(maxTerm)):
		return end, cli.Usagef("-until %s: up to ten years from now fit", t.Until)
	}
	return end, nil
}

func (t *Term) until(now time.Time) (time.Time, error) {
	if clock, err := time.Parse("15:04", t.Until); err == nil {
		y, m, d := now.UTC().Date()
		end := time.Date(y, m, d, clock.Hour(), clock.Minute(), 0, 0, time.UTC)
		if !end.After(now) {
			end = end.AddDate(0, 0, 1)
		}
		return end, nil
	}
	end, err := time.Parse(time.RFC3339, t.Until)
	if err != nil {
		return end, cli.Usagef("-until %.40q is no time: write 2026-11-30T18:00:00Z, with the zone, or 18:00 in UTC", t.Until)
	}
	return end, nil
}
