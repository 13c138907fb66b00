package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit"
)

// errHelp says that the flags asked for nothing but the help text.
var errHelp = flag.ErrHelp

// options is what the flags say.
type options struct {
	// addr is the address to listen on.
	addr string
	// redis holds the addresses or URLs of Redis. Empty means that budgets live in this process, more
	// than one means a cluster.
	redis []string
	// policy is the path of the policy document. Empty means the one that is built in.
	policy string
	// follow takes the policy and the records of tenants from the Redis, where gqlratelimitd puts them.
	follow bool
	// policyMaxBytes is the size of the largest policy document. Zero means the default of package tiers.
	policyMaxBytes int
	// proxies are those that stand in front of the server.
	proxies ratelimit.ProxyConfig
	// latency is how long the slowest hundredth of operations may take before load is shed. Zero sheds nothing.
	latency time.Duration
	// statusOK answers refusals with status 200.
	statusOK bool
}

// parseOptions reads the flags. The help text goes to stderr, and so does what the flag package says
// about a flag that it cannot read.
func parseOptions(args []string, stderr io.Writer) (options, error) {
	var opts options
	var redis string
	flags := flag.NewFlagSet("example", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&opts.addr, "addr", "127.0.0.1:8080", "the `address` to listen on")
	flags.StringVar(&redis, "redis", "",
		"the `address` or URL of Redis, several with commas between them for a cluster; its keys are in the namespace "+namespace+"; without it budgets are kept in memory")
	flags.StringVar(&opts.policy, "policy", "",
		"the policy `file`, read again whenever it changes; without it the policy that is built in")
	flags.BoolVar(&opts.follow, "follow", false,
		"follow what gqlratelimitd, started with -namespace "+namespace+", brings into the Redis of -redis; the policy that is built in holds until then")
	flags.IntVar(&opts.policyMaxBytes, "policy-max-bytes", 0,
		"the size in `bytes` of the largest policy file, at most 16777216; without it 1048576")
	flags.Func("proxies", "the `networks` of proxies whose X-Forwarded-For is believed, such as 10.0.0.0/8, with commas between them",
		func(list string) (err error) {
			opts.proxies.Trusted, err = splitNetworks(list)
			return err
		})
	flags.DurationVar(&opts.latency, "latency", 0,
		"shed load, of the lowest tiers first, while the slowest hundredth of operations takes longer than this `time`, or processors or memory are used up; without it nothing is shed")
	flags.BoolVar(&opts.statusOK, "status-ok", false,
		"answer refusals with status 200, for clients that take any other for a broken connection")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if flags.NArg() > 0 {
		return options{}, fmt.Errorf("unexpected argument %q: there are only flags, see -help", flags.Arg(0))
	}
	if err := checkAddr(opts.addr); err != nil {
		return options{}, err
	}
	var err error
	if opts.redis, err = splitAddresses(redis); err != nil {
		return options{}, err
	}
	switch {
	case opts.latency < 0 || opts.latency > time.Hour:
		return options{}, fmt.Errorf("-latency %v: up to 1h fits", opts.latency)
	case opts.follow && len(opts.redis) == 0:
		return options{}, errors.New("-follow needs the Redis of gqlratelimitd: say -redis as well")
	case opts.follow && opts.policy != "":
		return options{}, errors.New("-follow takes the policy from Redis, and -policy from a file: say one of them")
	}
	return opts, nil
}

func checkAddr(addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("-addr %q is not an address such as 127.0.0.1:8080: %w", addr, err)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("-addr %q: the port has to be a number from 0 to 65535", addr)
	}
	return nil
}

func splitNetworks(list string) ([]netip.Prefix, error) {
	var networks []netip.Prefix
	for text := range strings.SplitSeq(list, ",") {
		network, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("write a network such as 10.0.0.0/8: %w", err)
		}
		networks = append(networks, network)
	}
	return networks, nil
}

func splitAddresses(list string) ([]string, error) {
	if list == "" {
		return nil, nil
	}
	addresses := strings.Split(list, ",")
	for i := range addresses {
		addresses[i] = strings.TrimSpace(addresses[i])
		if addresses[i] == "" {
			// The list is not repeated: a URL in it can hold a password.
			return nil, errors.New("-redis has an empty address between its commas")
		}
	}
	return addresses, nil
}
