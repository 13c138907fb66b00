package main

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/session"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/observe/report"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisswitch"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// operator is somebody who works on a limiter with the policy of the transcripts.
type operator struct {
	env map[string]string
}

func newOperator(t *testing.T) (o *operator, server *redistest.Server) {
	t.Helper()
	server = redistest.Start(t)
	return &operator{env: map[string]string{
		"RATELIMIT_REDIS": server.Addr, "RATELIMIT_POLICY": livePolicy, "USER": "jo",
	}}, server
}

// run runs a line. A busy machine has all the time that it needs.
func (o *operator) run(line string, more ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	c := cli.Console{Stdout: &out, Stderr: &errs, Getenv: func(name string) string { return o.env[name] }}
	code = run(c, append(words(line), more...))
	return code, out.String(), errs.String()
}

func TestAPasswordIsShownInNoErrorWhereverItWasReadFrom(t *testing.T) {
	t.Parallel()
	o, server := newOperator(t)
	admin := redis.NewClient(&redis.Options{Addr: server.Addr})
	require.NoError(t, admin.ConfigSet(t.Context(), "requirepass", "rightsecret").Err())
	require.NoError(t, admin.Close())
	file := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(file, []byte("verysecret\n"), 0o600))
	o.env["WRONG"] = "redis://:verysecret@" + server.Addr
	for _, flags := range []string{
		"-redis $WRONG", "-redis redis://:verysecret@" + server.Addr, "-redis-password-file " + file, "-redis redis://:verysecret@:wrong",
	} {
		code, stdout, stderr := o.run("budget show -tenant acme -timeout 1m " + flags)
		require.Equal(t, exitUsage, code, flags)
		require.NotContains(t, stdout+stderr, "verysecret", flags)
	}
	_, _, stderr := o.run("budget show -tenant acme redis://:verysecret@" + server.Addr)
	require.NotContains(t, stderr, "verysecret", "an address in a wrong place is not repeated")
	_, _, stderr = o.run("budget show -tenant acme -redis redis://:verysecret@" + server.Addr)
	require.Contains(t, stderr, "list of processes", "a password in an argument is a mistake worth a word")

	require.NoError(t, os.WriteFile(file, []byte("rightsecret\n"), 0o600))
	code, stdout, stderr := o.run("budget show -tenant acme -timeout 1m -redis-password-file " + file)
	require.Equal(t, exitOK, code, "%s%s", stdout, stderr)
}

func TestARedisThatIsAwayOrSilentIsSaidWithoutChangingAnything(t *testing.T) {
	t.Parallel()
	o, server := newOperator(t)
	server.Freeze(t)
	code, _, stderr := o.run("budget grant -tenant acme -points 5 -reason r -timeout 200ms")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "Redis")
	server.Thaw(t)
	server.Kill()
	code, _, stderr = o.run("block -tenant acme -for 1h -reason r -timeout 1m")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "Redis cannot be reached")
}

func TestTheNamespaceOfTheServersCanStandInTheEnvironmentAndIsNamedWhereNothingIsFound(t *testing.T) {
	t.Parallel()
	o, _ := newOperator(t)
	o.env["RATELIMIT_NAMESPACE"] = "shop"
	code, _, stderr := o.run("block -tenant acme -for 1h -reason r -timeout 1m")
	require.Equal(t, exitOK, code, stderr)
	_, stdout, _ := o.run("override list -tenant acme -timeout 1m")
	require.Contains(t, stdout, "blocked")
	_, stdout, _ = o.run("override list -tenant acme -timeout 1m -namespace main")
	require.Contains(t, stdout, "no override records", "a flag beats the environment")

	code, stdout, _ = o.run("top -timeout 1m")
	require.Equal(t, exitFound, code)
	require.Contains(t, stdout, "in the namespace shop")
	_, stdout, _ = o.run("mode set shadow -global -for 1h -reason r -wait 0s -timeout 1m")
	require.Contains(t, stdout, "in the namespace shop")
	_, _, stderr = o.run("refusal NONE -timeout 1m")
	require.Contains(t, stderr, "in the namespace shop")
	delete(o.env, "RATELIMIT_POLICY")
	_, _, stderr = o.run("budget show -tenant acme -timeout 1m")
	require.Contains(t, stderr, "in the namespace shop: say -policy FILE")
}

