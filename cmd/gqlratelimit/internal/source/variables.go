package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
)

// variablesExtension is how names of files with variables end.
const variablesExtension = ".variables.json"

// Variables finds the values of the variables of operations. The zero value finds what lies beside the
// operations.
//
// They come from JSON files with one object of values by the name of the variable. For the operation
// Search in the file queries.graphql these are read in this order, and a value that is found later
// replaces one that was found before: the file given for all operations, queries.variables.json beside
// the operation, Search.variables.json beside it, and Search.variables.json in the directory given. Of
// the file that is given for all operations each takes the variables that it declares.
type Variables struct {
	shared    map[string]any
	directory string
	known     map[string]map[string]any
}

// LoadVariables reads the file that is given for all operations, or remembers the directory. An empty
// path gives neither.
func LoadVariables(path string) (*Variables, error) {
	v := &Variables{known: map[string]map[string]any{}}
	if path == "" {
		return v, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, cli.Unreadable(path, err)
	}
	if info.IsDir() {
		v.directory = path
		return v, nil
	}
	v.shared, err = readVariables(path)
	return v, err
}

// Of returns the values for an operation, uncoerced.
func (v *Variables) Of(op *Operation) (map[string]any, error) {
	values := map[string]any{}
	for _, definition := range op.Definition.VariableDefinitions {
		if value, ok := v.shared[definition.Variable]; ok {
			values[definition.Variable] = value
		}
	}
	beside := filepath.Dir(op.File)
	paths := []string{
		strings.TrimSuffix(op.File, filepath.Ext(op.File)) + variablesExtension,
		filepath.Join(beside, op.Name+variablesExtension),
	}
	if v.directory != "" {
		paths = append(paths, filepath.Join(v.directory, op.Name+variablesExtension))
	}
	for _, path := range paths {
		found, err := v.read(path)
		if err != nil {
			return nil, err
		}
		maps.Copy(values, found)
	}
	return values, nil
}

// read returns the values in a file that nobody named, none if there is no such file. Opening what is no
// regular file could wait for ever, as for the writer of a pipe.
func (v *Variables) read(path string) (map[string]any, error) {
	if known, ok := v.known[path]; ok {
		return known, nil
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, cli.Unreadable(path, err)
	case !info.Mode().IsRegular():
		return nil, &cli.FileError{File: path, Message: "is no regular file, and is not read"}
	}
	values, err := readVariables(path)
	if err == nil && v.known != nil {
		v.known[path] = values
	}
	return values, err
}

func readVariables(path string) (map[string]any, error) {
	text, err := read(path, maxVariablesBytes)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var values map[string]any
	err = decoder.Decode(&values)
	if err == nil {
		if _, extra := decoder.Token(); !errors.Is(extra, io.EOF) {
			err = errors.New("something follows the object")
		}
	}
	if err == nil && values == nil {
		err = errors.New("null is no object")
	}
	if err != nil {
		line := 1 + bytes.Count([]byte(text[:min(int(decoder.InputOffset()), len(text))]), []byte("\n"))
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			line = 1 + strings.Count(text[:min(int(syntax.Offset), len(text))], "\n")
		}
		return nil, &cli.FileError{File: path, Line: line, Message: "variables are not one JSON object: " + err.Error()}
	}
	return values, nil
}

// Coerce returns the values as a server has them after coercion, and the names of the required variables
// that have none. Those are left out, so that what they would say is not known: a list that they size has
// the size that it has without them.
func Coerce(schema *ast.Schema, op *Operation, values map[string]any) (coerced map[string]any, missing []string, err error) {
	values = maps.Clone(values)
	if values == nil {
		values = map[string]any{}
	}
	present := *op.Definition
	present.VariableDefinitions = nil
	for _, definition := range op.Definition.VariableDefinitions {
		if definition.Definition == nil || !definition.Definition.IsInputType() {
			// Validation has refused the type, and no value has it.
			continue
		}
		_, given := values[definition.Variable]
		if !given && definition.Type.NonNull && definition.DefaultValue == nil {
			missing = append(missing, definition.Variable)
			continue
		}
		present.VariableDefinitions = append(present.VariableDefinitions, definition)
	}
	coerced, err = validator.VariableValues(schema, &present, values)
	if err != nil {
		problem := FromGraphQL(err, op.File)
		problem.File, problem.Line, problem.Column = op.File, op.Line, op.Column
		problem.Message = "the variables of " + op.Name + " do not fit: " + strings.TrimPrefix(err.Error(), "input: ")
		return nil, nil, problem
	}
	return coerced, missing, nil
}
