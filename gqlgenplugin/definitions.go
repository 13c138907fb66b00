package gqlgenplugin

import (
	_ "embed" // for schema.graphqls
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/formatter"
	"github.com/vektah/gqlparser/v2/parser"
)

// schema is a copy of schema.graphqls of the repository, which `make generate` makes: a package can
// embed nothing that lies above it.
//
//go:embed schema.graphqls
var schema string

// rateLimitField is a copy of ratelimit-field.graphqls, made in the same way. It extends queryType.
//
//go:embed ratelimit-field.graphqls
var rateLimitField string

// queryType is the name of the query type of a schema that gives it no other.
const queryType = "Query"

// rateLimitFieldOf returns the field rateLimit for a query type of this name.
func rateLimitFieldOf(name string) string {
	return strings.Replace(rateLimitField, "extend type "+queryType+" ", "extend type "+name+" ", 1)
}

// definitions returns the directives as the library defines them.
func definitions() (ast.DirectiveDefinitionList, error) {
	doc, err := parser.ParseSchema(&ast.Source{Name: "schema.graphqls", Input: schema})
	if err != nil {
		return nil, fmt.Errorf("definitions of the directives: %w", err)
	}
	return doc.Directives, nil
}

// text prints definitions.
func text(list ast.DirectiveDefinitionList) string {
	var b strings.Builder
	formatter.NewFormatter(&b).FormatSchemaDocument(&ast.SchemaDocument{Directives: list})
	return b.String()
}

// nameOutside returns the given name as one for a source that is no file. gqlgen embeds the sources below dir, which
// it generates into and is absolute, by their name, and copies the text of all others.
func nameOutside(dir, name string) (string, error) {
	wd, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("directory of the sources: %w", err)
	}
	outside, err := filepath.Rel(wd, filepath.Join(filepath.Dir(dir), name))
	if err != nil {
		return "", fmt.Errorf("directory of the generated code: %w", err)
	}
	return filepath.ToSlash(outside), nil
}

// found is what a schema says about the directives.
type found struct {
	// own are the definitions of the schema.
	own map[string]*ast.DirectiveDefinition
	// imported are the names of the directives that @link imports.
	imported map[string]bool
	// query is the name of the query type.
	query string
}

// definitionsIn reads sources. One that does not parse is left out: gqlgen reports it.
func definitionsIn(sources []*ast.Source) found {
	f := found{own: map[string]*ast.DirectiveDefinition{}, imported: map[string]bool{}, query: queryType}
	for _, source := range sources {
		doc, err := parser.ParseSchema(source)
		if err != nil {
			continue
		}
		for _, definition := range doc.Directives {
			f.own[definition.Name] = definition
		}
		for _, schema := range slices.Concat(doc.Schema, doc.SchemaExtension) {
			for _, link := range schema.Directives.ForNames("link") {
				f.link(link)
			}
			for _, root := range schema.OperationTypes {
				if root.Operation == ast.Query {
					f.query = root.Type
				}
			}
		}
	}
	return f
}

// link notes what a @link imports: ["@cost"].
func (f found) link(link *ast.Directive) {
	argument := link.Arguments.ForName("import")
	if argument == nil || argument.Value == nil {
		return
	}
	for _, child := range argument.Value.Children {
		if name, ok := strings.CutPrefix(child.Value.Raw, "@"); ok {
			f.imported[name] = true
		}
	}
}

// missing returns the definitions that the schema lacks, and an error for each that it has and that
// the server could not read.
func (f found) missing() (ast.DirectiveDefinitionList, error) {
	all, err := definitions()
	if err != nil {
		return nil, err
	}
	var missing ast.DirectiveDefinitionList
	var errs []error
	for _, ours := range all {
		theirs := f.own[ours.Name]
		if theirs == nil {
			missing = append(missing, ours)
			continue
		}
		if reason := difference(ours, theirs); reason != "" {
			errs = append(errs, &DefinitionError{Directive: ours.Name, Position: theirs.Position, Reason: reason})
		}
	}
	return missing, errors.Join(errs...)
}

// DefinitionError reports that the schema defines a directive in a way in which the server cannot
// read it.
type DefinitionError struct {
	// Directive is the name, without the @.
	Directive string
	// Position is where the schema defines it.
	Position *ast.Position
	// Reason says what is wrong.
	Reason string
}

// Error returns the position, the directive, the reason, and what can be done.
func (e *DefinitionError) Error() string {
	at := ""
	if e.Position != nil && e.Position.Src != nil {
		at = fmt.Sprintf("%s:%d: ", e.Position.Src.Name, e.Position.Line)
	}
	return fmt.Sprintf("%s@%s is another directive than the one that prices operations: %s; "+
		"define it as schema.graphqls of this library does, or remove the definition", at, e.Directive, e.Reason)
}

// readable are the types, without lists and nulls, that the arguments of the directives may have. A
// weight is a String in the IBM draft and an Int in Apollo Federation.
var readable = map[string]map[string][]string{
	"cost":     {"weight": {"String", "Int", "Float"}},
	"costWhen": {"value": {"String"}, "weight": {"String", "Int", "Float"}},
	"listSize": {
		"assumedSize":               {"Int"},
		"slicingArguments":          {"String"},
		"sizedFields":               {"String"},
		"requireOneSlicingArgument": {"Boolean"},
	},
}

// difference says why a definition is not compatible with ours; it is empty if it is.
func difference(ours, theirs *ast.DirectiveDefinition) string {
	shared := slices.ContainsFunc(theirs.Locations, func(location ast.DirectiveLocation) bool {
		return slices.Contains(ours.Locations, location)
	})
	if !shared {
		return fmt.Sprintf("it stands on none of %v", ours.Locations)
	}
	// A schema may leave out what it does not use, but not what says something by itself.
	needed := map[string][]string{"cost": {"weight"}, "costWhen": {"value"}, "listSize": {"assumedSize", "slicingArguments"}}[ours.Name]
	if !slices.ContainsFunc(needed, func(name string) bool { return theirs.Arguments.ForName(name) != nil }) {
		return "it has no argument " + strings.Join(needed, " or ")
	}
	for _, argument := range ours.Arguments {
		own := theirs.Arguments.ForName(argument.Name)
		if own == nil {
			continue
		}
		isList, wantList := own.Type.Elem != nil, argument.Type.Elem != nil
		nested := isList && own.Type.Elem.Elem != nil
		if isList != wantList || nested || !slices.Contains(readable[ours.Name][argument.Name], own.Type.Name()) {
			return fmt.Sprintf("its argument %s is of type %s, not %s", argument.Name, own.Type, argument.Type)
		}
	}
	for _, argument := range theirs.Arguments {
		if ours.Arguments.ForName(argument.Name) == nil && argument.Type.NonNull && argument.DefaultValue == nil {
			return fmt.Sprintf("its argument %s means nothing to the server, and is required", argument.Name)
		}
	}
	return ""
}
