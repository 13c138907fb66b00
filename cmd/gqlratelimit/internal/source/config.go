package source

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"go.yaml.in/yaml/v3"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// pricing is the file of a pricing configuration, in YAML or JSON: the fields of [cost.Config] that
// change prices.
type pricing struct {
	DefaultListSize    int                           `yaml:"defaultListSize"`
	Weights            map[string]float64            `yaml:"weights"`
	ValueWeights       map[string]map[string]float64 `yaml:"valueWeights"`
	ListSizes          map[string]listSize           `yaml:"listSizes"`
	Connections        connections                   `yaml:"connections"`
	RequireListSizes   bool                          `yaml:"requireListSizes"`
	Base               map[ast.Operation]float64     `yaml:"base"`
	FreeFields         []string                      `yaml:"freeFields"`
	WorkLimit          int                           `yaml:"workLimit"`
	RefuseOverWork     bool                          `yaml:"refuseOverWork"`
	MaxRepresentations int                           `yaml:"maxRepresentations"`
	MaxValues          int                           `yaml:"maxValues"`
	AliasWeight        float64                       `yaml:"aliasWeight"`
	Shape              shape                         `yaml:"shape"`
}

type shape struct {
	MaxDepth              int `yaml:"maxDepth"`
	MaxIntrospectionDepth int `yaml:"maxIntrospectionDepth"`
	MaxAliases            int `yaml:"maxAliases"`
	MaxRootFields         int `yaml:"maxRootFields"`
	MaxDirectives         int `yaml:"maxDirectives"`
	MaxListNodes          int `yaml:"maxListNodes"`
}

type listSize struct {
	AssumedSize               *int     `yaml:"assumedSize"`
	SlicingArguments          []string `yaml:"slicingArguments"`
	SizedFields               []string `yaml:"sizedFields"`
	RequireOneSlicingArgument *bool    `yaml:"requireOneSlicingArgument"`
}

type connections struct {
	SlicingArguments []string `yaml:"slicingArguments"`
	SizedFields      []string `yaml:"sizedFields"`
}

// LoadConfig reads a pricing configuration. An empty path is the default. Unknown keys are refused,
// because a misspelt one would silently change prices.
func LoadConfig(path string) (cost.Config, error) {
	if path == "" {
		return cost.Config{}, nil
	}
	text, err := read(path, maxConfigBytes)
	if err != nil {
		return cost.Config{}, err
	}
	var file pricing
	decoder := yaml.NewDecoder(strings.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil && !errors.Is(err, io.EOF) {
		return cost.Config{}, yamlProblem(path, err)
	}
	cfg := cost.Config{
		DefaultListSize:    file.DefaultListSize,
		Weights:            file.Weights,
		ValueWeights:       file.ValueWeights,
		Connections:        cost.Connections(file.Connections),
		RequireListSizes:   file.RequireListSizes,
		Base:               file.Base,
		FreeFields:         file.FreeFields,
		WorkLimit:          file.WorkLimit,
		RefuseOverWork:     file.RefuseOverWork,
		MaxRepresentations: file.MaxRepresentations,
		MaxValues:          file.MaxValues,
		AliasWeight:        file.AliasWeight,
		Shape:              cost.Shape(file.Shape),
		ListSizes:          make(map[string]cost.ListSize, len(file.ListSizes)),
	}
	for coordinate, size := range file.ListSizes {
		cfg.ListSizes[coordinate] = cost.ListSize(size)
	}
	return cfg, nil
}

// yamlProblem keeps the first of the mistakes that yaml reports, with its line.
func yamlProblem(path string, err error) error {
	message := err.Error()
	var mistakes *yaml.TypeError
	if errors.As(err, &mistakes) && len(mistakes.Errors) > 0 {
		message = mistakes.Errors[0]
	}
	problem := &cli.FileError{File: path}
	message = strings.TrimPrefix(message, "yaml: ")
	if _, scanned := fmt.Sscanf(message, "line %d:", &problem.Line); scanned == nil {
		_, message, _ = strings.Cut(message, ": ")
	}
	problem.Message = "the configuration is not valid: " + strings.Replace(message, "in type source.pricing", "in the configuration", 1)
	return problem
}
