package tiers

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// Sizes of policy documents in bytes.
const (
	// DefaultMaxDocument is that of the largest document that is read where nobody says another.
	DefaultMaxDocument = 1 << 20
	// MaxDocument is that of the largest that a reader can be told to take.
	MaxDocument = 16 << 20
)

// ParseConfig is how a policy document is read. The zero value is the default in each field.
type ParseConfig struct {
	// MaxDocument is the size in bytes of the largest document. Zero means [DefaultMaxDocument], 1 MiB, and [MaxDocument] is
	// the most, 16 MiB, which is half a million tenants that are assigned to tiers. Reading takes time and memory by
	// the size: about a second of processor time for 4 MB, and until it is read a hundred times its size.
	MaxDocument int
}

// Parse reads a policy document with the default configuration: [ParseConfig.Parse].
func Parse(data []byte) (Policy, error) {
	return ParseConfig{}.Parse(data)
}

// Parse reads a policy document, YAML or JSON. Anchors, aliases and merge keys are not part of it.
//
// The error is a [*PolicyError] with everything that is wrong: unknown keys, wrong types and
// duplicates as well as what [Compile] finds, each with its line; or it says that the configuration is wrong.
func (c ParseConfig) Parse(data []byte) (Policy, error) {
	most, err := documentBound("ParseConfig", c.MaxDocument)
	if err != nil {
		return Policy{}, err
	}
	policy, _, err := load(data, most)
	return policy, err
}

// Load reads and compiles a policy document with the default configuration: [ParseConfig.Load].
func Load(document []byte, generation uint64) (*Snapshot, error) {
	return ParseConfig{}.Load(document, generation)
}

// Load reads and compiles a policy document, YAML or JSON, in one step. The snapshot has the modes of this moment, and the
// number of the document in its source as its [Snapshot.Generation].
//
// The error is that of [ParseConfig.Parse]: a [*PolicyError] with everything that is wrong, each with its line.
func (c ParseConfig) Load(document []byte, generation uint64) (*Snapshot, error) {
	most, err := documentBound("ParseConfig", c.MaxDocument)
	if err != nil {
		return nil, err
	}
	_, snapshot, err := load(document, most)
	if err != nil {
		return nil, err
	}
	snapshot.family.generation = generation
	return snapshot, nil
}

// documentBound returns the size of the largest document by what a configuration of this name says of it.
func documentBound(config string, maxDocument int) (int, error) {
	if maxDocument < 0 || maxDocument > MaxDocument {
		return 0, fmt.Errorf("tiers: a %s.MaxDocument of %d bytes; 0 is the default, and at most %d fit", config, maxDocument, MaxDocument)
	}
	return cmp.Or(maxDocument, DefaultMaxDocument), nil
}

// load reads and compiles a document of so many bytes at most.
func load(data []byte, most int) (Policy, *Snapshot, error) {
	root, mistake := parseTree(data, most)
	if mistake != nil {
		return Policy{}, nil, policyError([]Mistake{*mistake})
	}
	d := newDecoder(root)
	policy := d.policy()
	f, findings := compile(policy)
	if err := policyError(d.mistakes(findings)); err != nil {
		return Policy{}, nil, err
	}
	f.warn(d.mistake)
	f.lines = d.lines
	return policy, f.at(time.Now(), bucket.Enforce), nil
}

// parseTree returns the root of the only document in the data.
func parseTree(data []byte, most int) (*yaml.Node, *Mistake) {
	if len(data) > most {
		problem := fmt.Sprintf("the document is larger than the %d bytes that fit", most)
		if most < MaxDocument {
			problem += fmt.Sprintf("; MaxDocument of tiers.ParseConfig or policy.Config permits up to %d", MaxDocument)
		}
		return nil, &Mistake{Problem: problem}
	}
	if trimmed := bytes.TrimLeft(data, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '{' {
		data = withoutTabs(data)
	}
	source := yaml.NewDecoder(bytes.NewReader(data))
	var document, next yaml.Node
	err := source.Decode(&document)
	if errors.Is(err, io.EOF) || err == nil && len(document.Content) == 0 {
		return nil, &Mistake{Problem: "the document is empty"}
	}
	if err == nil {
		err = source.Decode(&next)
		if err == nil {
			return nil, &Mistake{Line: next.Line, Column: next.Column, Problem: "a second document begins; one fits"}
		}
	}
	if !errors.Is(err, io.EOF) {
		return nil, syntaxMistake(err)
	}
	return document.Content[0], nil
}

// withoutTabs turns the tabs between the tokens of JSON, which YAML does not allow there, into
// spaces. Lines and columns stay.
func withoutTabs(data []byte) []byte {
	data = bytes.Clone(data)
	inString := false
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			inString = !inString
		case '\\':
			if inString {
				i++
			}
		case '\t':
			if !inString {
				data[i] = ' '
			}
		}
	}
	return data
}

var (
	syntaxLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?((?s).*)$`)
	anchorName = regexp.MustCompile(`(?s)anchor '(.*)'`)
)

// syntaxMistake turns an error of the parser, which may quote an anchor of any length, into a
// mistake. The parser knows no columns.
func syntaxMistake(err error) *Mistake {
	mistake := Mistake{Problem: "not YAML or JSON"}
	parts := syntaxLine.FindStringSubmatch(err.Error())
	if parts == nil {
		return &mistake
	}
	if line, err := strconv.Atoi(parts[1]); err == nil {
		mistake.Line, mistake.Column = line, 1
	}
	reason := parts[2]
	if name := anchorName.FindStringSubmatch(reason); name != nil {
		reason = "unknown anchor " + echo(name[1])
	}
	mistake.Problem += ": " + reason
	return &mistake
}
