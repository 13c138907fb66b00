package source

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// federation are the directives of Apollo Federation. The schema of a subgraph uses them and leaves their
// definitions to the server, gqlgen's included. They price nothing.
var federation = []string{
	"authenticated", "composeDirective", "context", "extends", "external", "fromContext", "inaccessible",
	"interfaceObject", "key", "link", "override", "policy", "provides", "requires", "requiresScopes", "shareable", "tag",
}

// dropFederation removes the uses of federation directives that the schema does not define.
func dropFederation(doc *ast.SchemaDocument) {
	drop := func(directives ast.DirectiveList) ast.DirectiveList {
		return slices.DeleteFunc(directives, func(used *ast.Directive) bool {
			return slices.Contains(federation, used.Name) && doc.Directives.ForName(used.Name) == nil
		})
	}
	for _, list := range []ast.SchemaDefinitionList{doc.Schema, doc.SchemaExtension} {
		for _, def := range list {
			def.Directives = drop(def.Directives)
		}
	}
	for _, list := range []ast.DefinitionList{doc.Definitions, doc.Extensions} {
		for _, def := range list {
			def.Directives = drop(def.Directives)
			for _, field := range def.Fields {
				field.Directives = drop(field.Directives)
				for _, arg := range field.Arguments {
					arg.Directives = drop(arg.Directives)
				}
			}
			for _, value := range def.EnumValues {
				value.Directives = drop(value.Directives)
			}
		}
	}
}
