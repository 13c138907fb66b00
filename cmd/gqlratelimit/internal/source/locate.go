package source

import (
	"errors"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// Error returns a mistake of the operation as a whole.
func (op *Operation) Error(message string) *cli.FileError {
	return &cli.FileError{File: op.File, Line: op.Line, Column: op.Column, Message: message}
}

// Located returns the error of [cost.New] with the positions of the coordinates in the schema: the join
// of a [cli.FileError] for each mistake.
func Located(schema *ast.Schema, err error) error {
	mistakes := SchemaErrors(err)
	if len(mistakes) == 0 {
		return err
	}
	located := make([]error, len(mistakes))
	for i, mistake := range mistakes {
		located[i] = At(Locate(schema, mistake.Coordinate), mistake.Coordinate+": "+mistake.Reason)
	}
	return errors.Join(located...)
}

// SchemaErrors returns all mistakes that an error of [cost.New] joins.
func SchemaErrors(err error) []*cost.SchemaError {
	var mistake *cost.SchemaError
	joined, many := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
		return nil
	case many:
		var all []*cost.SchemaError
		for _, one := range joined.Unwrap() {
			all = append(all, SchemaErrors(one)...)
		}
		return all
	case errors.As(err, &mistake):
		return []*cost.SchemaError{mistake}
	}
	return nil
}

// Locate returns the position of what a coordinate names: a type, a field, an argument of a field, or
// an argument of a directive. It returns nil if the schema has no such thing in a file.
func Locate(schema *ast.Schema, coordinate string) *ast.Position {
	owner, argument, _ := strings.Cut(strings.TrimSuffix(coordinate, ":)"), "(")
	if name, ok := strings.CutPrefix(owner, "@"); ok {
		directive := schema.Directives[name]
		if directive == nil {
			return nil
		}
		return argumentPosition(directive.Arguments, argument, directive.Position)
	}
	typeName, fieldName, isField := strings.Cut(owner, ".")
	def := schema.Types[typeName]
	if def == nil {
		return nil
	}
	if !isField {
		return def.Position
	}
	field := def.Fields.ForName(fieldName)
	if field == nil {
		return nil
	}
	return argumentPosition(field.Arguments, argument, field.Position)
}

// argumentPosition returns the position of an argument, or the fallback if there is none of that name.
func argumentPosition(arguments ast.ArgumentDefinitionList, name string, fallback *ast.Position) *ast.Position {
	if argument := arguments.ForName(name); argument != nil && argument.Position != nil {
		return argument.Position
	}
	return fallback
}
