// Package lint finds what is wrong, missing or useless in the directives that price a schema.
package lint

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/doctor"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/source"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// Rule names what is looked for.
type Rule string

// The rules.
const (
	// Invalid is a mistake in a directive or in the configuration.
	Invalid Rule = "invalid"
	// UnsizedList is a list that nothing sizes, so that it is priced with the default size.
	UnsizedList Rule = "unsized-list"
	// RepeatedField is a field that its type defines twice in the same way.
	RepeatedField Rule = "repeated-field"
	// UselessWeight is a @cost that says what holds without it.
	UselessWeight Rule = "useless-weight"
	// UselessListSize is a @listSize without an effect: its lists cost nothing, or it is on a field of an
	// interface and all object types have their own.
	UselessListSize Rule = "useless-list-size"
	// UnusedAssumedSize is an assumedSize that something else always beats.
	UnusedAssumedSize Rule = "unused-assumed-size"
	// Overridden is a directive that the configuration replaces.
	Overridden Rule = "overridden"
)

// Finding is one result. An Error stops the server when it starts, a Warning makes prices wrong, and a Note says what could be
// simpler or better known.
type Finding struct {
	Severity doctor.Severity `json:"severity"`
	Rule     Rule            `json:"rule"`
	// Coordinate is the schema coordinate.
	Coordinate string `json:"coordinate"`
	Message    string `json:"message"`
	File       string `json:"file,omitempty"`
	Line       int    `json:"line,omitempty"`
	Column     int    `json:"column,omitempty"`
}

// linter collects findings.
type linter struct {
	schema   *ast.Schema
	cfg      cost.Config
	findings []Finding
}

func (l *linter) add(severity doctor.Severity, rule Rule, coordinate string, at *ast.Position, format string, args ...any) {
	if at == nil {
		at = source.Locate(l.schema, coordinate)
	}
	where := source.At(at, "")
	l.findings = append(l.findings, Finding{
		Severity: severity, Rule: rule, Coordinate: coordinate, Message: fmt.Sprintf(format, args...),
		File: where.File, Line: where.Line, Column: where.Column,
	})
}

// Schema returns what is to be said about a schema and its configuration, by their positions. Lists
// without a size are found only in a schema without an Error.
func Schema(loaded *source.Schema, cfg cost.Config) []Finding {
	schema := loaded.Schema
	l := &linter{schema: schema, cfg: cfg}
	for _, field := range loaded.Repeated {
		l.add(doctor.Warning, RepeatedField, field.Coordinate, field.Position, "the type defines the field twice: remove one")
	}
	estimator, err := cost.New(schema, cfg)
	for _, mistake := range source.SchemaErrors(err) {
		l.add(doctor.Error, Invalid, mistake.Coordinate, nil, "%s", mistake.Reason)
	}
	if estimator != nil {
		for _, coordinate := range estimator.UnsizedLists() {
			l.add(doctor.Warning, UnsizedList, coordinate, nil,
				"nothing says how long the list is: add @listSize, or it is priced with %d elements", cmp.Or(cfg.DefaultListSize, cost.DefaultListSize))
		}
	}
	l.weights()
	l.listSizes()
	slices.SortStableFunc(l.findings, func(x, y Finding) int {
		return cmp.Or(
			cmp.Compare(x.File, y.File), cmp.Compare(x.Line, y.Line), cmp.Compare(x.Column, y.Column),
			cmp.Compare(x.Coordinate, y.Coordinate), cmp.Compare(x.Rule, y.Rule), cmp.Compare(x.Message, y.Message),
		)
	})
	return l.findings
}
