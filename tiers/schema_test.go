package tiers_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// definitions returns those of the schema, to which its root refers.
func definitions(t testing.TB) map[string]any {
	t.Helper()
	var schema map[string]any
	decoder := json.NewDecoder(strings.NewReader(tiers.JSONSchema))
	decoder.UseNumber()
	require.NoError(t, decoder.Decode(&schema))
	require.Equal(t, "#/$defs/Policy", schema["$ref"])
	return asObject(t, schema["$defs"])
}

func asObject(t testing.TB, value any) map[string]any {
	t.Helper()
	require.IsType(t, map[string]any{}, value)
	fields, _ := value.(map[string]any)
	return fields
}

func TestTheSchemaHasTheKeysOfTheGoTypes(t *testing.T) {
	t.Parallel()
	defs := definitions(t)
	for _, value := range []any{
		tiers.Policy{},
		tiers.Tier{},
		tiers.Exception{},
		tiers.OwnerRule{},
		tiers.OwnerException{},
		tiers.UserRule{},
		tiers.UserException{},
		tiers.OperationRule{},
		tiers.Limit{},
		tiers.Hide{},
		tiers.Throttle{},
		tiers.Backstop{},
		tiers.BackstopRule{},
		tiers.CustomRule{},
		tiers.Parameter{},
	} {
		goType := reflect.TypeOf(value)
		def, found := defs[goType.Name()].(map[string]any)
		require.True(t, found, goType.Name())
		require.Equal(t, false, def["additionalProperties"], goType.Name())
		properties := asObject(t, def["properties"])
		var keys, required []string
		for _, field := range reflect.VisibleFields(goType) {
			if field.Anonymous {
				continue
			}
			key, option, _ := strings.Cut(field.Tag.Get("json"), ",")
			require.Equal(t, field.Tag.Get("json"), field.Tag.Get("yaml"), field.Name)
			keys = append(keys, key)
			if option != "omitempty" {
				required = append(required, key)
			}
			require.Contains(t, properties, key)
			property := resolve(t, defs, asObject(t, properties[key]))
			require.Equal(t, schemaType(field.Type), schemaKind(property), "%s.%s", goType.Name(), key)
		}
		require.ElementsMatch(t, keys, slices.Collect(maps.Keys(properties)))
		var named []string
		for _, key := range asList(def["required"]) {
			named = append(named, fmt.Sprint(key))
		}
		require.ElementsMatch(t, required, named, goType.Name())
	}
}

// schemaType returns the type that a Go field has in the schema.
func schemaType(goType reflect.Type) string {
	switch {
	case goType == reflect.TypeFor[tiers.Period](), goType.Kind() == reflect.String:
		return "string"
	case goType.Kind() == reflect.Int, goType.Kind() == reflect.Int64:
		return "integer"
	case goType.Kind() == reflect.Bool:
		return "boolean"
	default:
		return "object"
	}
}

// schemaKind returns the type of a property, also where it follows from its values.
func schemaKind(property map[string]any) string {
	if kind, found := property["type"].(string); found {
		return kind
	}
	if _, found := property["enum"]; found {
		return "string"
	}
	return "integer"
}

func resolve(t testing.TB, defs, schema map[string]any) map[string]any {
	t.Helper()
	if ref, found := schema["$ref"].(string); found {
		return resolve(t, defs, asObject(t, defs[strings.TrimPrefix(ref, "#/$defs/")]))
	}
	return schema
}

func asList(value any) []any {
	list, _ := value.([]any)
	return list
}

func TestTheSchemaAcceptsValidDocuments(t *testing.T) {
	t.Parallel()
	for name, data := range fixtures(t, "valid", "*") {
		require.Empty(t, validate(t, data), name)
	}
	require.Empty(t, validate(t, []byte(document)))
}

func TestTheSchemaRefusesWhatItCanSee(t *testing.T) {
	t.Parallel()
	// What only the compiler can see: references, sums, and what YAML has beyond JSON.
	beyond := []string{
		"alias", "anchor_day_of_a_day", "anchor_month_of_a_month", "blocked_and_unlimited", "calendar_of_a_minute", "capacity_octal", "capacity_with_underscore", "default_tier_unknown",
		"custom_across_and_instead", "custom_across_of_tenant", "custom_by_argument", "custom_instead_soft", "custom_of_unknown_parameter",
		"custom_tenant_under_tenant", "custom_twice", "enforce_from_has_a_time", "instead_alone", "instead_by_argument", "instead_of_computed_unit", "instead_soft", "instead_without_limits", "enforce_from_is_no_day", "enforce_from_without_mode", "enforce_from_without_warn",
		"max_cost_with_exponent", "merge_key", "month_in_fixed_window",
		"month_without_calendar", "operation_mode_only", "parameter_taken", "period_too_short", "period_too_long", "second_document", "syntax",
		"team_removes_no_limit", "teams_empty", "tenant_blocked_with_max_cost", "tenant_name_is_a_flag", "tenant_name_with_line_break",
		"percent_of_unlimited_tenant", "tenant_of_unknown_tier", "times_beside_percent", "times_of_blocked_tier", "tenant_of_unlimited_tier_with_limits", "tenant_removes_no_limit",
		"tenant_removes_no_operation_limit", "tier_twice", "too_many_days", "too_many_limits", "too_many_limits_for_one_operation",
		"too_many_limits_of_levels", "users_of_unlimited_tier", "users_remove_no_limit",
		"unknown_anchor", "unlimited_with_limits", "window_sliding_too_large", "window_with_refill",
		"across_without_by", "by_counts_points", "by_of_a_document", "by_of_a_tier", "by_of_users", "too_many_limits_across", "too_many_limits_shared",
		"too_many_limits_by_value", "too_many_units", "units_of_a_document", "units_of_points", "units_without_paths", "units_remove_nothing",
		"zone_of_the_machine", "zone_unknown", "zone_without_calendar",
	}
	seen := 0
	for name, data := range fixtures(t, "invalid", "*.yaml") {
		if !slices.Contains(beyond, strings.TrimSuffix(name, ".yaml")) {
			require.NotEmpty(t, validate(t, data), name)
			seen++
		}
	}
	require.Greater(t, seen, 40)
}

