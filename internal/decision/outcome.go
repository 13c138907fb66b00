package decision

import "github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"

// Outcome says what a decision came to, in the word that spans and metrics carry.
type Outcome string

// The outcomes. The constants of package ratelimit say what each means.
const (
	Admitted        Outcome = "admitted"
	Shadowed        Outcome = "shadowed"
	Warned          Outcome = "warned"
	Repeated        Outcome = "repeated"
	Unjudged        Outcome = "unjudged"
	AdmittedLocally Outcome = "admitted_locally"
	Exempt          Outcome = "exempt"
	Validated       Outcome = "validated"
	Replayed        Outcome = "replayed"

	Limited              Outcome = "limited"
	TooExpensive         Outcome = "too_expensive"
	QueryLimited         Outcome = "query_limited"
	Blocked              Outcome = "blocked"
	LimitedLocally       Outcome = "limited_locally"
	Busy                 Outcome = "busy"
	Overloaded           Outcome = "overloaded"
	Shed                 Outcome = "shed"
	Backstop             Outcome = "backstop"
	Unavailable          Outcome = "unavailable"
	SubjectUnknown       Outcome = "subject_unknown"
	KeyInvalid           Outcome = "key_invalid"
	KeyReused            Outcome = "key_reused"
	InFlight             Outcome = "in_flight"
	AnswerUnavailable    Outcome = "answer_unavailable"
	OutcomeUnknown       Outcome = "outcome_unknown"
	CostRequestInvalid   Outcome = "cost_request_invalid"
	CostRequestForbidden Outcome = "cost_request_forbidden"
)

// codes are what clients are told of operations that do not run.
var codes = map[Outcome]string{
	Limited:              ratelimitclient.CodeRateLimited,
	TooExpensive:         ratelimitclient.CodeCostLimitExceeded,
	QueryLimited:         ratelimitclient.CodeQueryLimitExceeded,
	Blocked:              ratelimitclient.CodeTenantBlocked,
	LimitedLocally:       ratelimitclient.CodeRateLimited,
	Busy:                 ratelimitclient.CodeRateLimited,
	Overloaded:           ratelimitclient.CodeOverloaded,
	Shed:                 ratelimitclient.CodeOverloaded,
	Backstop:             ratelimitclient.CodeOverloaded,
	Unavailable:          ratelimitclient.CodeUnavailable,
	SubjectUnknown:       ratelimitclient.CodeSubjectUnknown,
	KeyInvalid:           ratelimitclient.CodeKeyInvalid,
	KeyReused:            ratelimitclient.CodeKeyReused,
	InFlight:             ratelimitclient.CodeInFlight,
	AnswerUnavailable:    ratelimitclient.CodeAnswerUnavailable,
	OutcomeUnknown:       ratelimitclient.CodeOutcomeUnknown,
	CostRequestInvalid:   ratelimitclient.CodeCostRequestInvalid,
	CostRequestForbidden: ratelimitclient.CodeCostRequestForbidden,
}

// Code returns the error code of an operation that does not run, empty for one that does.
func (o Outcome) Code() string { return codes[o] }

// Locally says that the outcome was found without the store, so that the limits show what is left of shares.
func (o Outcome) Locally() bool { return o == AdmittedLocally || o == LimitedLocally }
