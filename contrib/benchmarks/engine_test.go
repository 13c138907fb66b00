package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jensneuse/abstractlogger"
	parsed "github.com/vektah/gqlparser/v2/ast"
	"github.com/wundergraph/astjson"
	"github.com/wundergraph/graphql-go-tools/v2/pkg/ast"
	"github.com/wundergraph/graphql-go-tools/v2/pkg/astnormalization"
	"github.com/wundergraph/graphql-go-tools/v2/pkg/astparser"
	"github.com/wundergraph/graphql-go-tools/v2/pkg/asttransform"
	"github.com/wundergraph/graphql-go-tools/v2/pkg/engine/datasource/staticdatasource"
	"github.com/wundergraph/graphql-go-tools/v2/pkg/engine/plan"
	"github.com/wundergraph/graphql-go-tools/v2/pkg/engine/resolve"
	"github.com/wundergraph/graphql-go-tools/v2/pkg/operationreport"
)

// engine prices operations as graphql-go-tools does: its planner builds the tree of costs while it
// plans the fetches, so that there is no price without a plan. One data source resolves everything,
// which is the cheapest plan there is.
type engine struct {
	definition ast.Document
	config     plan.Configuration
}

func newEngine(schema *parsed.Schema) (*engine, error) {
	definition, report := astparser.ParseGraphqlDocumentString(directivesText + schemaText)
	if report.HasErrors() {
		return nil, report
	}
	if err := asttransform.MergeDefinitionWithBaseSchema(&definition); err != nil {
		return nil, err
	}
	metadata, err := engineMetadata(schema)
	if err != nil {
		return nil, err
	}
	source, err := plan.NewDataSourceConfiguration[staticdatasource.Configuration](
		"all", &engineFactory{}, metadata, staticdatasource.Configuration{Data: "{}"})
	if err != nil {
		return nil, err
	}
	return &engine{definition: definition, config: plan.Configuration{
		DataSources:               []plan.DataSource{source},
		ComputeCosts:              true,
		StaticCostDefaultListSize: 10,
		DisableIncludeInfo:        true,
	}}, nil
}

// engineFactory makes planners of the static data source that follow the fields of an operation.
type engineFactory struct {
	staticdatasource.Factory[staticdatasource.Configuration]
}

// Context implements plan.PlannerFactory.
func (*engineFactory) Context() context.Context { return context.Background() }

// Planner implements plan.PlannerFactory.
func (*engineFactory) Planner(abstractlogger.Logger) plan.DataSourcePlanner[staticdatasource.Configuration] {
	return &enginePlanner{}
}

// enginePlanner is the planner of the static data source, seen on each field: the costs of a field are
// those of the data sources whose planners were there.
type enginePlanner struct {
	staticdatasource.Planner[staticdatasource.Configuration]
}

// Register implements plan.DataSourcePlanner.
func (p *enginePlanner) Register(
	visitor *plan.Visitor, source plan.DataSourceConfiguration[staticdatasource.Configuration],
	planner plan.DataSourcePlannerConfiguration,
) error {
	visitor.Walker.RegisterEnterFieldVisitor(p)
	visitor.Walker.RegisterLeaveFieldVisitor(p)
	return p.Planner.Register(visitor, source, planner)
}

// EnterField implements astvisitor.EnterFieldVisitor.
func (*enginePlanner) EnterField(int) {}

// LeaveField implements astvisitor.LeaveFieldVisitor.
func (*enginePlanner) LeaveField(int) {}

// engineMetadata says which fields the data source has and what they cost.
func engineMetadata(schema *parsed.Schema) (*plan.DataSourceMetadata, error) {
	costs := plan.NewDataSourceCostConfig()
	metadata := &plan.DataSourceMetadata{CostConfig: costs}
	for _, definition := range schema.Types {
		var names []string
		for _, field := range definition.Fields {
			names = append(names, field.Name)
			if err := engineCosts(costs, definition.Name, field); err != nil {
				return nil, err
			}
		}
		node := plan.TypeField{TypeName: definition.Name, FieldNames: names}
		switch {
		case definition == schema.Query:
			metadata.RootNodes = append(metadata.RootNodes, node)
			metadata.ChildNodes = append(metadata.ChildNodes, node)
		case definition.Kind == parsed.Object || definition.Kind == parsed.Interface:
			metadata.ChildNodes = append(metadata.ChildNodes, node)
		}
	}
	return metadata, nil
}

// engineCosts copies the directives of a field.
func engineCosts(costs *plan.DataSourceCostConfig, typeName string, field *parsed.FieldDefinition) error {
	at := plan.FieldCoordinate{TypeName: typeName, FieldName: field.Name}
	if directive := field.Directives.ForName("cost"); directive != nil {
		weight, err := strconv.Atoi(directive.Arguments.ForName("weight").Value.Raw)
		if err != nil {
			return fmt.Errorf("%s.%s: %w", typeName, field.Name, err)
		}
		costs.Weights[at] = &plan.FieldCost{HasWeight: true, Weight: weight}
	}
	directive := field.Directives.ForName("listSize")
	if directive == nil {
		return nil
	}
	size := &plan.FieldListSize{}
	for _, argument := range directive.Arguments {
		switch argument.Name {
		case "assumedSize":
			assumed, err := strconv.Atoi(argument.Value.Raw)
			if err != nil {
				return fmt.Errorf("%s.%s: %w", typeName, field.Name, err)
			}
			size.AssumedSize = assumed
		case "slicingArguments":
			for _, child := range argument.Value.Children {
				size.SlicingArguments = append(size.SlicingArguments, child.Value.Raw)
			}
		case "sizedFields":
			for _, child := range argument.Value.Children {
				size.SizedFields = append(size.SizedFields, child.Value.Raw)
			}
		}
	}
	costs.ListSizes[at] = size
	return nil
}

// enginePlan is a plan that was made, with the variables of the operation.
type enginePlan struct {
	calculator *plan.CostCalculator
	variables  resolve.VariablesView
}

// plan parses, normalises and plans an operation, in the steps of the engine's own executor.
// Validation is left out.
func (e *engine) plan(text, variables string) (*enginePlan, error) {
	document, report := astparser.ParseGraphqlDocumentString(text)
	if report.HasErrors() {
		return nil, report
	}
	document.Input.Variables = []byte(variables)
	normalizer := astnormalization.NewWithOpts(
		astnormalization.WithRemoveFragmentDefinitions(),
		astnormalization.WithRemoveUnusedVariables(),
		astnormalization.WithInlineFragmentSpreads(),
		astnormalization.WithExtractVariables(),
	)
	normalizer.NormalizeOperation(&document, &e.definition, &report)
	if report.HasErrors() {
		return nil, report
	}
	renamed := astnormalization.NewVariablesMapper().NormalizeOperation(&document, &e.definition, &report)
	if report.HasErrors() {
		return nil, report
	}
	calculator, err := e.costs(&document)
	if err != nil {
		return nil, err
	}
	values, err := astjson.ParseBytes(document.Input.Variables)
	if err != nil {
		return nil, err
	}
	return &enginePlan{calculator: calculator, variables: resolve.NewVariablesView(values, renamed)}, nil
}

func (e *engine) costs(document *ast.Document) (*plan.CostCalculator, error) {
	planner, err := plan.NewPlanner(e.config)
	if err != nil {
		return nil, err
	}
	var report operationreport.Report
	planned := planner.Plan(document, &e.definition, "", &report)
	if report.HasErrors() {
		return nil, report
	}
	return planned.GetCostCalculator(), nil
}

// estimate returns the price.
func (p *enginePlan) estimate() int { return p.calculator.EstimateCost(p.variables) }
