package source

import (
	"cmp"
	"errors"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
)

// At returns a FileError at a position, which may be nil.
func At(pos *ast.Position, message string) *cli.FileError {
	p := &cli.FileError{Message: message}
	if pos != nil {
		p.Line, p.Column = pos.Line, pos.Column
		if pos.Src != nil {
			p.File = pos.Src.Name
		}
	}
	return p
}

// FromGraphQL returns an error of gqlparser as a FileError, and one that is a FileError as it is. The file is
// used if the error names none.
func FromGraphQL(err error, file string) *cli.FileError {
	var known *cli.FileError
	if errors.As(err, &known) {
		return known
	}
	var parsed *gqlerror.Error
	if !errors.As(err, &parsed) {
		return &cli.FileError{File: file, Message: err.Error()}
	}
	p := &cli.FileError{File: file, Message: strings.TrimSpace(parsed.Message)}
	if name, ok := parsed.Extensions["file"].(string); ok {
		p.File = cmp.Or(name, file)
	}
	if len(parsed.Locations) > 0 {
		p.Line, p.Column = parsed.Locations[0].Line, parsed.Locations[0].Column
	}
	return p
}

// misplaced adds to a syntax error what is likely meant: each kind of GraphQL document begins with words
// that the other kind cannot have.
func misplaced(problem *cli.FileError, words []string, hint string) *cli.FileError {
	for _, word := range words {
		if problem.Message == "Unexpected Name \""+word+"\"" {
			problem.Message += "; " + hint
		}
	}
	return problem
}