func TestABudgetShownSaysWhichRecordsBlockWhoIsNamed(t *testing.T) {
	t.Parallel()
	o, _ := newOperator(t)
	for _, scope := range []string{"-tenant acme", "-tenant globex -user mallory", "-tenant globex -operation Mutation.createOrder"} {
		code, _, stderr := o.run("block -for 1h -reason ticket -timeout 1m " + scope)
		require.Equal(t, exitOK, code, stderr)
	}
	const createOrder = "A record of jo blocks the operation Mutation.createOrder"
	for _, shown := range [][2]string{
		{"-tenant acme", "A record of jo blocks the tenant, and ends 20"},
		{"-tenant globex -user mallory", "A record of jo blocks the user mallory"},
		{"-tenant globex", createOrder},
		{"-tenant globex -operation Mutation.createOrder", createOrder},
	} {
		_, stdout, _ := o.run("budget show -timeout 1m " + shown[0])
		require.Contains(t, stdout, shown[1], shown[0])
	}
	_, stdout, _ := o.run("budget show -tenant globex -user ada -operation Mutation.login -timeout 1m")
	require.NotContains(t, stdout, "blocks", "others go on")
}

func TestABlockOfARootFieldThatIsNearlyCalledLikeTheRuleOfAnotherTierIsTold(t *testing.T) {
	t.Parallel()
	o, _ := newOperator(t)
	code, _, stderr := o.run("block -tenant nobody -operation Mutation.createOrdre -for 1h -reason r -timeout 1m")
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stderr, `did you mean "Mutation.createOrder"?`)
	_, _, stderr = o.run("block -tenant nobody -operation Mutation.createOrder -for 1h -reason r -timeout 1m")
	require.NotContains(t, stderr, "did you mean")
}

func TestAModeSwitchThatNeverEndsIsNotOffered(t *testing.T) {
	t.Parallel()
	o, _ := newOperator(t)
	_, _, stderr := o.run("mode set shadow -global -reason r")
	require.Contains(t, stderr, "within a week")
	require.NotContains(t, stderr, "forever")
	_, _, stderr = o.run("mode set shadow -global -forever -reason r")
	require.Contains(t, stderr, "within a week")
}

func TestWhoMakesAChangeAndWhyHaveToBeSaid(t *testing.T) {
	t.Parallel()
	o, _ := newOperator(t)
	code, _, stderr := o.run("block -tenant acme -user mallory -for 1h -timeout 1m")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "-reason")
	delete(o.env, "USER")
	code, _, stderr = o.run("block -tenant acme -user mallory -for 1h -reason r -timeout 1m")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "-actor")
}

func TestWhatComesFromOutsideGivesTheTerminalNoOrders(t *testing.T) {
	t.Parallel()
	o, _ := newOperator(t)
	code, stdout, stderr := o.run("block -for 1h -timeout 1m", "-tenant", "ac\x1b[2Jme", "-reason", "\x1b]0;owned\a")
	require.Equal(t, exitOK, code, stderr)
	require.NotContains(t, stdout+stderr, "\x1b")
	_, stdout, _ = o.run("override list -timeout 1m", "-tenant", "ac\x1b[2Jme")
	require.NotContains(t, stdout, "\x1b")
	require.Contains(t, stdout, "owned")
}

func TestAModeSwitchThatAnInstanceDoesNotApplyIsNamedAndFails(t *testing.T) {
	t.Parallel()
	o, server := newOperator(t)
	deaf := instance(t, server.Addr, "web-deaf", nil)
	defer deaf()
	code, stdout, stderr := o.run("mode set shadow -global -for 1h -reason r -wait 0s -timeout 1m")
	require.Equal(t, exitFound, code, stderr)
	require.Contains(t, stdout, "It is not in force on 1 of 1 instances: web-deaf")
	code, stdout, _ = o.run("mode show -json -timeout 1m")
	require.Equal(t, exitOK, code)
	require.Contains(t, stdout, `"inForce": 0`)
	_, stdout, _ = o.run("top -timeout 1m")
	require.Contains(t, stdout, "1 instance, in the last minute")
	_, stdout, _ = o.run("mode set enforce -global -reason r -wait 0s -timeout 1m")
	require.Contains(t, stdout, "It has ended on the only instance.")
}

