package ratelimit

import (
	"errors"
	"strings"
	"time"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// retrySoon is how long a client should wait for a store that is away, or for the other calls of its tenant, which end
// within the timeout of the store.
const retrySoon = time.Second

func refusedTooExpensive(points, maxCost int64) *decision.Refusal {
	return &decision.Refusal{
		Code: ratelimitclient.CodeCostLimitExceeded, Outcome: decision.TooExpensive, Cost: points, MaxCost: maxCost,
	}
}

func refusedQuery(err error) *decision.Refusal {
	refusal := &decision.Refusal{
		Code: ratelimitclient.CodeQueryLimitExceeded, Outcome: decision.QueryLimited,
		// Clients need not know the name of a package.
		Detail: strings.TrimPrefix(err.Error(), "cost: "),
	}
	// What is too large to be priced breaks no single rule.
	errors.As(err, &refusal.Shape)
	return refusal
}

func refusedBlocked() *decision.Refusal {
	return &decision.Refusal{Code: ratelimitclient.CodeTenantBlocked, Outcome: decision.Blocked}
}

func refusedUnavailable() *decision.Refusal {
	return &decision.Refusal{
		Code: ratelimitclient.CodeUnavailable, Outcome: decision.Unavailable, RetryAfter: retrySoon,
	}
}

func refusedBusy() *decision.Refusal {
	return &decision.Refusal{Code: ratelimitclient.CodeRateLimited, Outcome: decision.Busy, RetryAfter: retrySoon}
}

func refusedReplay(left time.Duration) *decision.Refusal {
	return &decision.Refusal{Code: ratelimitclient.CodeRateLimited, Outcome: decision.Limited, RetryAfter: left}
}

func refusedSubject(err error) *decision.Refusal {
	refusal := &decision.Refusal{Code: ratelimitclient.CodeSubjectUnknown, Outcome: decision.SubjectUnknown}
	var presented *gqlerror.Error
	switch {
	case errors.As(err, &presented):
		refusal.Detail, refusal.Presented = presented.Message, presented
		return refusal
	case errors.Is(err, ErrNoSubject):
		return refusal
	default:
		return refusedUnavailable()
	}
}

func refusedKeyInvalid(err error) *decision.Refusal {
	return &decision.Refusal{
		Code: ratelimitclient.CodeKeyInvalid, Outcome: decision.KeyInvalid,
		Detail: "invalid idempotency key: " + strings.TrimPrefix(err.Error(), idempotency.ErrKeyInvalid.Error()+": "),
	}
}

// refusedByClaim returns the refusal of a verdict about an idempotency key.
func refusedByClaim(result *bucket.Result) *decision.Refusal {
	switch result.Verdict {
	case bucket.KeyReused:
		return &decision.Refusal{Code: ratelimitclient.CodeKeyReused, Outcome: decision.KeyReused}
	case bucket.InFlight:
		return &decision.Refusal{
			Code: ratelimitclient.CodeInFlight, Outcome: decision.InFlight, RetryAfter: max(result.RetryAfter, time.Second),
		}
	case bucket.OutcomeUnknown:
		return &decision.Refusal{Code: ratelimitclient.CodeOutcomeUnknown, Outcome: decision.OutcomeUnknown}
	default:
		return &decision.Refusal{Code: ratelimitclient.CodeAnswerUnavailable, Outcome: decision.AnswerUnavailable}
	}
}

func refusedCostRequest(err error) *decision.Refusal {
	return &decision.Refusal{
		Code: ratelimitclient.CodeCostRequestInvalid, Outcome: decision.CostRequestInvalid, Detail: err.Error(),
	}
}

func refusedCostValidate() *decision.Refusal {
	return &decision.Refusal{Code: ratelimitclient.CodeCostRequestForbidden, Outcome: decision.CostRequestForbidden}
}
