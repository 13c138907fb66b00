package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/doctor"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/report"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/session"
)

const doctorHelp = `
Usage: gqlratelimit doctor -redis ADDRESS [-redis ...] [flags]

Examines the Redis of a limiter: its client options, its servers, and the rights of its user.
An ADDRESS is host:port, or a redis://, rediss:// or unix:// URL as redisclient.Open reads
it: several are nodes of a cluster or, with -master, Sentinels. With $VARIABLE in the place
of an ADDRESS it is read from the environment, where other users cannot see its password.

    error    the limiter does not work, or its budgets do not hold
    warning  that happens when a server fails or is busy
    note     something to know, or what could not be looked at

Without -plain the options of the client are those that redisclient.Open sets. docs/reference/redis.md
lists what is looked for. Nothing is changed but keys of the doctor's own, which expire within
seconds.

The exit code is 1 if something is found that is at least as bad as -fail-on.

Example:

    gqlratelimit doctor -redis '$REDIS_URL'
`

// doctorInputs are the flags of the sub-command doctor.
type doctorInputs struct {
	session.Address

	plain     bool
	namespace string
	timeout   time.Duration
	patience  time.Duration
	asJSON    bool
}

// defaultPatience is how long an examination takes at most.
const defaultPatience = 10 * time.Second

// runDoctor is the sub-command doctor.
func runDoctor(c cli.Console, args []string) error {
	var in doctorInputs
	flags := c.NewFlags("doctor", doctorHelp)
	in.Register(flags)
	flags.BoolVar(&in.plain, "plain", false, "examine the options that go-redis reads out of the URL, for a server that does not use redisclient.Open")
	session.RegisterNamespace(flags, &in.namespace)
	flags.DurationVar(&in.timeout, "timeout", bucket.DefaultTimeout, "the `time` in RedisConfig.Timeout, to which answers are compared")
	flags.DurationVar(&in.patience, "patience", defaultPatience, "the `time` that the examination may take")
	found := report.Findings[doctor.Finding]{
		Head:     "SEVERITY  NODE                   FINDING",
		Severity: func(f doctor.Finding) doctor.Severity { return f.Severity }, Text: findingText,
	}
	found.Register(flags)
	cli.JSONVar(flags, &in.asJSON)
	if err := cli.ParseAlone(flags, args); err != nil {
		return err
	}
	client, err := in.client(c)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	found.List, err = doctor.Examine(context.Background(), doctor.Config{
		Client: client, Namespace: session.Namespace(c, in.namespace), Timeout: in.timeout, Patience: in.patience,
	})
	if err != nil {
		return &cli.UsageError{Reason: err.Error()}
	}
	return found.Write(c, in.asJSON)
}

// findingText says what was seen, why it matters and what to do.
func findingText(f doctor.Finding) string {
	return fmt.Sprintf("%-8s  %-21s  %s (%s)\n          %s\n          → %s\n",
		f.Severity, cli.Plain(cmp.Or(f.Node, "the client")), cli.Plain(f.Seen), f.Code, cli.Plain(f.Why), cli.Plain(f.Remedy))
}

// client opens what the flags name.
func (in *doctorInputs) client(c cli.Console) (redis.UniversalClient, error) {
	config, err := in.Read(c)
	if err != nil {
		return nil, err
	}
	if in.plain {
		return in.plainClient(config)
	}
	// What is wrong with an address is said by the same words.
	client, err := redisclient.Open("", config)
	if err != nil {
		return nil, &cli.UsageError{Reason: err.Error()}
	}
	return client, nil
}

// plainClient opens the client that go-redis makes of a URL by itself.
func (in *doctorInputs) plainClient(config redisclient.Config) (redis.UniversalClient, error) {
	if len(in.Addresses) > 1 || in.Cluster || in.Master != "" {
		return nil, cli.Usagef("-plain is for one URL of a single server; doctor.Examine examines any client in Go")
	}
	options, err := redis.ParseURL(in.Addresses[0])
	if err != nil {
		return nil, &cli.UsageError{Reason: errPlainURL.Error()}
	}
	if config.TLS != nil {
		options.TLSConfig = config.TLS
	}
	options.Username, options.Password = cmp.Or(config.Username, options.Username), cmp.Or(config.Password, options.Password)
	return redis.NewClient(options), nil
}

// errPlainURL does not repeat the URL, which may have a password.
var errPlainURL = errors.New("-plain needs a URL that redis.ParseURL reads: redis://user:password@host:port/database?option=value")

// silence drops what go-redis writes to a log: what matters of it is a finding.
type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}
