package show

import (
	"fmt"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// messages are those of refusals that have no numbers.
var messages = map[decision.Outcome]string{
	decision.Blocked:     "this account may not use the API: contact support",
	decision.Unavailable: "rate limiting is temporarily unavailable: nothing was run, try again",
	decision.Overloaded:  "the server is busy: nothing was run, try again shortly",
	decision.Shed:        "the server has more to do than it can: nothing was run, try again later",
	decision.Backstop:    "the server has more to do for all than it can: nothing was run, try again later",
	decision.Busy:        "too many concurrent requests for this account: nothing was run, try again",
	// Without a limit, this is what each server lets a tenant have of stored answers.
	decision.Limited: "this account has asked for too many answers again: the operation ran before and was not run now, " +
		"ask for its answer later",
	decision.SubjectUnknown: "the caller could not be identified: send valid credentials",
	decision.KeyReused:      "this idempotency key was used for another operation or other variables: use a new key",
	decision.InFlight:       "an operation with this idempotency key is still running: try again with the same key",
	decision.OutcomeUnknown: "an operation with this idempotency key was broken off, and nobody knows how far it came: " +
		"read its effect before you send it again with a new key",
	decision.AnswerUnavailable: "the operation ran under this idempotency key, but its answer was not kept: " +
		"read its effect before you send it again with a new key",
	decision.CostRequestForbidden: "pricing an operation without running it is not permitted here: nothing was run; send it " +
		"without GraphQL-Cost: validate to run it",
}

// Message is what the client of a refusal reads: what refuses, how much was asked for and is left, when to come back,
// and what to change. What is hidden is left out.
func Message(d *decision.Decision, r *decision.Refusal) string {
	if r.Dearest != nil && !d.Hide.Cost {
		return message(d, r) + dearestText(r.Dearest)
	}
	return message(d, r)
}

// dearestText says which call the client had better make smaller.
func dearestText(dearest *decision.Dearest) string {
	text := "; "
	if dearest.Percent > 0 {
		text += fmt.Sprintf("%d %% of that is ", dearest.Percent)
	} else {
		text += "most of that is "
	}
	text += dearest.Coordinate
	if dearest.ListSize > 0 {
		text += fmt.Sprintf(", a list of %.0f", finite(dearest.ListSize))
		if dearest.Argument != "" {
			text += " (" + dearest.Argument + ")"
		}
	}
	if dearest.Calls > 1 {
		text += fmt.Sprintf(", called %.0f times", finite(dearest.Calls))
	}
	return text
}

func message(d *decision.Decision, r *decision.Refusal) string {
	hide := d.Hide
	switch {
	case r.Shape != nil && r.Shape.Coordinate == "" && hide.Limits:
		return fmt.Sprintf("%s: %d given", r.Shape.Reason, r.Shape.Given)
	case r.Detail != "":
		return r.Detail
	case r.BlockedBy != nil:
		return blockedText(r.BlockedBy.Owner, hide)
	case r.Limit != nil && r.Outcome == decision.TooExpensive:
		return neverText(r, hide)
	case r.Limit != nil:
		return limitedText(d, r)
	case r.MaxCost > 0 && hide.Cost:
		return "the operation costs more than one operation may: ask for fewer list items or fields"
	case r.MaxCost > 0 && hide.Limits:
		return fmt.Sprintf("the operation costs %d points, which is more than one operation may: "+
			"ask for fewer list items or fields", r.Cost)
	case r.MaxCost > 0:
		return fmt.Sprintf("the operation costs %d points, the limit for one operation is %d: "+
			"ask for fewer list items or fields", r.Cost, r.MaxCost)
	default:
		return messages[r.Outcome]
	}
}

// blockedText says what is blocked: who may go on with something else reads that.
func blockedText(owner bucket.Owner, hide tiers.Hide) string {
	switch {
	case owner.Level == bucket.Tenant:
		return messages[decision.Blocked]
	case owner.Level != bucket.Operation:
		return fmt.Sprintf("this %s may not use the API: contact support", owner.Level)
	case hide.Owners:
		return "this operation is blocked for now, others are not: contact support"
	default:
		return fmt.Sprintf("%s is blocked for now, other operations are not: contact support", owner.Name)
	}
}

func limitedText(d *decision.Decision, r *decision.Refusal) string {
	text := fmt.Sprintf("rate limit %q of this %s exceeded: ", r.Limit.Name, r.Owner.Level)
	unit := " " + string(r.Limit.Unit)
	// Who needs a single one cannot ask for less.
	several := r.Needed > 1
	if several && !d.Hide.Cost {
		text += fmt.Sprintf("%d%s needed, ", r.Needed, unit)
		unit = ""
	}
	switch {
	case d.Hide.Remaining:
	case d.Hide.Limits:
		text += fmt.Sprintf("%d%s left, ", r.Remaining, unit)
	default:
		text += fmt.Sprintf("%d of %d%s left, ", r.Remaining, r.Limit.Capacity, unit)
	}
	text += fmt.Sprintf("try again in %s", time.Duration(ceilDiv(RetryAfter(d, r), time.Millisecond))*time.Millisecond)
	if several {
		text += " or ask for less"
	}
	return text
}

func neverText(r *decision.Refusal, hide tiers.Hide) string {
	needs := fmt.Sprintf("%d %s, more than", r.Needed, r.Limit.Unit)
	if hide.Cost {
		needs = fmt.Sprintf("more %s than", r.Limit.Unit)
	}
	text := fmt.Sprintf("the operation needs %s the limit %q of this %s can ever hold", needs, r.Limit.Name, r.Owner.Level)
	if !hide.Limits {
		text += fmt.Sprintf(" (%d)", r.Limit.Capacity)
	}
	return text + ": ask for less at a time"
}
