package source

import (
	_ "embed" // for schema.graphqls
	"errors"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
)

// maxSchemaTokens bounds what a schema takes in memory once it is parsed. That of GitHub has fewer than
// 100 000 tokens.
const maxSchemaTokens = 1_000_000

// directives defines what schemas may leave to the server: @cost and @listSize. It is a copy of
// schema.graphqls at the root of the repository that `make generate` makes.
//
//go:embed schema.graphqls
var directives string

// schemaExtensions are how names of schema files end.
var schemaExtensions = []string{".graphqls", ".graphql", ".gql"}

// Schema is a schema as it was read from files.
type Schema struct {
	*ast.Schema
	// Repeated are the fields that stood there twice, at their second place.
	Repeated []Repeated
}

// Repeated is a definition of a field that was left out, because the same stood there before.
type Repeated struct {
	Coordinate string
	Position   *ast.Position
}

// LoadSchema reads one schema from files and directories. Definitions of @cost and @listSize are added
// if the schema has none. What published schemas have although it is not allowed is left out:
// definitions of built-in scalars, fields that are defined twice in the same way, and directives of
// federation without a definition. The error joins a [cli.FileError] for each mistake found.
func LoadSchema(paths []string) (*Schema, error) {
	files, err := Files(paths, schemaExtensions...)
	if err != nil {
		return nil, err
	}
	all := &ast.SchemaDocument{}
	var problems []error
	for _, file := range files {
		text, err := readDocument(file, maxSchemaBytes)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		doc, err := parser.ParseSchemaWithLimit(&ast.Source{Name: file, Input: text}, maxSchemaTokens)
		if err != nil {
			problems = append(problems, misplaced(FromGraphQL(err, file), []string{"query", "mutation", "subscription", "fragment"},
				"this looks like operations, which are named without a flag"))
			continue
		}
		all.Merge(doc)
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	if err := complete(all); err != nil {
		return nil, err
	}
	dropFederation(all)
	repeated := dropRepeated(all)
	schema, err := validator.ValidateSchemaDocument(all)
	if err != nil {
		return nil, FromGraphQL(err, "")
	}
	if schema.Query == nil {
		return nil, &cli.FileError{File: files[0], Message: "the schema has no query type; name all files of the schema"}
	}
	return &Schema{Schema: schema, Repeated: repeated}, nil
}

// dropRepeated removes fields that their type defines twice in the same way. One that differs is left to
// validation, which refuses it.
func dropRepeated(doc *ast.SchemaDocument) []Repeated {
	var dropped []Repeated
	for _, def := range doc.Definitions {
		first := make(map[string]*ast.FieldDefinition, len(def.Fields))
		def.Fields = slices.DeleteFunc(def.Fields, func(field *ast.FieldDefinition) bool {
			before := first[field.Name]
			if before == nil {
				first[field.Name] = field
				return false
			}
			same := signature(field) == signature(before)
			if same {
				dropped = append(dropped, Repeated{Coordinate: def.Name + "." + field.Name, Position: field.Position})
			}
			return same
		})
	}
	return dropped
}

// signature is what has to be the same in two definitions of a field: everything but the descriptions.
func signature(field *ast.FieldDefinition) string {
	var b strings.Builder
	write := func(typ *ast.Type, value *ast.Value, directives ast.DirectiveList) {
		b.WriteString(":" + typ.String())
		if value != nil {
			b.WriteString("=" + value.String())
		}
		for _, directive := range directives {
			b.WriteString("@" + directive.Name)
			for _, arg := range directive.Arguments {
				b.WriteString("(" + arg.Name + ":" + arg.Value.String() + ")")
			}
		}
	}
	write(field.Type, field.DefaultValue, field.Directives)
	for _, arg := range field.Arguments {
		b.WriteString("(" + arg.Name)
		write(arg.Type, arg.DefaultValue, arg.Directives)
		b.WriteString(")")
	}
	return b.String()
}

// complete adds to the document what every server adds: the built-in types, and the directives that
// price it.
func complete(doc *ast.SchemaDocument) error {
	prelude, err := parser.ParseSchema(validator.Prelude)
	if err != nil {
		return FromGraphQL(err, validator.Prelude.Name)
	}
	builtIn := map[string]bool{}
	for _, def := range prelude.Definitions {
		builtIn[def.Name] = true
	}
	own := doc.Definitions
	doc.Definitions = prelude.Definitions
	for _, def := range own {
		if def.Kind != ast.Scalar || !builtIn[def.Name] {
			doc.Definitions = append(doc.Definitions, def)
		}
	}
	pricing, err := parser.ParseSchema(&ast.Source{Name: "schema.graphqls", Input: directives})
	if err != nil {
		return FromGraphQL(err, "schema.graphqls")
	}
	for _, def := range pricing.Directives {
		if doc.Directives.ForName(def.Name) == nil {
			doc.Directives = append(doc.Directives, def)
		}
	}
	doc.Directives = append(doc.Directives, prelude.Directives...)
	return nil
}
