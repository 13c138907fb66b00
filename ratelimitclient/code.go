package ratelimitclient

import "net/http"

// The codes of refusals, in errors[].extensions.code. The number is the HTTP status that belongs to
// the code, unless the server is configured to answer 200 to everything.
const (
	// CodeRateLimited (429): the budget is used up for now. Wait for Refusal.RetryAfter.
	CodeRateLimited = "RATE_LIMITED"
	// CodeCostLimitExceeded (400): the operation costs more than it ever may. Ask for less.
	CodeCostLimitExceeded = "COST_LIMIT_EXCEEDED"
	// CodeQueryLimitExceeded (400): the operation breaks a rule of shape, such as the number of
	// slicing arguments. Change it.
	CodeQueryLimitExceeded = "QUERY_LIMIT_EXCEEDED"
	// CodeTenantBlocked (403): the tenant may not use the API.
	CodeTenantBlocked = "TENANT_BLOCKED"
	// CodeUnavailable (503): the server cannot judge the operation now and did not run it. Try again.
	CodeUnavailable = "RATE_LIMIT_UNAVAILABLE"
	// CodeOverloaded (503): the server is too busy to judge the operation and did not run it. Try again after
	// Refusal.RetryAfter, which is a fraction of a second.
	CodeOverloaded = "OVERLOADED"
	// CodePayloadTooLarge (413): the request, its headers or its document are larger than the server takes. Send less.
	CodePayloadTooLarge = "PAYLOAD_TOO_LARGE"
	// CodePayloadTooSlow (408): the body of the request did not arrive in the time that the server gives it. Nothing was run.
	CodePayloadTooSlow = "PAYLOAD_TOO_SLOW"
	// CodeSubjectUnknown (401): the server could not tell who pays. Send valid credentials.
	CodeSubjectUnknown = "SUBJECT_UNKNOWN"
	// CodeKeyInvalid (400): the idempotency key is malformed, or missing where the server asks for one.
	CodeKeyInvalid = "IDEMPOTENCY_KEY_INVALID"
	// CodeKeyReused (422): the idempotency key was used for another operation or other variables.
	CodeKeyReused = "IDEMPOTENCY_KEY_REUSED"
	// CodeInFlight (409): another attempt under the idempotency key is running. Try again under the
	// same key after Refusal.RetryAfter.
	CodeInFlight = "IDEMPOTENCY_IN_FLIGHT"
	// CodeAnswerUnavailable (409): the operation ran under the idempotency key, and its answer was not
	// kept. Read its effect before you send it under a new key.
	CodeAnswerUnavailable = "IDEMPOTENCY_ANSWER_UNAVAILABLE"
	// CodeOutcomeUnknown (409): an attempt under the idempotency key broke off, and nobody knows how far it
	// came. Read its effect before you send it under a new key.
	CodeOutcomeUnknown = "IDEMPOTENCY_OUTCOME_UNKNOWN"
	// CodeCostRequestInvalid (400): GraphQL-Cost says neither report nor validate.
	CodeCostRequestInvalid = "COST_REQUEST_INVALID"
	// CodeCostRequestForbidden (403): GraphQL-Cost: validate is not permitted to this client. Nothing
	// was run.
	CodeCostRequestForbidden = "COST_REQUEST_FORBIDDEN"
)

// codes has each code with the HTTP status that belongs to it, and whether the same request can pass later.
var codes = map[string]struct {
	status    int
	temporary bool
}{
	CodeRateLimited:          {http.StatusTooManyRequests, true},
	CodeCostLimitExceeded:    {http.StatusBadRequest, false},
	CodeQueryLimitExceeded:   {http.StatusBadRequest, false},
	CodeTenantBlocked:        {http.StatusForbidden, false},
	CodeUnavailable:          {http.StatusServiceUnavailable, true},
	CodeOverloaded:           {http.StatusServiceUnavailable, true},
	CodePayloadTooLarge:      {http.StatusRequestEntityTooLarge, false},
	CodePayloadTooSlow:       {http.StatusRequestTimeout, false},
	CodeSubjectUnknown:       {http.StatusUnauthorized, false},
	CodeKeyInvalid:           {http.StatusBadRequest, false},
	CodeKeyReused:            {http.StatusUnprocessableEntity, false},
	CodeInFlight:             {http.StatusConflict, true},
	CodeAnswerUnavailable:    {http.StatusConflict, false},
	CodeOutcomeUnknown:       {http.StatusConflict, false},
	CodeCostRequestInvalid:   {http.StatusBadRequest, false},
	CodeCostRequestForbidden: {http.StatusForbidden, false},
}

// Status returns the HTTP status that belongs to a code, zero for one that is none of these. A server may be configured to
// answer with another.
func Status(code string) int { return codes[code].status }

// IsCode returns whether an error with this code, in its extensions, is a refusal by package ratelimit.
func IsCode(code string) bool { return codes[code].status != 0 }
