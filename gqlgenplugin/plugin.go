// Package gqlgenplugin is a plugin for gqlgen's code generator that gives a schema the directives
// @cost, @costWhen and @listSize, so that nothing has to be copied into it or written into gqlgen.yml.
//
// It is used from a generator of one's own, as gqlgen wants it for every plugin:
//
//	cfg, err := config.LoadConfigFromDefaultLocations()
//	…
//	err = api.Generate(cfg, api.AddPlugin(gqlgenplugin.New(cfg, gqlgenplugin.Config{})))
//
// It does three things, and a fourth if it is asked to ([Config.RateLimitField]). It adds the definitions of the directives, unless the schema has them. It sets
// skip_runtime for them, unless gqlgen.yml says something else, because they have nothing to do while
// a field is resolved. And it checks the weights and list sizes of the schema as the server does when
// it starts, so that a mistake in them stops the generator.
//
// The package imports gqlgen's code generator. A server that is generated with it does not import the
// package, and so builds nothing of that.
package gqlgenplugin

import (
	"fmt"

	"github.com/99designs/gqlgen/codegen/config"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// Config says how a [Plugin] works. The zero value is the default in each field.
type Config struct {
	// Cost is what the schema is checked with: that which the server gives to the extension. It matters
	// where weights or list sizes come by coordinate, or where RequireListSizes asks for all of them.
	Cost cost.Config
	// RateLimitField adds the field rateLimit to the query type, with which clients read their budget, as
	// ratelimit-field.graphqls defines it, and binds its type to ratelimitclient.Budget. gqlgen then asks for its
	// resolver, whose one line calls ratelimit.BudgetFromContext. In a federation at most one subgraph
	// should have it.
	RateLimitField bool
}

// Plugin is a plugin for one run of gqlgen's code generator. Make it with [New]. It is not safe for
// concurrent use, which gqlgen makes none of.
type Plugin struct {
	gqlgen *config.Config
	cfg    Config
}

// New returns a plugin for api.AddPlugin. The configuration is the one that api.Generate is given: the
// plugin reads its schema to see which directives it defines. Add it after plugins that inject
// definitions of their own.
func New(gqlgen *config.Config, cfg Config) *Plugin {
	return &Plugin{gqlgen: gqlgen, cfg: cfg}
}

// Name returns ratelimit.
func (*Plugin) Name() string { return "ratelimit" }

// InjectSourcesEarly returns the definitions that the schema lacks, and the field rateLimit if it is asked
// for, whose Go type it notes in the configuration. The error is a
// [*DefinitionError], or several joined, if a definition of the schema cannot be read by the server.
//
// In a federation subgraph they are part of its SDL, because composition knows no directive that
// nobody defines, unless the schema imports them with @link and so has them from there.
func (p *Plugin) InjectSourcesEarly() ([]*ast.Source, error) {
	found := definitionsIn(p.gqlgen.Sources)
	missing, err := found.missing()
	if err != nil {
		return nil, err
	}
	var hidden, published ast.DirectiveDefinitionList
	for _, definition := range missing {
		if p.gqlgen.Federation.IsDefined() && !found.imported[definition.Name] {
			published = append(published, definition)
		} else {
			hidden = append(hidden, definition)
		}
	}
	var sources []*ast.Source
	outside := func(name, input string) error {
		// gqlgen checks this a moment later, and has no directory before.
		if err := p.gqlgen.Exec.Check(); err != nil {
			return fmt.Errorf("exec of the configuration: %w", err)
		}
		name, err := nameOutside(p.gqlgen.Exec.Dir(), name)
		if err == nil {
			sources = append(sources, &ast.Source{Name: name, Input: input})
		}
		return err
	}
	if len(hidden) > 0 {
		sources = append(sources, &ast.Source{Name: "ratelimit/directives.graphqls", Input: text(hidden), BuiltIn: true})
	}
	if len(published) > 0 {
		if err := outside("ratelimit.directives.graphqls", text(published)); err != nil {
			return nil, err
		}
	}
	if p.cfg.RateLimitField {
		if err := outside("ratelimit.query.graphqls", rateLimitFieldOf(found.query)); err != nil {
			return nil, err
		}
		// By the time of MutateConfig gqlgen has made a model of its own.
		if !p.gqlgen.Models.UserDefined("RateLimit") {
			p.gqlgen.Models.Add("RateLimit", "github.com/gqlgen-ratelimit/ratelimit/ratelimitclient.Budget")
		}
	}
	return sources, nil
}

// MutateSchema changes nothing. It checks the directives of the schema; the error joins a
// [*cost.SchemaError] for each mistake.
func (p *Plugin) MutateSchema(schema *ast.Schema) error {
	_, err := cost.New(schema, p.cfg.Cost)
	return err
}

// MutateConfig tells gqlgen to generate no code for the directives, unless its configuration already
// says something about them.
func (*Plugin) MutateConfig(cfg *config.Config) error {
	if cfg.Directives == nil {
		cfg.Directives = make(map[string]config.DirectiveConfig)
	}
	all, err := definitions()
	if err != nil {
		return err
	}
	for _, definition := range all {
		if _, configured := cfg.Directives[definition.Name]; !configured {
			cfg.Directives[definition.Name] = config.DirectiveConfig{SkipRuntime: true}
		}
	}
	return nil
}
