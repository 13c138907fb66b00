package source

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
)

// maxOperationTokens bounds what a document takes in memory once it is parsed.
const maxOperationTokens = 200_000

// maxFragments is how many fragments one operation may reach. Validation follows each from each and searches
// all of them for each name: a chain of 1000 takes seconds, one of 3000 minutes.
const maxFragments = 1_000

// operationExtensions are how names of files with operations end.
var operationExtensions = []string{".graphql", ".gql"}

// Operation is an operation as it stands in a file.
type Operation struct {
	// Name is what the operation is called. One without a name is called after its file.
	Name string
	// File, Line and Column say where the operation begins.
	File   string
	Line   int
	Column int
	// Definition is the parsed operation. Validation writes into it.
	Definition *ast.OperationDefinition

	library *library
}

// library is all fragments of a run.
type library struct {
	byFile map[string]map[string]ast.FragmentDefinitionList
	byName map[string]ast.FragmentDefinitionList
}

// LoadOperations reads the operations in files and directories, in the order of the files. A file can
// hold several, and a fragment can stand in any of the files, as in code bases that keep them beside
// their components. Files of the schema are left out, which may lie in the same directories.
//
// Broken has a [cli.FileError] for each file that cannot be read or parsed; the others are read all the same. If
// none has an operation, they are the error.
func LoadOperations(paths, schema []string) (operations []*Operation, broken []*cli.FileError, err error) {
	files, err := Files(paths, operationExtensions...)
	if err != nil {
		return nil, nil, err
	}
	ofSchema, err := Files(schema, schemaExtensions...)
	if err != nil {
		return nil, nil, err
	}
	files = slices.DeleteFunc(files, func(file string) bool { return slices.Contains(ofSchema, file) })
	lib := &library{byFile: map[string]map[string]ast.FragmentDefinitionList{}, byName: map[string]ast.FragmentDefinitionList{}}
	for _, file := range files {
		doc, problem := parseOperations(file)
		if problem != nil {
			broken = append(broken, problem)
			continue
		}
		lib.add(file, doc.Fragments)
		for _, definition := range doc.Operations {
			operations = append(operations, newOperation(file, definition, lib))
		}
	}
	switch {
	case len(operations) > 0:
		return operations, broken, nil
	case len(broken) > 0:
		problems := make([]error, len(broken))
		for i, problem := range broken {
			problems[i] = problem
		}
		return nil, broken, errors.Join(problems...)
	}
	return nil, nil, &cli.FileError{File: strings.Join(paths, ", "), Message: "no operation stands there, only fragments or nothing"}
}

func parseOperations(file string) (*ast.QueryDocument, *cli.FileError) {
	text, err := readDocument(file, maxOperationBytes)
	if err != nil {
		return nil, FromGraphQL(err, file)
	}
	doc, err := parser.ParseQueryWithTokenLimit(&ast.Source{Name: file, Input: text}, maxOperationTokens)
	if err != nil {
		return nil, misplaced(FromGraphQL(err, file), []string{"type", "schema", "directive", "scalar", "interface", "union", "enum", "input", "extend"},
			"this looks like a schema, which is named by a flag")
	}
	return doc, nil
}

func (l *library) add(file string, fragments ast.FragmentDefinitionList) {
	l.byFile[file] = make(map[string]ast.FragmentDefinitionList, len(fragments))
	for _, fragment := range fragments {
		l.byFile[file][fragment.Name] = append(l.byFile[file][fragment.Name], fragment)
		l.byName[fragment.Name] = append(l.byName[fragment.Name], fragment)
	}
}

func newOperation(file string, definition *ast.OperationDefinition, lib *library) *Operation {
	op := &Operation{Name: definition.Name, File: file, Definition: definition, library: lib}
	if op.Name == "" {
		op.Name = strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	}
	if definition.Position != nil {
		op.Line, op.Column = definition.Position.Line, definition.Position.Column
	}
	return op
}

// Document returns a document of the operation and the fragments that it reaches. A fragment of its own
// file comes before one of the same name elsewhere. A fragment that is missing is left to validation;
// one that two other files define is a [cli.FileError], and so are more than 1000 fragments.
func (op *Operation) Document() (*ast.QueryDocument, error) {
	doc := &ast.QueryDocument{Operations: ast.OperationList{op.Definition}, Position: op.Definition.Position}
	seen := map[string]bool{}
	pending := []ast.SelectionSet{op.Definition.SelectionSet}
	for len(pending) > 0 {
		set := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		for _, selection := range set {
			switch selected := selection.(type) {
			case *ast.Field:
				pending = append(pending, selected.SelectionSet)
			case *ast.InlineFragment:
				pending = append(pending, selected.SelectionSet)
			case *ast.FragmentSpread:
				if seen[selected.Name] {
					continue
				}
				seen[selected.Name] = true
				found, err := op.library.find(op.File, selected)
				if err != nil {
					return nil, err
				}
				doc.Fragments = append(doc.Fragments, found...)
				if len(doc.Fragments) > maxFragments {
					return nil, op.Error(fmt.Sprintf("the operation reaches more than %d fragments", maxFragments))
				}
				for _, fragment := range found {
					pending = append(pending, fragment.SelectionSet)
				}
			}
		}
	}
	return doc, nil
}

// find returns the fragments of a name as the file sees them: more than one only if the file itself
// defines it twice, which validation refuses.
func (l *library) find(file string, spread *ast.FragmentSpread) (ast.FragmentDefinitionList, error) {
	if own := l.byFile[file][spread.Name]; len(own) > 0 {
		return own, nil
	}
	others := l.byName[spread.Name]
	if len(others) > 1 {
		first, second := others[0].Position, others[1].Position
		return nil, At(spread.Position, fmt.Sprintf(
			"fragment %q is defined at %s:%d and at %s:%d; rename one, or price the two files in separate runs",
			spread.Name, first.Src.Name, first.Line, second.Src.Name, second.Line))
	}
	return others, nil
}
