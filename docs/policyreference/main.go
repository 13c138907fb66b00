// Command policyreference writes docs/reference/policy.md from the JSON Schema of policies. `make generate` runs it.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

//go:generate go run . -o ../reference/policy.md

func main() {
	out := flag.String("o", "", "the file to write")
	flag.Parse()
	page, err := render(tiers.JSONSchema)
	if err == nil {
		err = os.WriteFile(*out, page, 0o644) //nolint:gosec // a page that everybody reads
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "policyreference:", err)
		os.Exit(1)
	}
}

// schema is the part of JSON Schema that policy.schema.json uses.
type schema struct {
	Ref                  string    `json:"$ref"`
	Type                 string    `json:"type"`
	Description          string    `json:"description"`
	Const                any       `json:"const"`
	Enum                 []string  `json:"enum"`
	Required             []string  `json:"required"`
	Properties           ordered   `json:"properties"`
	AdditionalProperties *extra    `json:"additionalProperties"`
	AnyOf                []*schema `json:"anyOf"`
	MaxProperties        int       `json:"maxProperties"`
	Minimum              *int64    `json:"minimum"`
	Maximum              *int64    `json:"maximum"`
	Defs                 ordered   `json:"$defs"`
}

// extra is additionalProperties: false, or what every other property is.
type extra struct{ *schema }

func (e *extra) UnmarshalJSON(data []byte) error {
	if bytes.Equal(data, []byte("false")) {
		return nil
	}
	e.schema = &schema{}
	return json.Unmarshal(data, e.schema)
}

// ordered are named schemas in the order of the document.
type ordered struct {
	names []string
	of    map[string]*schema
}

func (o *ordered) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, &o.of); err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	if _, err := decoder.Token(); err != nil {
		return err
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return err
		}
		o.names = append(o.names, fmt.Sprint(name))
		var skipped json.RawMessage
		if err := decoder.Decode(&skipped); err != nil {
			return err
		}
	}
	return nil
}

// render returns the page.
func render(document string) ([]byte, error) {
	var s schema
	if err := json.Unmarshal([]byte(document), &s); err != nil {
		return nil, err
	}
	var page bytes.Buffer
	page.WriteString("<!-- Made by `make generate` from tiers/policy.schema.json: change that. -->\n\n# Every key of a policy\n\n" +
		s.Description + " [The guide](../guide/policy.md) explains them, and\n" +
		"[policy.schema.json](../../tiers/policy.schema.json) lets editors complete and check them.\n")
	for _, name := range s.Defs.names {
		if def := s.Defs.of[name]; len(def.Properties.names) > 0 {
			fmt.Fprintf(&page, "\n## %s\n\n", name)
			if def.Description != "" {
				page.WriteString(def.Description + "\n\n")
			}
			page.WriteString("| key | value | meaning |\n|---|---|---|\n")
			for _, key := range def.Properties.names {
				value := def.Properties.of[key]
				meaning := value.Description
				if meaning == "" {
					meaning = s.target(value).Description
				}
				fmt.Fprintf(&page, "| `%s`%s | %s | %s |\n", key, required(def, key), s.value(value), escaped(meaning))
			}
		}
	}
	page.WriteString("\n## Names\n\n| name | form |\n|---|---|\n")
	fmt.Fprintf(&page, "| of a tier, a limit, a unit, a store | 1 to 64 characters of `A–Z a–z 0–9 _ . -` |\n")
	fmt.Fprintf(&page, "| of a tenant, a team, a user | 1 to 256 bytes of any text |\n")
	fmt.Fprintf(&page, "| of an operation rule | `Mutation.createIssue`, a pattern such as `Mutation.delete*`, or `sha256:` and the hash of a document |\n")
	fmt.Fprintf(&page, "| of a key | 1 to 8 parts such as `lang:en,tenant:acme`, 256 bytes at most; `%%2C` is a comma in a value, and `%%25` a percent sign |\n")
	fmt.Fprintf(&page, "| of a path into arguments | `origins`, or up to 8 names such as `input.email` |\n")
	return page.Bytes(), nil
}

func required(def *schema, key string) string {
	for _, name := range def.Required {
		if name == key {
			return " (required)"
		}
	}
	return ""
}

// target returns what a reference names, or the schema itself.
func (s *schema) target(of *schema) *schema {
	if name, ok := strings.CutPrefix(of.Ref, "#/$defs/"); ok {
		return s.Defs.of[name]
	}
	return of
}

// value says what may stand behind a key.
func (s *schema) value(of *schema) string {
	target := s.target(of)
	switch {
	case of.Ref == "#/$defs/label":
		return "a [name](#names)"
	case of.Ref == "#/$defs/argument":
		return "a [path](#names)"
	case of.Ref == "#/$defs/paths":
		return "1 to 8 [paths](#names)"
	case of.Ref == "#/$defs/day":
		return "a day, `2026-12-01`"
	case len(target.Properties.names) > 0:
		name := strings.TrimPrefix(of.Ref, "#/$defs/")
		return "[" + name + "](#" + strings.ToLower(name) + ")"
	case target.Const != nil:
		return fmt.Sprintf("`%v`", target.Const)
	case len(target.Enum) > 0:
		return "`" + strings.Join(target.Enum, "`, `") + "`"
	case target.Type == "object":
		return s.byName(target)
	case target.Type == "integer":
		return "a whole number, " + span(target)
	case target.Type == "boolean":
		return "`true` or `false`"
	}
	return "a text"
}

// byName says what an object of named entries holds.
func (s *schema) byName(of *schema) string {
	entry, null := of.AdditionalProperties.schema, ""
	if len(entry.AnyOf) > 0 {
		entry, null = entry.AnyOf[0], ", or `null`"
	}
	most := ""
	if of.MaxProperties > 0 {
		most = ", at most " + strconv.Itoa(of.MaxProperties)
	}
	return s.value(entry) + " by name" + null + most
}

func span(of *schema) string {
	return fmt.Sprintf("%d to %d", *of.Minimum, *of.Maximum)
}

func escaped(text string) string {
	return strings.ReplaceAll(text, "|", "\\|")
}
