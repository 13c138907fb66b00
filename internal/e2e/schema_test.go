package e2e_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// TestEveryGoldenAnswerKeepsToThePublishedSchema holds what servers send to what clients are promised.
func TestEveryGoldenAnswerKeepsToThePublishedSchema(t *testing.T) {
	t.Parallel()
	var schema map[string]any
	require.NoError(t, json.Unmarshal([]byte(ratelimitclient.JSONSchema), &schema))
	paths, err := filepath.Glob(filepath.Join("testdata", "golden", "*.txt"))
	require.NoError(t, err)
	facts, refusals := 0, 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, answer := range answersIn(string(text)) {
			extensions, _ := answer["extensions"].(map[string]any)
			if limits, found := extensions["rateLimit"]; found {
				require.Empty(t, mismatch(schema, map[string]any{"$ref": "#/$defs/RateLimit"}, limits), path)
				facts++
			}
			list, _ := answer["errors"].([]any)
			for _, element := range list {
				refusal, _ := element.(map[string]any)["extensions"].(map[string]any)
				if code, _ := refusal["code"].(string); refusal == nil || strings.HasPrefix(code, "GRAPHQL_") {
					// gqlgen's own, of documents that do not validate and mutations by GET.
					continue
				}
				require.True(t, ratelimitclient.IsCode(fmt.Sprint(refusal["code"])), path)
				require.Empty(t, mismatch(schema, map[string]any{"$ref": "#/$defs/Refusal"}, refusal), path)
				refusals++
			}
		}
	}
	require.Greater(t, facts, 200)
	require.Greater(t, refusals, 100)
}

func TestTheSchemaRefusesWhatIsNoAnswer(t *testing.T) {
	t.Parallel()
	var schema map[string]any
	require.NoError(t, json.Unmarshal([]byte(ratelimitclient.JSONSchema), &schema))
	for text, want := range map[string]string{
		`{"limits": [], "tier": "free", "mode": "enforce", "replayed": false, "later": 1}`: "",
		`{"limits": [], "tier": "free", "mode": "enforce"}`:                                "limits needs required replayed",
		`{"cost": 3, "charged": 3}`:                                                        "",
		`{"limit": "minute", "unit": "points", "capacity": 9}`:                             "",
		`{"capacity": 9}`:                "capacity needs required limit",
		`{"limit": 9, "unit": "points"}`: "limit: type",
		`{"limits": {}, "tier": "free", "mode": "enforce", "replayed": false}`:                 "limits: type",
		`{"limits": [{"name": "a"}], "tier": "free", "mode": "enforce", "replayed": false}`:    "limits: items: required level",
		`{"limits": [], "tier": "free", "mode": "enforce", "replayed": false, "cost": -1}`:     "cost: minimum",
		`{"limits": [], "tier": "free", "mode": "enforce", "replayed": false, "charged": 1.5}`: "charged: type",
		`{"limits": [], "tier": "free", "mode": "enforce", "replayed": "no"}`:                  "replayed: type",
	} {
		var value any
		require.NoError(t, json.Unmarshal([]byte(text), &value))
		require.Equal(t, want, mismatch(schema, schema, value), text)
	}
}

// answerStart is where an answer begins: at the start of a line, or behind the name of an event's field.
var answerStart = regexp.MustCompile(`(?m)^(data: )?\{`)

// answersIn returns the GraphQL responses in a transcript, out of the messages of a WebSocket too.
func answersIn(transcript string) []map[string]any {
	var answers []map[string]any
	for _, at := range answerStart.FindAllStringIndex(transcript, -1) {
		var answer map[string]any
		if json.NewDecoder(strings.NewReader(transcript[at[1]-1:])).Decode(&answer) != nil {
			continue
		}
		switch payload := answer["payload"].(type) {
		case map[string]any:
			answer = payload
		case []any:
			answer = map[string]any{"errors": payload}
		}
		answers = append(answers, answer)
	}
	return answers
}

