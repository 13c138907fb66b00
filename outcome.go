package ratelimit

import (
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
)

// Outcome says what a decision came to, in the word that spans and metrics carry.
type Outcome string

// The outcomes of a decision. An operation runs after the first group and does not after the second.
const (
	// OutcomeAdmitted: the operation was charged, or had nothing to be charged for.
	OutcomeAdmitted = Outcome(decision.Admitted)
	// OutcomeShadowed: the operation runs although something that is in shadow mode would have refused it.
	OutcomeShadowed = Outcome(decision.Shadowed)
	// OutcomeWarned: the same for something that is in mode warn, of which the client is told.
	OutcomeWarned = Outcome(decision.Warned)
	// OutcomeRepeated: the operation runs again on the charge of an earlier attempt under its key.
	OutcomeRepeated = Outcome(decision.Repeated)
	// OutcomeUnjudged: the operation runs because the store is away and its limits fail open.
	OutcomeUnjudged = Outcome(decision.Unjudged)
	// OutcomeAdmittedLocally: the operation runs because the store is away and this instance's share of its limits,
	// which fail local, had the amount. The store is charged when it is back.
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
	// OutcomeLimitedLocally: the store is away, and this instance's share of a limit that fails local does not have
	// the amount now.
	OutcomeLimitedLocally = Outcome(decision.LimitedLocally)
	// OutcomeUnavailable: the store is away and a limit fails closed, or fails local and this instance's share of it is
	// too small for the operation.
	OutcomeUnavailable = Outcome(decision.Unavailable)
	// OutcomeSubjectUnknown: nobody could be found who pays, or the caller's authentication failed.
	OutcomeSubjectUnknown = Outcome(decision.SubjectUnknown)
	// OutcomeKeyInvalid: the idempotency key is malformed.
	OutcomeKeyInvalid = Outcome(decision.KeyInvalid)
	// OutcomeKeyReused: the idempotency key was used for something else.
	OutcomeKeyReused = Outcome(decision.KeyReused)
	// OutcomeInFlight: another attempt under the idempotency key is running.
	OutcomeInFlight = Outcome(decision.InFlight)
	// OutcomeAnswerUnavailable: the key is done and its answer was not stored.
	OutcomeAnswerUnavailable = Outcome(decision.AnswerUnavailable)
	// OutcomeUnknown: an attempt under the idempotency key was abandoned, and no other may run after it.
	OutcomeUnknown = Outcome(decision.OutcomeUnknown)
	// OutcomeValidated: the client asked for the price of the operation instead of running it, by GraphQL-Cost:
	// validate.
	OutcomeValidated = Outcome(decision.Validated)
	// OutcomeCostRequestInvalid: the client asked about the price in words that nobody understands.
	OutcomeCostRequestInvalid = Outcome(decision.CostRequestInvalid)
	// OutcomeCostRequestForbidden: the tier does not permit pricing without running.
	OutcomeCostRequestForbidden = Outcome(decision.CostRequestForbidden)
	// OutcomeBusy: the tenant has as many calls of the store under way as [OutageConfig] lets it have.
	OutcomeBusy = Outcome(decision.Busy)
	// OutcomeReplayed: the client got the stored answer of the first attempt.
	OutcomeReplayed = Outcome(decision.Replayed)
)
