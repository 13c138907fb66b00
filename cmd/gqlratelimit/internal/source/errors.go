package source

import (
	"cmp"
	"errors"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
)

// FileError is a mistake in a file.
type FileError struct {
	// File is the path as it was given or found. It is empty if the mistake is in no file.
	File string `json:"file,omitempty"`
	// Line and Column count from 1. They are 0 if the mistake is that of the whole file.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// Message says what is wrong and, where that is not plain, what to do.
	Message string `json:"message"`

	cause error
}

// Unwrap returns what the system said of the file, nil for a mistake in it.
func (p *FileError) Unwrap() error { return p.cause }

// Error returns file:line:column and the message, in the form that editors and CI systems recognise.
func (p *FileError) Error() string {
	return Position(p.File, p.Line, p.Column, ": ") + cli.Plain(p.Message)
}

// Position returns file:line:column and the separator, without what is not known.
func Position(file string, line, column int, separator string) string {
	if file == "" {
		return ""
	}
	file = cli.Plain(file)
	if strings.HasPrefix(strings.TrimSpace(file), "::") {
		// A line that begins so is a command to the runner of GitHub Actions.
		file = "./" + file
	}
	if line > 0 {
		file += ":" + strconv.Itoa(line)
		if column > 0 {
			file += ":" + strconv.Itoa(column)
		}
	}
	return file + separator
}

// At returns a FileError at a position, which may be nil.
func At(pos *ast.Position, message string) *FileError {
	p := &FileError{Message: message}
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
func FromGraphQL(err error, file string) *FileError {
	var known *FileError
	if errors.As(err, &known) {
		return known
	}
	var parsed *gqlerror.Error
	if !errors.As(err, &parsed) {
		return &FileError{File: file, Message: err.Error()}
	}
	p := &FileError{File: file, Message: strings.TrimSpace(parsed.Message)}
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
func misplaced(problem *FileError, words []string, hint string) *FileError {
	for _, word := range words {
		if problem.Message == "Unexpected Name \""+word+"\"" {
			problem.Message += "; " + hint
		}
	}
	return problem
}
