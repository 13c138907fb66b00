package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/pricing"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/report"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/source"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// usageError is a mistake in the arguments.
type usageError struct{ reason string }

func (e *usageError) Error() string { return e.reason }

func usagef(format string, args ...any) error {
	return &usageError{reason: fmt.Sprintf(format, args...)}
}

// paths is a flag that can be given several times.
type paths []string

func (p *paths) String() string { return strings.Join(*p, " ") }

func (p *paths) Set(value string) error {
	if value == "" {
		return errors.New("the path is empty")
	}
	*p = append(*p, value)
	return nil
}

// newFlags returns the flags of a sub-command, whose help is the text and the list of the flags.
func newFlags(c console, name, help string) *flag.FlagSet {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	// What flag writes by itself stands in the error that it returns.
	flags.SetOutput(io.Discard)
	flags.Usage = func() {
		flags.SetOutput(c.stdout)
		fmt.Fprint(c.stdout, strings.TrimPrefix(help, "\n"), "\nFlags:\n\n")
		flags.PrintDefaults()
	}
	return flags
}

// parse reads flags and other arguments, in any order, and returns the others.
func parse(flags *flag.FlagSet, args []string) ([]string, error) {
	// flag writes the whole help text below each mistake, which hides it.
	help := flags.Usage
	flags.Usage = func() {}
	var others []string
	for {
		err := flags.Parse(args)
		if errors.Is(err, flag.ErrHelp) {
			help()
			return nil, err
		}
		if err != nil {
			return nil, usagef("%v", err)
		}
		rest := flags.Args()
		if len(rest) == 0 {
			return others, nil
		}
		if at := len(args) - len(rest); at > 0 && args[at-1] == "--" {
			return append(others, rest...), nil
		}
		others = append(others, rest[0])
		args = rest[1:]
	}
}

// pricingInputs are the flags that say how operations are priced.
type pricingInputs struct {
	variables string
	config    string
}

func (in *pricingInputs) register(flags *flag.FlagSet) {
	flags.StringVar(&in.variables, "variables", "", "JSON `file` of values for the variables of all operations, or directory of NAME.variables.json")
	flags.StringVar(&in.config, "config", "", "YAML or JSON `file` of weights, list sizes and defaults")
}

// load reads the configuration and the variables.
func (in *pricingInputs) load() (cost.Config, *source.Variables, error) {
	cfg, err := source.LoadConfig(in.config)
	if err != nil {
		return cfg, nil, err
	}
	variables, err := source.LoadVariables(in.variables)
	return cfg, variables, err
}

// priceAll prices operations and shows on a terminal how far it is.
func priceAll(c console, pricer *pricing.Pricer, operations []*source.Operation) []pricing.Result {
	progress := newProgress(c)
	defer progress.Done()
	results := make([]pricing.Result, len(operations))
	for i, op := range operations {
		progress.Step(i, len(operations), op.Name)
		results[i] = pricer.Price(op)
	}
	return results
}

func newProgress(c console) *report.Progress {
	if !report.IsTerminal(c.stderr) {
		return &report.Progress{}
	}
	return &report.Progress{Out: c.stderr}
}