// mismatch says where a value differs from a schema, in the keywords that ours uses; empty if nowhere.
func mismatch(root, schema map[string]any, value any) string {
	for keyword, argument := range schema {
		problem := ""
		switch keyword {
		case "$schema", "$id", "$defs", "title", "description":
		case "$ref":
			name := strings.TrimPrefix(argument.(string), "#/$defs/")
			problem = mismatch(root, root["$defs"].(map[string]any)[name].(map[string]any), value)
		case "type":
			if !isOfType(argument.(string), value) {
				problem = "type"
			}
		case "minimum":
			if number, isNumber := value.(float64); isNumber && number < argument.(float64) {
				problem = "minimum"
			}
		case "dependentRequired":
			problem = lackingBeside(argument.(map[string]any), value)
		case "required":
			problem = lacking(argument.([]any), value)
		case "properties":
			problem = mismatchIn(root, argument.(map[string]any), value)
		case "items":
			list, _ := value.([]any)
			for _, element := range list {
				if found := mismatch(root, argument.(map[string]any), element); found != "" {
					problem = "items: " + found
				}
			}
		default:
			problem = "unknown keyword " + keyword
		}
		if problem != "" {
			return problem
		}
	}
	return ""
}

func lacking(required []any, value any) string {
	object, _ := value.(map[string]any)
	for _, key := range required {
		if _, found := object[key.(string)]; !found {
			return "required " + key.(string)
		}
	}
	return ""
}

// lackingBeside says which key is missing that another one needs.
func lackingBeside(dependent map[string]any, value any) string {
	object, _ := value.(map[string]any)
	for key, required := range dependent {
		if _, found := object[key]; found {
			if missing := lacking(required.([]any), value); missing != "" {
				return key + " needs " + missing
			}
		}
	}
	return ""
}

func mismatchIn(root, properties map[string]any, value any) string {
	object, _ := value.(map[string]any)
	for key, property := range properties {
		if member, found := object[key]; found {
			if problem := mismatch(root, property.(map[string]any), member); problem != "" {
				return key + ": " + problem
			}
		}
	}
	return ""
}

func isOfType(name string, value any) bool {
	number, isNumber := value.(float64)
	switch value.(type) {
	case map[string]any:
		return name == "object"
	case []any:
		return name == "array"
	case string:
		return name == "string"
	case bool:
		return name == "boolean"
	default:
		return isNumber && (name == "number" || name == "integer" && number == math.Trunc(number))
	}
}

func TestWhatTheReferenceShowsHolds(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "responses.md"))
	require.NoError(t, err)
	block := func(language, containing string) string {
		for _, found := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(found[1], containing) {
				return found[1]
			}
		}
		require.Fail(t, "no such block", "%s with %s", language, containing)
		return ""
	}
	policy, err := tiers.Parse([]byte("version: 1\ndefault: free\n" + block("yaml", "hide:")))
	require.NoError(t, err)
	snapshot, err := tiers.Compile(policy)
	require.NoError(t, err)
	require.Equal(t, tiers.Hide{Limits: true, Remaining: true, Owners: true}, snapshot.Rules(tiers.Subject{Tenant: "a"}, tiers.Selection{}).Hide)
	require.Equal(t, tiers.Hide{}, snapshot.Rules(tiers.Subject{Tenant: "partner"}, tiers.Selection{}).Hide)

	var schema map[string]any
	require.NoError(t, json.Unmarshal([]byte(ratelimitclient.JSONSchema), &schema))
	for _, form := range []string{`{"cost"`, `"limits"`} {
		var shown any
		require.NoError(t, json.Unmarshal([]byte(block("json", form)), &shown))
		require.Empty(t, mismatch(schema, schema, shown))
	}

	for _, code := range regexp.MustCompile("\\| `([A-Z_]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		require.True(t, ratelimitclient.IsCode(code[1]), code[1])
	}
}
