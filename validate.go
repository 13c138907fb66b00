package ratelimit

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/internal/backend"
	"github.com/gqlgen-ratelimit/ratelimit/internal/claims"
	"github.com/gqlgen-ratelimit/ratelimit/internal/observe"
	"github.com/gqlgen-ratelimit/ratelimit/internal/recent"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Validate checks the configuration and reads the weights out of the schema. The error holds every
// mistake of both, each with its field or coordinate; gqlgen panics with it in srv.Use. Called again, it does nothing
// for the same schema, and for another one it is an error.
func (e *Extension) Validate(schema graphql.ExecutableSchema) error {
	e.life.starting.Lock()
	defer e.life.starting.Unlock()
	if used, err := e.life.serves(schema.Schema()); used || err != nil {
		return err
	}
	configErr := e.cfg.validate()
	costs := e.cfg.Pricing.Cost
	var complexityErr error
	if e.cfg.Pricing.UseComplexity {
		costs.Complexity, complexityErr = withComplexity(costs.Complexity, schema, e.cfg.Observe.Logger)
	}
	estimator, costErr := cost.New(schema.Schema(), costs)
	reporter, reporterErr := observe.New(e.cfg.Observe.reporter(), e.cfg.stores())
	if err := errors.Join(configErr, complexityErr, costErr, reporterErr); err != nil {
		return err
	}
	stores, err := backend.New(backend.Config{
		Stores: e.cfg.stores(), Local: e.cfg.Outage.local(), Gate: e.cfg.Outage.gate(),
		MaxWaiting: maxSettlementsWaiting,
		Logger:     e.cfg.Observe.Logger, Watcher: reporter,
	})
	if err != nil {
		return err
	}
	if err := reporter.ObserveLeases(stores.Leases()); err != nil {
		return err
	}
	// Last, because from now on the source refuses what these stores do not fit.
	if err := e.cfg.followPolicy(rootFields(schema.Schema())); err != nil {
		return err
	}
	e.estimator, e.reporter = estimator, reporter
	e.claims = claims.New(e.cfg.Idempotency.claims(schema.Schema(), e.cfg.Observe.Logger))
	e.replays, e.answers = recent.NewCounter[string](replaySlots), recent.NewCounter[storedAnswers](answerSlots)
	e.explained, e.warned = recent.NewCounter[string](explainSlots), recent.NewCounter[oddity](oddities)
	e.stores = stores
	if e.life.begin(schema.Schema()) {
		stores.End()
	}
	e.warn()
	return nil
}

// warn logs what is odd about the configuration, and works.
func (e *Extension) warn() {
	e.cfg.warnOfClients()
	if units := e.cfg.Policy.Snapshot().Units(); len(units) > 0 {
		e.cfg.Observe.Logger.Info("ratelimit: limits in these units are charged by ratelimit.Charge alone", slog.Any("units", units))
	}
	if e.cfg.Settlement.Refund && mayTry(e.cfg.Policy) {
		e.cfg.Observe.Logger.Warn("ratelimit: Settlement.Refund gives nothing back to the budgets of a candidate policy, " +
			"which will look stricter than it is")
	}
	const shown = 20
	if unsized := e.estimator.UnsizedLists(); len(unsized) > 0 {
		e.cfg.Observe.Logger.Warn("ratelimit: lists without @listSize are priced at the default size",
			slog.Int("count", len(unsized)), slog.Any("fields", unsized[:min(shown, len(unsized))]))
	}
	if unreadable := e.estimator.UnreadableSizes(); len(unreadable) > 0 {
		e.cfg.Observe.Logger.Warn("ratelimit: these arguments size lists and are no numbers; an operation that gives one is too expensive for any budget",
			slog.Int("count", len(unreadable)), slog.Any("arguments", unreadable[:min(shown, len(unreadable))]))
	}
}

// rootFields are the coordinates of all root fields, as [Decision.RootFields] spells them.
func rootFields(schema *ast.Schema) []string {
	var fields []string
	for _, root := range []*ast.Definition{schema.Query, schema.Mutation, schema.Subscription} {
		if root == nil {
			continue
		}
		for _, field := range root.Fields {
			fields = append(fields, root.Name+"."+field.Name)
		}
	}
	return fields
}

// mostUnmatched is how many operation rules are named under which nothing falls: a policy that is made for several servers has many.
const mostUnmatched = 10

// unmatched says under which operation rules of a policy no operation of this server falls.
func unmatched(s *tiers.Snapshot, fields []string) []string {
	var texts []string
	warnings := s.Unmatched(fields)
	for i := range warnings {
		if i == mostUnmatched {
			return append(texts, fmt.Sprintf("nothing falls under %d more operation rules", len(warnings)-i))
		}
		texts = append(texts, warnings[i].String())
	}
	return texts
}
