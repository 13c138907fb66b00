package incident

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/session"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisswitch"
)

const modeSetHelp = `
Usage: gqlratelimit mode set MODE -global | -tenant T [-operation O] | -operation O
           -for DURATION | -until TIME  -reason TEXT

Eases the mode of limits on every instance within a second, until the switch ends by itself: MODE is
the strictest that they have. warn and shadow refuse nothing and go on counting, off does not ask
Redis. Who is blocked stays blocked. enforce ends the switch of that scope before its time.

An instance applies switches if its server follows them (docs/guide/rollout.md). The command
waits for that, -wait at most, and says on how many instances the switch is in force.

Names are checked against the policy if it can be read: a policy that is broken keeps nobody
from easing it.

The exit code is 1 if an instance does not apply the switch in that time.

Examples:

    gqlratelimit mode set shadow -global -for 1h -reason "limits of last night's policy, incident 17"
    gqlratelimit mode set off -operation Mutation.checkout -until 18:00 -reason "incident 17"
    gqlratelimit mode set enforce -global -reason "over"
`

// look is how often the stream of activity is read while the command waits for them.
const look = 200 * time.Millisecond

// modeFlags are the flags of mode set.
type modeFlags struct {
	session.Flags
	session.Change
	session.Term

	mode              string
	tenant, operation string
	global            bool
	wait              time.Duration
}

func modeSet(c cli.Console, args []string) error {
	var in modeFlags
	fs := c.NewFlags("mode set", modeSetHelp)
	in.Redis.Register(fs)
	in.Policy.Register(fs)
	in.Change.Register(fs)
	in.Term.Register(fs)
	fs.Lookup("forever").Usage = "refused: a mode switch ends within a week"
	fs.BoolVar(&in.global, "global", false, "everything that is limited")
	fs.StringVar(&in.tenant, "tenant", "", "the `name` of a tenant")
	fs.StringVar(&in.operation, "operation", "", "an operation `rule` as the policy spells it, such as Mutation.createOrder, or a root field")
	fs.DurationVar(&in.wait, "wait", 10*time.Second, "for how much `time` to wait until every instance applies it")
	others, err := cli.Parse(fs, args)
	if err != nil {
		return err
	}
	if len(others) == 1 {
		in.mode = others[0]
	}
	if err := in.check(len(others)); err != nil {
		return err
	}
	live, err := in.Redis.Open(c)
	if err != nil {
		return err
	}
	defer live.Close()
	if err := in.checkNames(c, live); err != nil {
		return err
	}
	if err := in.Complete(c); err != nil {
		return err
	}
	if in.mode == bucket.Enforce.String() {
		return in.end(c, live)
	}
	return in.ease(c, live)
}

func errLong() error {
	return cli.Usagef("a mode switch ends within a week: what is to hold for longer belongs into the policy")
}

// check returns what is wrong with the arguments by themselves.
func (in *modeFlags) check(others int) error {
	if others != 1 {
		return cli.Usagef("say one mode: warn, shadow or off, or enforce to end a switch")
	}
	mode, err := session.ParseMode(in.mode)
	switch {
	case err != nil:
		return err
	case in.global == (in.tenant != "" || in.operation != ""):
		return cli.Usagef("say for what: -global, or -tenant, -operation or both")
	case in.wait < 0:
		return cli.Usagef("-wait is not negative")
	case mode == bucket.Enforce && (in.For != 0 || in.Until != "" || in.Forever):
		return cli.Usagef("enforce ends a switch at once: leave -for and -until away")
	case mode == bucket.Enforce:
		return nil
	case in.Forever:
		return errLong()
	case in.For == 0 && in.Until == "":
		return cli.Usagef("say when it ends by itself, within a week: -for DURATION or -until TIME")
	}
	return in.Check()
}

// checkNames checks what is named against the policy. In an emergency the policy may be what is wrong: one that cannot
// be read is said, and nothing is checked.
func (in *modeFlags) checkNames(c cli.Console, live *session.Live) error {
	if in.global {
		return nil
	}
	held, err := in.Policy.Read(c, live)
	if err != nil {
		fmt.Fprintln(c.Stderr, "note: names are not checked:", cli.Plain(err.Error()))
		return nil
	}
	if in.operation != "" && !strings.Contains(in.operation, "*") && !strings.HasPrefix(in.operation, "sha256:") {
		if err := session.CheckOperation(c, in.operation, held.Operations()); err != nil {
			return err
		}
	}
	if in.tenant != "" && !held.Lists(in.tenant) {
		if near, ok := cli.Nearest(in.tenant, slices.Collect(maps.Keys(held.Written.Tenants))); ok {
			fmt.Fprintf(c.Stderr, "note: the policy does not list the tenant %s: did you mean %q?\n", cli.Plain(in.tenant), near)
		}
	}
	return nil
}

