package main

import (
	"errors"
	"flag"
	"strconv"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/pricing"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/report"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/source"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// pricingInputs are the flags that say how operations are priced.
type pricingInputs struct {
	variables string
	config    string
	// byName are values of variables, sizes are list sizes; dropped and local are directives of clients.
	byName  assignments
	sizes   assignments
	dropped cli.Paths
	local   cli.Paths
}

func (in *pricingInputs) register(flags *flag.FlagSet) {
	flags.StringVar(&in.variables, "variables", "", "JSON `file` of values for the variables of all operations, or directory of NAME.variables.json")
	flags.StringVar(&in.config, "config", "", "YAML or JSON `file` of weights, list sizes and defaults")
	flags.Var(&in.byName, "variable", "`NAME=VALUE` for variables of the name that have no value otherwise, such as first=50; can be given several times")
	flags.Var(&in.sizes, "list-size", "`PATTERN=N` for lists that nothing else sizes, such as *.errors=1; can be given several times")
	flags.Var(&in.dropped, "client-directive", "`name` of a directive that clients leave out; can be given several times")
	flags.Var(&in.local, "client-only", "`name` of a directive that marks what clients do not send; can be given several times")
}

// load reads the configuration and the variables.
func (in *pricingInputs) load() (source.Config, *source.Variables, error) {
	cfg, err := source.LoadConfig(in.config)
	if err != nil {
		return cfg, nil, err
	}
	for _, given := range in.byName {
		if cfg.Variables == nil {
			cfg.Variables = map[string]any{}
		}
		cfg.Variables[strings.TrimPrefix(given.name, "$")] = source.Value(given.value)
	}
	for _, given := range in.sizes {
		size, err := strconv.Atoi(given.value)
		if err != nil || size < 0 {
			return cfg, nil, cli.Usagef("-list-size %s=%s: the size is not a number from 0 on", given.name, given.value)
		}
		if cfg.ListSizes == nil {
			cfg.ListSizes = map[string]cost.ListSize{}
		}
		cfg.ListSizes[given.name] = cost.ListSize{AssumedSize: &size}
	}
	cfg.Client.Dropped = append(cfg.Client.Dropped, names(in.dropped)...)
	cfg.Client.Local = append(cfg.Client.Local, names(in.local)...)
	variables, err := source.LoadVariables(in.variables)
	return cfg, variables, err
}

// names are those of directives, which may be given with their @.
func names(directives cli.Paths) []string {
	var names []string
	for _, directive := range directives {
		names = append(names, strings.TrimPrefix(directive, "@"))
	}
	return names
}

// assignments is a flag NAME=VALUE that can be given several times.
type assignments []assignment

type assignment struct{ name, value string }

func (a *assignments) String() string {
	var texts []string
	for _, one := range *a {
		texts = append(texts, one.name+"="+one.value)
	}
	return strings.Join(texts, " ")
}

func (a *assignments) Set(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return errors.New("it is not of the form NAME=VALUE")
	}
	*a = append(*a, assignment{name, value})
	return nil
}

// priceAll prices operations and shows on a terminal how far it is.
func priceAll(c cli.Console, pricer *pricing.Pricer, operations []*source.Operation) []pricing.Result {
	progress := newProgress(c)
	defer progress.Done()
	results := make([]pricing.Result, len(operations))
	for i, op := range operations {
		progress.Step(i, len(operations), op.Name)
		results[i] = pricer.Price(op)
	}
	return results
}

func newProgress(c cli.Console) *report.Progress {
	if !report.IsTerminal(c.Stderr) {
		return &report.Progress{}
	}
	return &report.Progress{Out: c.Stderr}
}
