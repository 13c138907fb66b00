package gqlgenplugin_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/99designs/gqlgen/codegen/config"
	"github.com/99designs/gqlgen/plugin"
	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/gqlgenplugin"
)

var _ interface {
	plugin.Plugin
	plugin.EarlySourcesInjector
	plugin.SchemaMutator
	plugin.ConfigMutator
} = (*gqlgenplugin.Plugin)(nil)

const query = "type Query { products(first: Int!): [String!]! }\n"

// configured returns the configuration of a generator with this schema.
func configured(schema string) *config.Config {
	cfg := config.DefaultConfig()
	cfg.Sources = []*ast.Source{{Name: "graph/shop.graphqls", Input: schema}}
	return cfg
}

// injected returns the names of the injected directives, those that _service{sdl} hides and those
// that it shows, and checks that the schema loads with them.
func injected(t *testing.T, cfg *config.Config) (hidden, published []string) {
	t.Helper()
	sources, err := gqlgenplugin.New(cfg, gqlgenplugin.Config{}).InjectSourcesEarly()
	require.NoError(t, err)
	for _, source := range sources {
		schema, err := gqlparser.LoadSchema(source, &ast.Source{Input: query})
		require.NoError(t, err)
		for _, name := range []string{"cost", "costWhen", "listSize"} {
			switch {
			case schema.Directives[name] == nil:
			case source.BuiltIn:
				hidden = append(hidden, name)
			default:
				published = append(published, name)
			}
		}
	}
	_, err = gqlparser.LoadSchema(append(cfg.Sources, sources...)...)
	require.NoError(t, err)
	return hidden, published
}

func TestTheDefinitionsAreThoseOfTheRepository(t *testing.T) {
	t.Parallel()
	original, err := os.ReadFile(filepath.Join("..", "schema.graphqls"))
	require.NoError(t, err)
	copied, err := os.ReadFile("schema.graphqls")
	require.NoError(t, err)
	require.Equal(t, string(original), string(copied), "run `make generate`")
	original, err = os.ReadFile(filepath.Join("..", "ratelimit-field.graphqls"))
	require.NoError(t, err)
	copied, err = os.ReadFile("ratelimit-field.graphqls")
	require.NoError(t, err)
	require.Equal(t, string(original), string(copied), "run `make generate`")

	original, err = os.ReadFile(filepath.Join("..", "schema.graphqls"))
	require.NoError(t, err)
	cfg := configured(query)
	sources, err := gqlgenplugin.New(cfg, gqlgenplugin.Config{}).InjectSourcesEarly()
	require.NoError(t, err)
	want, err := gqlparser.LoadSchema(&ast.Source{Input: string(original) + query})
	require.NoError(t, err)
	got, err := gqlparser.LoadSchema(append(sources, cfg.Sources...)...)
	require.NoError(t, err)
	for _, name := range []string{"cost", "costWhen", "listSize"} {
		require.Equal(t, want.Directives[name].Description, got.Directives[name].Description)
		require.Equal(t, want.Directives[name].Locations, got.Directives[name].Locations)
		require.Len(t, got.Directives[name].Arguments, len(want.Directives[name].Arguments))
		for i, argument := range want.Directives[name].Arguments {
			require.Equal(t, argument.Name, got.Directives[name].Arguments[i].Name)
			require.Equal(t, argument.Type.String(), got.Directives[name].Arguments[i].Type.String())
			require.Equal(t, argument.DefaultValue.String(), got.Directives[name].Arguments[i].DefaultValue.String())
		}
	}
}

func TestOnlyWhatTheSchemaLacksIsInjected(t *testing.T) {
	t.Parallel()
	const (
		// As in Apollo Federation 2.9.
		costOfApollo = "directive @cost(weight: Int!) on ARGUMENT_DEFINITION | ENUM | FIELD_DEFINITION | INPUT_FIELD_DEFINITION | OBJECT | SCALAR\n"
		listSize     = "directive @listSize(assumedSize: Int, slicingArguments: [String!], sizedFields: [String!], requireOneSlicingArgument: Boolean = false) on FIELD_DEFINITION\n"
	)
	for name, c := range map[string]struct {
		schema string
		want   []string
	}{
		"nothing is defined":   {query, []string{"cost", "costWhen", "listSize"}},
		"@cost is defined":     {costOfApollo + query, []string{"costWhen", "listSize"}},
		"@listSize is defined": {listSize + query, []string{"cost", "costWhen"}},
		"both are defined":     {costOfApollo + listSize + query, []string{"costWhen"}},
		"a definition with less and with more, which can be read": {
			"directive @cost(weight: Float!, note: String) on OBJECT directive @listSize(assumedSize: Int!) on FIELD_DEFINITION\n" + query, []string{"costWhen"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hidden, published := injected(t, configured(c.schema))
			require.Equal(t, c.want, hidden)
			require.Empty(t, published)
		})
	}
}

