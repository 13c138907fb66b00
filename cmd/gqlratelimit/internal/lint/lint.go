// Package lint finds what is wrong or missing in the directives that price a schema.
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
	// UnreadableSize is an argument that sizes a list and is no number, so that the list has no bound.
	UnreadableSize Rule = "unreadable-size"
	// RepeatedField is a field that its type defines twice in the same way.
	RepeatedField Rule = "repeated-field"
)

// Finding is one result. An Error stops the server when it starts, and a Warning makes prices wrong.
type Finding struct {
	Severity   doctor.Severity `json:"severity"`
	Rule       Rule            `json:"rule"`
	Coordinate string          `json:"coordinate"`
	Message    string          `json:"message"`
	File       string          `json:"file,omitempty"`
	Line       int             `json:"line,omitempty"`
	Column     int             `json:"column,omitempty"`
}

// Schema returns what is to be said about a schema and its configuration, by their positions. Lists
// without a size are found only in a schema without an Error.
func Schema(loaded *source.Schema, cfg cost.Config) []Finding {
	var findings []Finding
	add := func(severity doctor.Severity, rule Rule, coordinate string, at *ast.Position, format string, args ...any) {
		where := source.At(at, "")
		findings = append(findings, Finding{
			Severity: severity, Rule: rule, Coordinate: coordinate, Message: fmt.Sprintf(format, args...),
			File: where.File, Line: where.Line, Column: where.Column,
		})
	}
	for _, field := range loaded.Repeated {
		add(doctor.Warning, RepeatedField, field.Coordinate, field.Position, "the type defines the field twice: remove one")
	}
	estimator, err := cost.New(loaded.Schema, cfg)
	for _, mistake := range source.SchemaErrors(err) {
		add(doctor.Error, Invalid, mistake.Coordinate, source.Locate(loaded.Schema, mistake.Coordinate), "%s", mistake.Reason)
	}
	if estimator != nil {
		for _, coordinate := range estimator.UnsizedLists() {
			add(doctor.Warning, UnsizedList, coordinate, source.Locate(loaded.Schema, coordinate),
				"nothing says how long the list is: add @listSize, or it is priced with %d elements", cmp.Or(cfg.DefaultListSize, cost.DefaultListSize))
		}
		for _, coordinate := range estimator.UnreadableSizes() {
			add(doctor.Warning, UnreadableSize, coordinate, source.Locate(loaded.Schema, coordinate),
				"it sizes a list and is no number: give the list an assumedSize alone, or each operation that gives it is too expensive")
		}
	}
	slices.SortStableFunc(findings, func(x, y Finding) int {
		return cmp.Or(
			cmp.Compare(x.File, y.File), cmp.Compare(x.Line, y.Line), cmp.Compare(x.Column, y.Column),
			cmp.Compare(x.Coordinate, y.Coordinate), cmp.Compare(x.Rule, y.Rule), cmp.Compare(x.Message, y.Message),
		)
	})
	return findings
}
