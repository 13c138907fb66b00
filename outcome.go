package ratelimit

import (
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
)

// Outcome says what a decision came to, in the word that spans and metrics carry.
type Outcome string

// The outcomes of a decision. An operation runs after the first group and does not after the second. What is refused for
// its idempotency key or its GraphQL-Cost has the words of its code: key_invalid, key_reused, in_flight,
// answer_unavailable, outcome_unknown, cost_request_invalid and cost_request_forbidden.
const (
	// OutcomeAdmitted: the operation was charged, or had nothing to be charged for.
	OutcomeAdmitted = Outcome(decision.Admitted)
	// OutcomeShadowed: the operation runs although something that is in shadow mode would have refused it.
	OutcomeShadowed = Outcome(decision.Shadowed)
	// OutcomeWarned: the same for something that is in mode warn, of which the client is told.
	OutcomeWarned = Outcome(decision.Warned)
	// OutcomeRepeated: the operation runs again on the charge of an attempt under its key that was abandoned, as when its
	// server died.
	OutcomeRepeated = Outcome(decision.Repeated)
	// OutcomeUnjudged: the operation runs because the store did not answer, and every limit that could refuse it fails
	// open.
	OutcomeUnjudged = Outcome(decision.Unjudged)
	// OutcomeAdmittedLocally: the operation runs because the store did not answer and this instance's share of its limits,
	// which fail bounded or local, had the amount. The store is charged when it is back.
	OutcomeAdmittedLocally = Outcome(decision.AdmittedLocally)
	// OutcomeExempt: the subject is not subject to limits at all.
	OutcomeExempt = Outcome(decision.Exempt)

	// OutcomeLimited: a limit does not have the amount now.
	OutcomeLimited = Outcome(decision.Limited)
	// OutcomeTooExpensive: the operation costs more than it ever may.
	OutcomeTooExpensive = Outcome(decision.TooExpensive)
	// OutcomeQueryLimited: the operation breaks a rule of shape, such as giving two slicing arguments.
	OutcomeQueryLimited = Outcome(decision.QueryLimited)
	// OutcomeBlocked: the tenant may not use the API.
	OutcomeBlocked = Outcome(decision.Blocked)
	// OutcomeLimitedLocally: the store is away, and has refused such an operation before, or this instance's share of a
	// limit that fails bounded or local does not have the amount now.
	OutcomeLimitedLocally = Outcome(decision.LimitedLocally)
	// OutcomeUnavailable: the store is away and a limit fails closed, or this instance's share of one that fails bounded or
	// local is too small for the operation.
	OutcomeUnavailable = Outcome(decision.Unavailable)
	// OutcomeOverloaded: this process was too busy to ask the store in time, and nothing that it knows admits the
	// operation: a limit fails closed, or this instance's share of it does not have the amount.
	OutcomeOverloaded = Outcome(decision.Overloaded)
	// OutcomeShed: the servers have more to do than they can, and the adaptive throttle has refused the operation before anything was charged.
	OutcomeShed = Outcome(decision.Shed)
	// OutcomeBackstop: all tenants together have asked for more than the backstop of the policy holds.
	OutcomeBackstop = Outcome(decision.Backstop)
	// OutcomeSubjectUnknown: nobody could be found who pays, or the caller's authentication failed.
	OutcomeSubjectUnknown = Outcome(decision.SubjectUnknown)
	// OutcomeValidated: the client asked for the price of the operation instead of running it, by GraphQL-Cost:
	// validate.
	OutcomeValidated = Outcome(decision.Validated)
	// OutcomeBusy: the tenant has as many calls of the store under way as [OutageConfig] lets it have.
	OutcomeBusy = Outcome(decision.Busy)
	// OutcomeReplayed: the client got the stored answer of the first attempt.
	OutcomeReplayed = Outcome(decision.Replayed)
)