// ease puts a switch in force.
func (in *modeFlags) ease(c cli.Console, live *session.Live) error {
	now, err := live.Now()
	if err != nil {
		return err
	}
	end, err := in.End(now)
	switch {
	case err != nil:
		return err
	case end.Sub(now) > redisswitch.Longest:
		return errLong()
	}
	switches, err := switchesOf(live)
	if err != nil {
		return err
	}
	m := event.ModeSwitch{Tenant: in.tenant, Operation: in.operation, AtMost: in.mode, Until: end, Reason: in.Reason, By: in.Actor}
	err = live.Call(func(ctx context.Context) error { return switches.Set(ctx, m) })
	if errors.Is(err, redisswitch.ErrUntil) || errors.Is(err, redisswitch.ErrTooMany) {
		return cli.Usagef("%v", err)
	}
	if err != nil {
		return err
	}
	return in.await(c, live, m, func(s *switchJSON) bool { return s.InForce == s.Instances })
}

// end ends the switch of the scope before its time.
func (in *modeFlags) end(c cli.Console, live *session.Live) error {
	switches, err := switchesOf(live)
	if err != nil {
		return err
	}
	var was *redisswitch.Switch
	err = live.Call(func(ctx context.Context) (err error) {
		was, err = switches.End(ctx, in.tenant, in.operation)
		return err
	})
	if err != nil {
		return err
	}
	if was == nil {
		fmt.Fprintf(c.Stderr, "no mode switch of this scope is in force (%s); gqlratelimit mode show has those that are\n", cli.Plain(scopeText(in.tenant, in.operation)))
		return cli.ErrFound
	}
	return in.await(c, live, was.ModeSwitch, func(s *switchJSON) bool { return s.InForce == 0 })
}

// await waits until every instance says what is expected of it.
func (in *modeFlags) await(c cli.Console, live *session.Live, m event.ModeSwitch, done func(*switchJSON) bool) error {
	began := time.Now()
	for {
		all, err := summary(c, live)
		if err != nil {
			return fmt.Errorf("it is done; where it is in force is not known: %w", err)
		}
		s := where(m, all.Instances)
		ready := done(&s)
		if len(all.Instances) > 0 && !ready && time.Since(began) < in.wait {
			<-time.After(look)
			continue
		}
		in.tell(c, live.Namespace, &s, ready)
		if !ready || len(all.Instances) == 0 {
			return cli.ErrFound
		}
		return nil
	}
}

func (in *modeFlags) tell(c cli.Console, namespace string, s *switchJSON, ready bool) {
	writeSwitches(c, []switchJSON{*s})
	switch {
	case s.Instances == 0:
		fmt.Fprintf(c.Stdout, "No instance has reported in the namespace %s within ten seconds, so that nobody knows where it is in force: name another with -namespace, or see docs/guide/rollout.md for how instances follow.\n", namespace)
	case in.mode == bucket.Enforce.String() && ready:
		fmt.Fprintf(c.Stdout, "It has ended on %s.\n", allInstances(s.Instances))
	case in.mode == bucket.Enforce.String():
		fmt.Fprintf(c.Stdout, "It has ended in Redis, and %d of %d instances still apply it.\n", s.InForce, s.Instances)
	case ready:
		fmt.Fprintf(c.Stdout, "It is in force on %s.\n", allInstances(s.Instances))
	default:
		fmt.Fprintln(c.Stdout, cli.Plain(fmt.Sprintf("It is not in force on %d of %d instances: %s", len(s.Missing), s.Instances, missing(s.Missing))))
	}
}

// allInstances says how many there are.
func allInstances(n int) string {
	if n == 1 {
		return "the only instance"
	}
	return "all " + cli.Count(n, "instance")
}

// missing names instances, a few of them.
func missing(names []string) string {
	const most = 10
	text := ""
	for i, name := range names {
		if i == most {
			return text + fmt.Sprintf(" and %d more", len(names)-most)
		}
		if i > 0 {
			text += ", "
		}
		text += name
	}
	return text
}
