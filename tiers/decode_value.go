package tiers

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// version reads that of the document.
func (d *decoder) version(at path, node *yaml.Node, into *int) {
	var version int64
	d.number(at, node, &version)
	if version == 0 && !d.broken[at] {
		d.fail(at, versionProblem)
	}
	// A number that an int does not hold must not become one that fits.
	*into = int(max(-1, min(version, 1<<30)))
}

// paths keeps nil for null.
func (d *decoder) paths(at path, node *yaml.Node, into *[]string) {
	if isNull(node) {
		return
	}
	if node.Kind != yaml.SequenceNode {
		d.fail(at, kindOf(node)+"; a list of paths fits, such as [origins, destinations]")
		return
	}
	for _, element := range node.Content {
		if element.Kind != yaml.ScalarNode || element.Tag != "!!str" {
			d.fail(at, kindOf(element)+" in the list; text fits")
			return
		}
		*into = append(*into, element.Value)
	}
}

func (d *decoder) text(at path, node *yaml.Node, into *string) {
	switch {
	case node.Kind != yaml.ScalarNode || node.Tag != "!!str":
		d.fail(at, kindOf(node)+"; text fits")
	case node.Value == "":
		d.fail(at, "empty; a value fits, or leave the key out")
	default:
		*into = node.Value
	}
}

func (d *decoder) number(at path, node *yaml.Node, into *int64) {
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

func (d *decoder) factor(at path, node *yaml.Node, into *Factor) {
	var n int64
	d.number(at, node, &n)
	if n == 0 && !d.broken[at] {
		d.fail(at, "0; at least 1 fits, or leave the key out")
	}
	*into = Factor(n)
}

func (d *decoder) period(at path, node *yaml.Node, into *Period) {
	var text string
	d.text(at, node, &text)
	if d.broken[at] {
		return
	}
	if err := into.UnmarshalText([]byte(text)); err != nil {
		d.fail(at, echo(text)+" is "+err.Error())
	}
}

func (d *decoder) flag(at path, node *yaml.Node, into *bool) {
	if node.Kind != yaml.ScalarNode || node.Tag != "!!bool" {
		d.fail(at, kindOf(node)+"; true or false fits")
		return
	}
	*into = strings.EqualFold(node.Value, "true")
}

// isDate reports whether YAML takes a node for a time: a date without quotes.
func isDate(node *yaml.Node) bool {
	return node.Kind == yaml.ScalarNode && node.Tag == "!!timestamp"
}

// isKey reports whether a node can be a key. A tenant named by a number means its digits as they are written.
func isKey(node *yaml.Node) bool {
	return node.Kind == yaml.ScalarNode && (node.Tag == "!!str" || node.Tag == "!!int")
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
