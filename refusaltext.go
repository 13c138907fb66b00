package ratelimit

import (
	"fmt"

	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// text is the message of a refusal: what refuses, how much was asked for and is left, when to come back, and
// what to change. What is hidden is left out. A refusal without numbers keeps its message.
func (e *RefusedError) text(hide tiers.Hide) string {
	switch {
	case e.Query != nil && e.Query.Coordinate == "" && hide.Limits:
		return fmt.Sprintf("%s: %d given", e.Query.Reason, e.Query.Given)
	case e.Limit != nil && e.Code == CodeCostLimitExceeded:
		return e.neverText(hide)
	case e.Limit != nil && e.Code == CodeRateLimited:
		return e.limitedText(hide)
	case e.MaxCost > 0 && hide.Cost:
		return "the operation costs more than one operation may: ask for fewer list items or fields"
	case e.MaxCost > 0 && hide.Limits:
		return fmt.Sprintf("the operation costs %d points, which is more than one operation may: ask for fewer list items or fields", e.Cost)
	case e.MaxCost > 0:
		return fmt.Sprintf("the operation costs %d points, the limit for one operation is %d: "+
			"ask for fewer list items or fields", e.Cost, e.MaxCost)
	default:
		return e.Message
	}
}

func (e *RefusedError) limitedText(hide tiers.Hide) string {
	text := fmt.Sprintf("rate limit %q of this %s exceeded: ", e.Limit.Name, e.Owner.Level)
	unit := " " + string(e.Limit.Unit)
	// Who needs a single one cannot ask for less.
	several := e.needed > 1
	if several && !hide.Cost {
		text += fmt.Sprintf("%d%s needed, ", e.needed, unit)
		unit = ""
	}
	switch {
	case hide.Remaining:
	case hide.Limits:
		text += fmt.Sprintf("%d%s left, ", e.remaining, unit)
	default:
		text += fmt.Sprintf("%d of %d%s left, ", e.remaining, e.Limit.Capacity, unit)
	}
	text += fmt.Sprintf("try again in %s", roundUp(e.RetryAfter))
	if several {
		text += " or ask for less"
	}
	return text
}

func (e *RefusedError) neverText(hide tiers.Hide) string {
	needs := fmt.Sprintf("%d %s, more than", e.needed, e.Limit.Unit)
	if hide.Cost {
		needs = fmt.Sprintf("more %s than", e.Limit.Unit)
	}
	text := fmt.Sprintf("the operation needs %s the limit %q of this %s can ever hold", needs, e.Limit.Name, e.Owner.Level)
	if !hide.Limits {
		text += fmt.Sprintf(" (%d)", e.Limit.Capacity)
	}
	return text + ": ask for less at a time"
}