// validate checks a document against the schema and returns what is wrong, one problem at most.
func validate(t testing.TB, data []byte) string {
	t.Helper()
	var value any
	if yaml.Unmarshal(data, &value) != nil {
		return "not YAML"
	}
	v := validator{t: t, defs: definitions(t)}
	return v.problem(map[string]any{"$ref": "#/$defs/Policy"}, asJSON(value))
}

// asJSON turns keys that are numbers in YAML, and dates, into the text that they are in JSON.
func asJSON(value any) any {
	switch mapping := value.(type) {
	case map[string]any:
		for key := range mapping {
			mapping[key] = asJSON(mapping[key])
		}
	case map[any]any:
		object := make(map[string]any)
		for key := range mapping {
			object[fmt.Sprint(key)] = asJSON(mapping[key])
		}
		return object
	case time.Time:
		return mapping.Format(time.DateOnly)
	}
	return value
}

// validator knows the keywords that the schema uses, and fails the test at any other.
type validator struct {
	t    testing.TB
	defs map[string]any
}

func (v *validator) problem(schema map[string]any, value any) string {
	for _, keyword := range slices.Sorted(maps.Keys(schema)) {
		if problem := v.keyword(schema, keyword, value); problem != "" {
			return problem
		}
	}
	return ""
}

func (v *validator) keyword(schema map[string]any, keyword string, value any) string {
	holds := true
	argument := schema[keyword]
	text, isText := value.(string)
	object, isObject := value.(map[string]any)
	list, isList := value.([]any)
	switch keyword {
	case "description":
	case "$ref":
		return v.problem(resolve(v.t, v.defs, map[string]any{keyword: argument}), value)
	case "anyOf":
		holds = slices.ContainsFunc(asList(argument), func(option any) bool {
			return v.problem(asObject(v.t, option), value) == ""
		})
	case "type":
		holds = typeOf(value) == argument
	case "const":
		holds = number(value) != nil && number(value).Cmp(number(argument)) == 0
	case "enum":
		holds = slices.Contains(asList(argument), value)
	case "pattern":
		holds = !isText || regexp.MustCompile(fmt.Sprint(argument)).MatchString(text)
	case "minLength":
		holds = !isText || big.NewRat(int64(utf8.RuneCountInString(text)), 1).Cmp(number(argument)) >= 0
	case "maxLength":
		holds = !isText || big.NewRat(int64(utf8.RuneCountInString(text)), 1).Cmp(number(argument)) <= 0
	case "minimum":
		holds = number(value) == nil || number(value).Cmp(number(argument)) >= 0
	case "maximum":
		holds = number(value) == nil || number(value).Cmp(number(argument)) <= 0
	case "minProperties":
		holds = !isObject || big.NewRat(int64(len(object)), 1).Cmp(number(argument)) >= 0
	case "maxProperties":
		holds = !isObject || big.NewRat(int64(len(object)), 1).Cmp(number(argument)) <= 0
	case "maxItems":
		holds = !isList || big.NewRat(int64(len(list)), 1).Cmp(number(argument)) <= 0
	case "items":
		for _, item := range list {
			holds = holds && v.problem(asObject(v.t, argument), item) == ""
		}
	case "required":
		for _, key := range asList(argument) {
			_, found := object[fmt.Sprint(key)]
			holds = holds && found
		}
	case "propertyNames":
		for key := range object {
			holds = holds && v.problem(asObject(v.t, argument), key) == ""
		}
	case "properties", "additionalProperties":
		return v.properties(schema, keyword, object)
	default:
		require.Fail(v.t, "the validator does not know a keyword", keyword)
	}
	if !holds {
		return keyword
	}
	return ""
}

func (v *validator) properties(schema map[string]any, keyword string, object map[string]any) string {
	properties, _ := schema["properties"].(map[string]any)
	for key, value := range object {
		property, known := properties[key].(map[string]any)
		other, allowed := schema["additionalProperties"].(map[string]any)
		switch {
		case keyword == "properties" && known:
			if problem := v.problem(property, value); problem != "" {
				return key + "/" + problem
			}
		case keyword == "additionalProperties" && !known && !allowed:
			return keyword
		case keyword == "additionalProperties" && !known:
			if problem := v.problem(other, value); problem != "" {
				return key + "/" + problem
			}
		}
	}
	return ""
}

func number(value any) *big.Rat {
	switch n := value.(type) {
	case int:
		return big.NewRat(int64(n), 1)
	case float64:
		return new(big.Rat).SetFloat64(n)
	case json.Number:
		rat, _ := new(big.Rat).SetString(n.String())
		return rat
	default:
		return nil
	}
}

func typeOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case string:
		return "string"
	case bool:
		return "boolean"
	case map[string]any:
		return "object"
	case []any:
		return "array"
	}
	if n := number(value); n != nil && n.IsInt() {
		return "integer"
	}
	return "number"
}
