package ratelimit

import (
	"errors"
	"log/slog"

	"github.com/99designs/gqlgen/graphql"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/internal/backend"
	"github.com/gqlgen-ratelimit/ratelimit/internal/claims"
	"github.com/gqlgen-ratelimit/ratelimit/internal/observe"
	"github.com/gqlgen-ratelimit/ratelimit/internal/recent"
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
	e.claims = claims.New(e.cfg.Idempotency.claims(e.cfg.Observe.Logger))
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
	if unsized := e.estimator.UnsizedLists(); len(unsized) > 0 {
		const shown = 20
		e.cfg.Observe.Logger.Warn("ratelimit: lists without @listSize are priced at the default size",
			slog.Int("count", len(unsized)), slog.Any("fields", unsized[:min(shown, len(unsized))]))
	}
}