func TestADefinitionThatTheServerCannotReadIsRefusedWithItsPlace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ definition, directive, reason string }{
		"another way to say a price": {
			"directive @cost(complexity: Int, multipliers: [String!]) on FIELD_DEFINITION", "cost", "it has no argument weight",
		},
		"a weight that is a list": {
			"directive @cost(weight: [Int!]!) on FIELD_DEFINITION", "cost", "its argument weight is of type [Int!]!, not String!",
		},
		"a weight that is a Boolean": {
			"directive @cost(weight: Boolean) on FIELD_DEFINITION", "cost", "its argument weight is of type Boolean, not String!",
		},
		"a directive of queries": {
			"directive @cost(weight: String!) on FIELD", "cost", "it stands on none of",
		},
		"an argument that is required and not read": {
			"directive @cost(weight: String!, per: String!) on FIELD_DEFINITION", "cost", "its argument per means nothing to the server, and is required",
		},
		"a size by another name": {
			"directive @listSize(size: Int) on FIELD_DEFINITION", "listSize", "it has no argument assumedSize or slicingArguments",
		},
		"one slicing argument in the place of a list": {
			"directive @listSize(slicingArguments: String) on FIELD_DEFINITION", "listSize", "its argument slicingArguments is of type String, not [String!]",
		},
		"a list of lists": {
			"directive @listSize(slicingArguments: [[String!]]) on FIELD_DEFINITION", "listSize", "its argument slicingArguments is of type [[String!]], not [String!]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := configured(query + c.definition)
			_, err := gqlgenplugin.New(cfg, gqlgenplugin.Config{}).InjectSourcesEarly()
			var wrong *gqlgenplugin.DefinitionError
			require.ErrorAs(t, err, &wrong)
			require.Equal(t, c.directive, wrong.Directive)
			require.Contains(t, wrong.Reason, c.reason)
			require.ErrorContains(t, err, "graph/shop.graphqls:2: @"+c.directive)
		})
	}
}

func TestBothDefinitionsThatAreWrongAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	cfg := configured(query + "directive @cost on OBJECT directive @listSize on FIELD_DEFINITION")
	_, err := gqlgenplugin.New(cfg, gqlgenplugin.Config{}).InjectSourcesEarly()
	require.ErrorContains(t, err, "@cost")
	require.ErrorContains(t, err, "@listSize")
}

// TestASubgraphPublishesWhatNobodyElseDefines: composition refuses a directive that the SDL of a
// subgraph uses and neither defines nor imports.
func TestASubgraphPublishesWhatNobodyElseDefines(t *testing.T) {
	t.Parallel()
	const link = `extend schema @link(url: "https://specs.apollo.dev/federation/v2.9", import: ["@key", "@cost"])
		directive @link(url: String!, import: [String!]) repeatable on SCHEMA
		`
	cfg := configured(link + query)
	cfg.Federation = config.PackageConfig{Filename: "graph/federation.go"}
	hidden, published := injected(t, cfg)
	require.Equal(t, []string{"cost"}, hidden)
	require.Equal(t, []string{"costWhen", "listSize"}, published)
}

func TestAWrongWeightStopsTheGeneratorAsItStopsTheServer(t *testing.T) {
	t.Parallel()
	check := func(schema string, options gqlgenplugin.Config) error {
		cfg := configured(schema)
		p := gqlgenplugin.New(cfg, options)
		sources, err := p.InjectSourcesEarly()
		require.NoError(t, err)
		loaded, err := gqlparser.LoadSchema(append(cfg.Sources, sources...)...)
		require.NoError(t, err)
		return p.MutateSchema(loaded)
	}
	require.NoError(t, check(query, gqlgenplugin.Config{}))

	var wrong *cost.SchemaError
	err := check(`type Query { products: String @cost(weight: "ten") }`, gqlgenplugin.Config{})
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, "Query.products", wrong.Coordinate)

	const unsized = "type Query { products: [Product!]! } type Product { name: String }"
	require.NoError(t, check(unsized, gqlgenplugin.Config{}))
	err = check(unsized, gqlgenplugin.Config{Cost: cost.Config{RequireListSizes: true}})
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, "Query.products", wrong.Coordinate)
}

func TestADirectiveThatIsConfiguredKeepsItsConfiguration(t *testing.T) {
	t.Parallel()
	cfg := configured(query)
	cfg.Directives["cost"] = config.DirectiveConfig{SkipRuntime: false}
	require.NoError(t, gqlgenplugin.New(cfg, gqlgenplugin.Config{}).MutateConfig(cfg))
	require.False(t, cfg.Directives["cost"].SkipRuntime)
	require.True(t, cfg.Directives["listSize"].SkipRuntime)

	empty := &config.Config{}
	require.NoError(t, gqlgenplugin.New(empty, gqlgenplugin.Config{}).MutateConfig(empty))
	require.True(t, empty.Directives["cost"].SkipRuntime)
}
