package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
	"github.com/gqlgen-ratelimit/ratelimit/internal/guard"
	"github.com/gqlgen-ratelimit/ratelimit/internal/inbound"
	"github.com/gqlgen-ratelimit/ratelimit/internal/sink"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// MutateOperationContext prices the operation and does nothing else: an operation that another
// extension refuses, or a mutation that came by GET, is never charged.
func (e *Extension) MutateOperationContext(ctx context.Context, opCtx *graphql.OperationContext) *gqlerror.Error {
	x := sink.From(ctx)
	if left(x, opCtx) != nil {
		// The second would be judged at what the first has priced, and charged again.
		return gqlerror.Errorf("ratelimit: the server uses a limiter twice: call srv.Use with one ratelimit.Extension, once")
	}
	op := e.newOperation(x)
	p, d := &op.price, &op.decision
	// The extension is used first, so that nobody has rewritten what was parsed from the text.
	p.plan, p.err = e.estimator.PlanText(opCtx.RawQuery, opCtx.Doc, opCtx.Operation)
	if p.err == nil {
		// A broken rule of shape leaves the cost valid, which matters where it is not enforced.
		d.Cost, p.err = p.plan.Evaluate(opCtx.Variables)
		d.Points = e.price(ctx, d.Cost)
	} else {
		d.Points = cost.MaxPoints
	}
	e.misshapen.note(opCtx, p.plan, p.err)
	// An operation that has no price is refused when it is decided about, with everything else.
	op.leave(opCtx)
	return nil
}

// leave keeps the operation for the hooks after the mutator: with its request where that has no other, or else, and where a
// front door has made a map there that it looks into, with the statistics.
func (op *operation) leave(opCtx *graphql.OperationContext) {
	door := opCtx.Stats.GetExtension(inbound.Passage) != nil
	if door || op.exchange == nil || !op.exchange.Leave(opCtx, op) {
		opCtx.Stats.SetExtension(extensionName, op)
	}
}

// left returns what the mutator has left, nil if it has not seen the operation.
func left(x *sink.Exchange, opCtx *graphql.OperationContext) *operation {
	if x != nil {
		if op, ok := x.Left(opCtx).(*operation); ok {
			return op
		}
	}
	op, _ := opCtx.Stats.GetExtension(extensionName).(*operation)
	return op
}

// price calls the pricing function.
func (e *Extension) price(ctx context.Context, c cost.Cost) (points int64) {
	if !guard.Run(ctx, e.cfg.Observe.Logger, "Config.Pricing.Points", func() { points = e.cfg.Pricing.Points(c) }) {
		return cost.MaxPoints
	}
	return min(max(0, points), cost.MaxPoints)
}

// tooExpensive returns why the price alone forbids the operation, in the mode in which it does, nil if it
// does not.
func (op *operation) tooExpensive() *decision.Refusal {
	rules, points := op.decision.Rules, op.decision.Points
	if op.price.err != nil {
		if rules.Mode == bucket.Off {
			return nil
		}
		refusal := refusedQuery(op.price.err)
		refusal.Mode, refusal.EnforceFrom = rules.Mode, rules.EnforceFrom
		return refusal
	}
	most, mode := rules.MaxCost.Exceeded(points)
	if mode == bucket.Off {
		return nil
	}
	refusal := &decision.Refusal{Outcome: decision.TooExpensive, Mode: mode, Cost: points, MaxCost: most}
	if mode == bucket.Warn {
		refusal.EnforceFrom = rules.MaxCost.EnforcedFrom(points)
	}
	return refusal
}

// What a client can ask to know about the price of its operation, besides what every answer says. The words are those of
// other servers, in the header GraphQL-Cost.
const (
	// costReport asks for the breakdown of the price.
	costReport = "report"
	// costValidate asks for the price and its breakdown instead of the operation, which is neither
	// run nor charged.
	costValidate = "validate"
	// costFull asks for every limit, which anybody may.
	costFull = "full"
)

const (
	headerCost = "Graphql-Cost"
	// costExtension is where an operation may carry the word, and has to on a WebSocket, because there the header belongs to the
	// connection.
	costExtension = "cost"
)

var (
	errCostRequest = errors.New("send full, report or validate")
	errCostBoth    = errors.New("the header and extensions.cost say different words: send one of them")
	errCostUpgrade = errors.New("on a WebSocket say it in extensions.cost of the operation")
)

// costRequestOf returns the word that the client sent, empty if there is none. One that is not understood is an error: a
// client that meant validate must not have its mutation run. For the same reason each operation of a WebSocket whose
// upgrade carried the header has to say itself what it asks for. Only report and full are ignored there, which change
// nothing about what happens.
func costRequestOf(x *sink.Exchange, opCtx *graphql.OperationContext) (string, error) {
	values, sent := opCtx.Headers[headerCost]
	word, inUpgrade := strings.Join(values, ","), x.Socket(opCtx.Headers)
	if value, found := opCtx.Extensions[costExtension]; found {
		text, isString := value.(string)
		switch {
		case !isString:
			return "", fmt.Errorf("extensions.%s is not a string: %w", costExtension, errCostRequest)
		case sent && !inUpgrade && !strings.EqualFold(strings.TrimSpace(word), strings.TrimSpace(text)):
			return "", errCostBoth
		}
		word, sent, inUpgrade = text, true, false
	}
	asked := strings.ToLower(strings.TrimSpace(word))
	switch {
	case !sent, inUpgrade && (asked == costReport || asked == costFull):
		return "", nil
	case inUpgrade:
		return "", fmt.Errorf("GraphQL-Cost is %.40q in the upgrade: %w", word, errCostUpgrade)
	case asked != costReport && asked != costValidate && asked != costFull:
		return "", fmt.Errorf("GraphQL-Cost is %.40q: %w", word, errCostRequest)
	}
	return asked, nil
}

