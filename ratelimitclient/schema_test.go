package ratelimitclient_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

type schemaDefinition struct {
	Required   []string
	Properties map[string]struct {
		Type        string
		Ref         string `json:"$ref"`
		Description string
		Items       struct {
			Type string
			Ref  string `json:"$ref"`
		}
	}
}

func schemaDefinitions(t *testing.T) map[string]schemaDefinition {
	t.Helper()
	var schema struct {
		Ref  string                      `json:"$ref"`
		Defs map[string]schemaDefinition `json:"$defs"`
	}
	require.NoError(t, json.Unmarshal([]byte(ratelimitclient.JSONSchema), &schema))
	require.Equal(t, "#/$defs/RateLimit", schema.Ref)
	return schema.Defs
}

func TestThePublishedSchemaHasTheKeysAndTypesOfTheGoTypes(t *testing.T) {
	t.Parallel()
	definitions := schemaDefinitions(t)
	for _, value := range []any{
		ratelimitclient.RateLimit{},
		ratelimitclient.Limit{},
		ratelimitclient.Warning{},
		ratelimitclient.Breakdown{},
		ratelimitclient.BreakdownCost{},
		ratelimitclient.BreakdownEntry{},
		ratelimitclient.BreakdownArgumentCost{},
		ratelimitclient.BreakdownList{},
	} {
		goType := reflect.TypeOf(value)
		definition, found := definitions[goType.Name()]
		require.True(t, found, goType.Name())
		var keys []string
		for i := range goType.NumField() {
			field := goType.Field(i)
			key, option, _ := strings.Cut(field.Tag.Get("json"), ",")
			keys = append(keys, key)
			property, found := definition.Properties[key]
			require.True(t, found, "ratelimit.schema.json lacks %s.%s", goType.Name(), key)
			require.NotEmpty(t, property.Description, key)
			elem := ""
			if property.Type == "array" {
				elem = property.Items.Type + property.Items.Ref
			}
			kind, of := schemaTypeOf(field.Type)
			require.Equal(t, kind+of, property.Type+property.Ref+elem, "%s.%s", goType.Name(), key)
			if option == "omitempty" {
				require.NotContains(t, definition.Required, key, "%s may be absent", key)
			}
		}
		require.ElementsMatch(t, keys, slices.Collect(maps.Keys(definition.Properties)), goType.Name())
	}
}

// schemaTypeOf returns the type that a Go type has in the schema, and that of its elements.
func schemaTypeOf(goType reflect.Type) (kind, of string) {
	switch goType.Kind() {
	case reflect.Pointer:
		return schemaTypeOf(goType.Elem())
	case reflect.Slice:
		elem, _ := schemaTypeOf(goType.Elem())
		return "array", elem
	case reflect.Struct:
		return "#/$defs/" + goType.Name(), ""
	case reflect.String:
		return "string", ""
	case reflect.Bool:
		return "boolean", ""
	case reflect.Float64:
		return "number", ""
	default:
		return "integer", ""
	}
}

func TestThePublishedSchemaHasTheKeysOfARefusal(t *testing.T) {
	t.Parallel()
	full := ratelimitclient.Refusal{
		Code: ratelimitclient.CodeRateLimited, ID: "A", HelpURL: "https://example.com/limits", Layer: "address", RetryAfter: 1, Limit: "minute", Level: "team", Owner: "web", Unit: "points",
		Cost: 1, MaxCost: 1, Dearest: "Query.search", DearestList: 9, Rule: "depth", Given: 2, Allowed: 1,
	}
	value := reflect.ValueOf(full)
	for i := range value.NumField() {
		if name := value.Type().Field(i).Name; name != "Message" {
			require.False(t, value.Field(i).IsZero(), "give %s a value here", name)
		}
	}
	definition := schemaDefinitions(t)["Refusal"]
	require.Equal(t, []string{"code"}, definition.Required)
	require.ElementsMatch(t, slices.Collect(maps.Keys(full.Extensions())), slices.Collect(maps.Keys(definition.Properties)))
}
