package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/doctor"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/report"
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

Without -plain the options of the client are those that redisclient.Open sets. docs/guide/redis.md
lists what is looked for. Nothing is changed but keys of the doctor's own, which expire within
seconds.

The exit code is 1 if something is found that is at least as bad as -fail-on.

Example:

    gqlratelimit doctor -redis '$REDIS_URL'
`

// doctorInputs are the flags of the sub-command doctor.
type doctorInputs struct {
	addresses paths
	cluster   bool
	master    string
	plain     bool
	ca        string
	cert      string
	key       string
	namespace string
	timeout   time.Duration
	patience  time.Duration
	failOn    string
	asJSON    bool
}

// defaultPatience is how long an examination takes at most.
const defaultPatience = 10 * time.Second

// runDoctor is the sub-command doctor.
func runDoctor(c console, args []string) error {
	var in doctorInputs
	flags := newFlags(c, "doctor", doctorHelp)
	flags.Var(&in.addresses, "redis", "`address` or URL of a server; can be given several times")
	flags.BoolVar(&in.cluster, "cluster", false, "the single address is a node of a cluster")
	flags.StringVar(&in.master, "master", "", "the addresses are Sentinels, which know the master by this `name`")
	flags.BoolVar(&in.plain, "plain", false, "examine the options that go-redis reads out of the URL, for a server that does not use redisclient.Open")
	flags.StringVar(&in.ca, "tls-ca", "", "PEM `file` of the authorities to trust")
	flags.StringVar(&in.cert, "tls-cert", "", "PEM `file` of the certificate of the client")
	flags.StringVar(&in.key, "tls-key", "", "PEM `file` of its key")
	flags.StringVar(&in.namespace, "namespace", "main", "the `name` in RedisConfig.Namespace")
	flags.DurationVar(&in.timeout, "timeout", bucket.DefaultTimeout, "the `time` in RedisConfig.Timeout, to which answers are compared")
	flags.DurationVar(&in.patience, "patience", defaultPatience, "the `time` that the examination may take")
	flags.StringVar(&in.failOn, "fail-on", string(doctor.Warning), "fail on findings of this `severity`: error, warning or note")
	flags.BoolVar(&in.asJSON, "json", false, "write JSON (docs/reference/command.md describes the format)")
	operands, err := parse(flags, args)
	if err != nil {
		return err
	}
	examination := report.Examination{FailOn: doctor.Severity(in.failOn)}
	switch {
	case len(operands) > 0:
		// It may be an address with a password, which is not repeated.
		return usagef("an argument without a flag: say -redis before an address")
	case len(in.addresses) == 0:
		return usagef("no Redis is given: say -redis ADDRESS")
	case examination.FailOn != doctor.Error && examination.FailOn != doctor.Warning && examination.FailOn != doctor.Note:
		return usagef("-fail-on %q is none of error, warning and note", in.failOn)
	}
	client, err := in.client(c)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	examination.Findings, err = doctor.Examine(context.Background(), doctor.Config{
		Client: client, Namespace: in.namespace, Timeout: in.timeout, Patience: in.patience,
	})
	if err != nil {
		return &usageError{reason: err.Error()}
	}
	if in.asJSON {
		err = examination.WriteJSON(c.stdout)
	} else {
		err = examination.Write(c.stdout, report.StyleFor(c.stdout, c.getenv))
	}
	if err == nil && examination.Failed() {
		return errFound
	}
	return err
}

// client opens what the flags name.
func (in *doctorInputs) client(c console) (redis.UniversalClient, error) {
	for i, address := range in.addresses {
		if name, ok := strings.CutPrefix(address, "$"); ok {
			if in.addresses[i] = c.getenv(name); in.addresses[i] == "" {
				return nil, usagef("the environment has no variable %s", name)
			}
		}
	}
	config := redisclient.Config{Addresses: in.addresses, Cluster: in.cluster, Master: in.master}
	if in.ca != "" || in.cert != "" || in.key != "" {
		tls, err := redisclient.LoadTLS(in.ca, in.cert, in.key)
		if err != nil {
			return nil, err
		}
		config.TLS = tls
	}
	if in.plain {
		return in.plainClient(config)
	}
	// What is wrong with an address is said by the same words.
	client, err := redisclient.Open("", config)
	if err != nil {
		return nil, &usageError{reason: err.Error()}
	}
	return client, nil
}

// plainClient opens the client that go-redis makes of a URL by itself.
func (in *doctorInputs) plainClient(config redisclient.Config) (redis.UniversalClient, error) {
	if len(in.addresses) > 1 || in.cluster || in.master != "" {
		return nil, usagef("-plain is for one URL of a single server; doctor.Examine examines any client in Go")
	}
	options, err := redis.ParseURL(in.addresses[0])
	if err != nil {
		return nil, &usageError{reason: errPlainURL.Error()}
	}
	if config.TLS != nil {
		options.TLSConfig = config.TLS
	}
	return redis.NewClient(options), nil
}

// errPlainURL does not repeat the URL, which may have a password.
var errPlainURL = errors.New("-plain needs a URL that redis.ParseURL reads: redis://user:password@host:port/database?option=value")

// silence drops what go-redis writes to a log: what matters of it is a finding.
type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}