// asksForAll says that the client asks for every limit, of a document that has no price to ask for. A word that is not understood
// changes nothing there: nothing can run that should not.
func asksForAll(x *sink.Exchange, opCtx *graphql.OperationContext, rules *tiers.Rules) bool {
	asked, err := costRequestOf(x, opCtx)
	return err == nil &&
		(asked == costFull || asked == costReport && rules.CostReport || asked == costValidate && rules.CostValidate)
}

// explain answers what the client asks about the price. It returns the answer to an operation that is
// not to run, and nil otherwise; then it may have refused.
func (e *Extension) explain(opCtx *graphql.OperationContext, op *operation) *graphql.Response {
	d := &op.decision
	asked, err := costRequestOf(op.exchange, opCtx)
	// A refusal costs nothing, and would else tell the price to whoever may not ask for it.
	hides := (err != nil || asked == costValidate) && !op.decision.Rules.CostValidate
	d.Hide.Cost = d.Hide.Cost || hides
	if err != nil {
		d.Refuse(&decision.Refusal{Outcome: decision.CostRequestInvalid, Detail: err.Error()})
		return nil
	}
	if asked == costValidate && !op.decision.Rules.CostValidate {
		d.Refuse(&decision.Refusal{Outcome: decision.CostRequestForbidden})
		return nil
	}
	if asked == "" || asked == costReport && !op.decision.Rules.CostReport {
		return nil
	}
	if d.Full, op.asks = true, true; asked == costFull {
		return nil
	}
	d.Breakdown = e.breakdown(opCtx, cost.ExplainOptions{})
	if asked == costReport {
		return nil
	}
	d.Outcome = decision.Validated
	for _, rule := range ownRules {
		d.Note(rule(op))
	}
	return &graphql.Response{Data: []byte("null")}
}

// nameDearest notes which call is the most expensive one where the price alone refuses, or will. It takes up to a millisecond
// and more for an operation that costs its client nothing, so that it is done for a few of a tenant in a second.
func (e *Extension) nameDearest(opCtx *graphql.OperationContext, d *decision.Decision) {
	because := d.Because()
	if because == nil || because.Outcome != decision.TooExpensive || because.Mode > bucket.Warn ||
		because.Limit != nil && because.Limit.Unit != bucket.Points {
		return
	}
	breakdown := d.Breakdown
	if breakdown == nil {
		if n, _ := e.explained.Count(d.Subject.Tenant, time.Now(), time.Second); n > explainedASecond {
			return
		}
		breakdown = e.breakdown(opCtx, cost.ExplainOptions{MaxEntries: dearestOf, MaxBytes: 1 << 20})
	}
	if breakdown != nil {
		because.Dearest = decision.DearestOf(breakdown)
	}
}

const (
	// dearestOf is how many calls are looked at for the most expensive one, which are the most expensive ones.
	dearestOf = 100
	// explainedASecond is for how many operations of a tenant it is looked for in a second.
	explainedASecond = 10
)

// breakdown explains the price of an operation. It returns nil for one that cannot be priced.
func (e *Extension) breakdown(opCtx *graphql.OperationContext, bounds cost.ExplainOptions) *cost.Breakdown {
	outline, err := e.estimator.OutlineText(opCtx.RawQuery, opCtx.Doc, opCtx.Operation)
	if err != nil {
		return nil
	}
	breakdown := outline.Explain(opCtx.Variables, bounds)
	return &breakdown
}

// withComplexity returns the functions that are given and those of the server's ComplexityRoot.
func withComplexity(
	given map[string]cost.ComplexityFunc, schema graphql.ExecutableSchema, logger *slog.Logger,
) (map[string]cost.ComplexityFunc, error) {
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
		return given, errors.New("ratelimit: Config.Pricing.UseComplexity: the server has no complexity function; " +
			"set some in the Complexity of its configuration, and no omit_complexity in gqlgen.yml")
	}
	maps.Copy(functions, given)
	return functions, nil
}

// hasComplexity asks the server about a call without arguments. gqlgen says no for a field without a
// function and for arguments that it cannot convert, and absent ones it need not convert.
func hasComplexity(schema graphql.ExecutableSchema, object, field string) (has bool) {
	panicked := guard.Call("a complexity function", func() error {
		_, has = schema.Complexity(context.Background(), object, field, 0, map[string]any{})
		return nil
	})
	// Only a function minds the zero values of its arguments.
	return has || panicked != nil
}

// complexityOf returns the function of a field. One that panics is reported, because all that the client
// sees is a price.
func complexityOf(schema graphql.ExecutableSchema, object, field string, logger *slog.Logger) cost.ComplexityFunc {
	logger = logger.With(slog.String("field", object+"."+field))
	return func(childComplexity int, arguments map[string]any) (complexity int, ok bool) {
		ran := guard.Run(context.Background(), logger, "a complexity function", func() {
			complexity, ok = schema.Complexity(context.Background(), object, field, childComplexity, arguments)
		})
		if !ran {
			return 0, false
		}
		return complexity, ok
	}
}

// tooManyValues returns why the operation is refused whose arguments have more values than a limit can be divided by, nil
// if they have not.
func (op *operation) tooManyValues() *decision.Refusal {
	t := op.decision.Rules.TooMany
	if t == nil || t.Mode == bucket.Off {
		return nil
	}
	return &decision.Refusal{
		Outcome: decision.QueryLimited, Mode: t.Mode, EnforceFrom: t.EnforceFrom,
		Detail: fmt.Sprintf("the operation gives more than %s to the argument %s of %s", t.Most, t.By, t.Operation),
	}
}
