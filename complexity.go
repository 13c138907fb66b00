package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

// withComplexity returns the functions that are given and those of the server's ComplexityRoot.
func withComplexity(given map[string]cost.ComplexityFunc, schema graphql.ExecutableSchema, logger *slog.Logger) (map[string]cost.ComplexityFunc, error) {
	functions := make(map[string]cost.ComplexityFunc)
	for _, object := range schema.Schema().Types {
		if object.Kind != ast.Object {
			continue
		}
		for _, field := range object.Fields {
			if hasComplexity(schema, object.Name, field.Name) {
				functions[object.Name+"."+field.Name] = complexityOf(schema, object.Name, field.Name, logger)
			}
		}
	}
	if len(functions) == 0 {
		return given, errors.New("ratelimit: Config.UseComplexity: the server has no complexity function; " +
			"set some in the Complexity of its configuration, and no omit_complexity in gqlgen.yml")
	}
	maps.Copy(functions, given)
	return functions, nil
}

// hasComplexity asks the server about a call without arguments. gqlgen says no for a field without a
// function and for arguments that it cannot convert, and absent ones it need not convert.
func hasComplexity(schema graphql.ExecutableSchema, object, field string) (has bool) {
	defer func() {
		if recover() != nil {
			// Only a function minds the zero values of its arguments.
			has = true
		}
	}()
	_, has = schema.Complexity(context.Background(), object, field, 0, map[string]any{})
	return has
}

// complexityOf returns the function of a field. One that panics is reported, because all that the client
// sees is a price.
func complexityOf(schema graphql.ExecutableSchema, object, field string, logger *slog.Logger) cost.ComplexityFunc {
	return func(childComplexity int, arguments map[string]any) (complexity int, ok bool) {
		defer func() {
			if cause := recover(); cause != nil {
				logger.Error("ratelimit: a complexity function panicked",
					slog.String("field", object+"."+field), slog.String("cause", fmt.Sprint(cause)))
				complexity, ok = 0, false
			}
		}()
		return schema.Complexity(context.Background(), object, field, childComplexity, arguments)
	}
}
