package tiers

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// paths returns nil for null.
func (d *decoder) paths(at path, node *yaml.Node) []string {
	if isNull(node) {
		return nil
	}
	var paths []string
	if node.Kind != yaml.SequenceNode {
		d.fail(at, kindOf(node)+"; a list of paths fits, such as [origins, destinations]")
		return paths
	}
	for _, element := range node.Content {
		if element.Kind != yaml.ScalarNode || element.Tag != "!!str" {
			d.fail(at, kindOf(element)+" in the list; text fits")
			return paths
		}
		paths = append(paths, element.Value)
	}
	return paths
}

func (d *decoder) text(into *string) func(path, *yaml.Node) {
	return func(at path, node *yaml.Node) {
		switch {
		case node.Kind != yaml.ScalarNode || node.Tag != "!!str":
			d.fail(at, kindOf(node)+"; text fits")
		case node.Value == "":
			d.fail(at, "empty; a value fits, or leave the key out")
		default:
			*into = node.Value
		}
	}
}

// date reads text, and what YAML takes for a time: a date without quotes.
func (d *decoder) date(into *string) func(path, *yaml.Node) {
	return func(at path, node *yaml.Node) {
		if node.Kind == yaml.ScalarNode && node.Tag == "!!timestamp" {
			*into = node.Value
			return
		}
		d.text(into)(at, node)
	}
}

func (d *decoder) number(into *int64) func(path, *yaml.Node) {
	return func(at path, node *yaml.Node) {
		digits := strings.TrimPrefix(node.Value, "-")
		switch {
		case node.Kind != yaml.ScalarNode || node.Tag != "!!int" && node.Tag != "!!float":
			d.fail(at, kindOf(node)+"; a whole number fits")
			return
		case strings.Trim(digits, "0123456789") != "" || len(digits) > 1 && digits[0] == '0':
			// YAML reads 010 as 8, 1_000 as 1000 and 0x10 as 16; JSON and most people do not.
			d.fail(at, echo(node.Value)+" is not a whole number in plain digits")
			return
		}
		n, err := strconv.ParseInt(node.Value, 10, 64)
		if err != nil {
			d.fail(at, echo(node.Value)+" is out of range; numbers of 64 bits fit, up to 9223372036854775807")
			return
		}
		*into = n
	}
}

func (d *decoder) factor(into *Factor) func(path, *yaml.Node) {
	return func(at path, node *yaml.Node) {
		var n int64
		d.number(&n)(at, node)
		if n == 0 && !d.broken[at] {
			d.fail(at, "0; at least 1 fits, or leave the key out")
		}
		*into = Factor(n)
	}
}

func (d *decoder) flag(into *bool) func(path, *yaml.Node) {
	return func(at path, node *yaml.Node) {
		if node.Kind != yaml.ScalarNode || node.Tag != "!!bool" {
			d.fail(at, kindOf(node)+"; true or false fits")
			return
		}
		*into = strings.EqualFold(node.Value, "true")
	}
}

func isNull(node *yaml.Node) bool {
	return node.Kind == yaml.ScalarNode && node.Tag == "!!null"
}

// kindOf says what a node is, without its value, which may be long.
func kindOf(node *yaml.Node) string {
	switch node.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	switch node.Tag {
	case "!!null":
		return "null"
	case "!!str":
		return "text"
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "true or false"
	case "!!timestamp":
		return "a date"
	case "!!merge":
		return "a merge key"
	default:
		return "of another type"
	}
}

func (d *decoder) parameter(at path, node *yaml.Node) Parameter {
	var p Parameter
	d.fields(at, node, []field{
		{"header", d.text(&p.Header)},
		{"claim", d.text(&p.Claim)},
		{"query", d.text(&p.Query)},
		{"path", d.number(&p.Path)},
		{"variable", d.text(&p.Variable)},
	})
	return p
}

func (d *decoder) custom(at path, node *yaml.Node) CustomRule {
	var r CustomRule
	d.fields(at, node, []field{
		{"mode", d.text(&r.Mode)},
		{"enforceFrom", d.date(&r.EnforceFrom)},
		{"failMode", d.text(&r.FailMode)},
		{"instead", d.flag(&r.Instead)},
		{"across", d.flag(&r.Across)},
		{"limits", func(at path, node *yaml.Node) { r.Limits = collect(d, at, node, d.limit) }},
	})
	return r
}