func TestABrokenPolicyKeepsNobodyFromEasingIt(t *testing.T) {
	t.Parallel()
	o, server := newOperator(t)
	o.env["RATELIMIT_POLICY"] = "cmd/gqlratelimit/testdata/live/wrong.yaml"
	held, err := session.LoadPolicy(livePolicy)
	require.NoError(t, err)
	source := tiers.NewModeSwitch(held.Snapshot)
	stop := instance(t, server.Addr, "web-1", source)
	defer stop()
	code, stdout, stderr := o.run("mode set shadow -tenant acme -for 1h -reason r -wait 1m -timeout 1m")
	require.Equal(t, exitOK, code, "%s%s", stdout, stderr)
	require.Contains(t, stderr, "names are not checked")
	rules := source.Snapshot().Rules(tiers.Subject{Tenant: "acme"}, tiers.Selection{})
	require.Equal(t, bucket.Shadow, rules.Buckets[0].Limits.Mode(), "the switch is in force where the command says so")
	code, _, stderr = o.run("mode set enforce -tenant acme -reason r -wait 1m -timeout 1m")
	require.Equal(t, exitOK, code, stderr)
	rules = source.Snapshot().Rules(tiers.Subject{Tenant: "acme"}, tiers.Selection{})
	require.Equal(t, bucket.Enforce, rules.Buckets[0].Limits.Mode())
}

// instance reports, and follows mode switches if a switch is given. It returns when its first report is there.
func instance(t *testing.T, addr, name string, source *tiers.ModeSwitch) (stop func()) {
	t.Helper()
	client, err := redisclient.Open(addr, redisclient.Config{DialTimeout: patience, SocketTimeout: patience})
	require.NoError(t, err)
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	at := report.Place{Client: client}
	reporter, err := report.Start(report.Config{Place: at, Instance: name, Logger: quiet})
	require.NoError(t, err)
	ends := []func() error{reporter.Close, client.Close}
	if source != nil {
		follower, err := redisswitch.Follow(redisswitch.FollowerConfig{
			Config: redisswitch.Config{Client: client}, Switch: source, Observer: reporter, Logger: quiet,
		})
		require.NoError(t, err)
		ends = append([]func() error{follower.Close}, ends...)
	}
	reader, err := report.NewReader(at)
	require.NoError(t, err)
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		if all, err := reader.Summary(t.Context(), time.Minute); err == nil && len(all.Instances) == 1 {
			break
		}
		select {
		case <-ticker.C:
		case <-t.Context().Done():
			t.Fatal("the instance has written nothing")
		}
	}
	return func() {
		for _, end := range ends {
			_ = end()
		}
	}
}

func TestCustomLimitsAreShownAndExplainedForWhatARequestCarries(t *testing.T) {
	t.Parallel()
	o, _ := newOperator(t)
	dir := files(t, map[string]string{"custom.yaml": `version: 1
default: free
parameters:
  lang: {header: X-Lang}
  plan: {claim: plan}
custom:
  lang:en:
    limits:
      minute: {capacity: 77, per: minute}
  plan:gold:
    limits:
      minute: {capacity: 99, per: minute}
tiers:
  free:
    limits:
      minute: {capacity: 100, per: minute}
`})
	o.env["RATELIMIT_POLICY"] = filepath.Join(dir, "custom.yaml")
	for line, want := range map[string]string{
		"budget show -tenant acme -parameter lang=en":    "77 points per minute",
		"policy explain -tenant acme -parameter lang=en": "line 9",
		"budget show -tenant acme -parameter plan=gold":  "99 points per minute",
	} {
		code, stdout, stderr := o.run(line + " -timeout 1m")
		require.Equal(t, exitOK, code, stderr)
		require.Contains(t, stdout, want, line)
	}
	_, stdout, _ := o.run("budget show -tenant acme -timeout 1m")
	require.NotContains(t, stdout, "77 points")
	code, _, stderr := o.run("budget show -tenant acme -parameter lnag=en -timeout 1m")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, `did you mean "lang"?`)
}

func TestExplainSaysHowATenantIsShedWhereThatIsNotAsUsual(t *testing.T) {
	t.Parallel()
	o, _ := newOperator(t)
	dir := files(t, map[string]string{"shed.yaml": `version: 1
default: free
tiers:
  free: {limits: {minute: {capacity: 100, per: minute}}}
tenants:
  acme: {throttle: {order: 3}}
`})
	o.env["RATELIMIT_POLICY"] = filepath.Join(dir, "shed.yaml")
	code, stdout, stderr := o.run("policy explain -tenant acme -timeout 1m")
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stdout, "While servers are overloaded: a share is shed, place 3, at least 50 % stays\n")
	code, stdout, stderr = o.run("policy explain -tenant globex -timeout 1m")
	require.Equal(t, exitOK, code, stderr)
	require.NotContains(t, stdout, "overloaded")
}
