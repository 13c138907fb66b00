package main

import (
	"flag"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/pricing"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/source"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

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

// price prices operations under one schema.
func price(schema *source.Schema, cfg cost.Config, variables *source.Variables, operations []*source.Operation) ([]pricing.Result, error) {
	pricer, err := pricing.New(schema.Schema, cfg, variables)
	if err != nil {
		return nil, err
	}
	results := make([]pricing.Result, len(operations))
	for i, op := range operations {
		results[i] = pricer.Price(op)
	}
	return results, nil
}
