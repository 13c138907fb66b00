package ratelimit

import (
	"errors"
	"fmt"
	"strings"

	"github.com/99designs/gqlgen/graphql"

	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
	"github.com/gqlgen-ratelimit/ratelimit/internal/sink"
)

// costRequest is what a client asks to know about the price of its operation, besides what every
// answer says. The words are those of other servers, in the header GraphQL-Cost.
type costRequest uint8

const (
	costUnasked costRequest = iota
	// costReport asks for the breakdown of the price.
	costReport
	// costValidate asks for the price and its breakdown in the place of the operation, which is neither
	// run nor charged.
	costValidate
)

const (
	headerCost = "Graphql-Cost"
	// costExtension is where a WebSocket operation carries the word, because there the header belongs
	// to the connection.
	costExtension = "cost"
)

var (
	errCostRequest = errors.New("send report or validate")
	errCostUpgrade = errors.New("on a WebSocket say it in extensions.cost of the operation")
)

// costRequestOf reads the word that the client sent. One that is not understood is an error: a client
// that meant validate must not have its mutation run. For the same reason each operation of a WebSocket
// whose upgrade carried the header has to say itself what it asks for. Only report is ignored there,
// which changes nothing about what happens.
func costRequestOf(opCtx *graphql.OperationContext) (costRequest, error) {
	values := opCtx.Headers[headerCost]
	header := strings.Join(values, ",")
	websocket := sink.Upgrades(opCtx.Headers)
	if value, found := opCtx.Extensions[costExtension]; found && websocket {
		word, isString := value.(string)
		if !isString {
			return costUnasked, fmt.Errorf("extensions.%s is not a string: %w", costExtension, errCostRequest)
		}
		return costRequestFrom(word)
	}
	if len(values) == 0 {
		return costUnasked, nil
	}
	asked, err := costRequestFrom(header)
	switch {
	case !websocket:
		return asked, err
	case asked == costReport:
		return costUnasked, nil
	default:
		return costUnasked, fmt.Errorf("GraphQL-Cost is %.40q in the upgrade: %w", header, errCostUpgrade)
	}
}

// costRequestFrom understands a word.
func costRequestFrom(word string) (costRequest, error) {
	switch strings.ToLower(strings.TrimSpace(word)) {
	case "report":
		return costReport, nil
	case "validate":
		return costValidate, nil
	default:
		return costUnasked, fmt.Errorf("GraphQL-Cost is %.40q: %w", word, errCostRequest)
	}
}

// explain answers what the client asks about the price. It returns the answer to an operation that is
// not to run, and nil otherwise; then it may have refused.
func (e *Extension) explain(opCtx *graphql.OperationContext, op *operation, price *priced) *graphql.Response {
	d := &op.decision
	asked, err := costRequestOf(opCtx)
	if err != nil {
		d.Refuse(refusedCostRequest(err))
		return nil
	}
	if asked == costValidate && !op.rules.CostValidate {
		d.Refuse(refusedCostValidate())
		return nil
	}
	if asked == costUnasked || asked == costReport && !op.rules.CostReport {
		return nil
	}
	d.Breakdown = e.breakdown(opCtx)
	if asked == costReport {
		return nil
	}
	d.Outcome = decision.Validated
	d.Note(op.tooExpensive(price))
	return &graphql.Response{Data: []byte("null")}
}

// breakdown explains the price of an operation. It returns nil for one that cannot be priced.
func (e *Extension) breakdown(opCtx *graphql.OperationContext) *cost.Breakdown {
	outline, err := e.estimator.OutlineText(opCtx.RawQuery, opCtx.Doc, opCtx.Operation)
	if err != nil {
		return nil
	}
	breakdown := outline.Explain(opCtx.Variables, cost.ExplainOptions{})
	return &breakdown
}
