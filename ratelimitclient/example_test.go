package ratelimitclient_test

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// A client that reads bodies itself learns everything from the body.
func ExampleFromResponse() {
	body := []byte(`{
		"errors": [{
			"message": "rate limit \"minute\" of this tenant exceeded",
			"extensions": {"code": "RATE_LIMITED", "retryAfter": 1.5, "limit": "minute", "level": "tenant", "unit": "points"}
		}],
		"data": null,
		"extensions": {"rateLimit": {"cost": 42, "charged": 0, "limit": "minute", "unit": "points", "capacity": 1000, "remaining": 17, "resetAfter": 58.98,
			"limits": [], "tier": "free", "mode": "enforce", "replayed": false, "retryAfter": 1.5}}
	}`)

	response, err := ratelimitclient.FromResponse(body)
	if err != nil {
		fmt.Println(err)
		return
	}
	if r := response.Refusal; r != nil && r.Temporary() {
		fmt.Printf("%s: %s, wait %s\n", r.Code, r.Limit, r.RetryAfter)
	}
	if l := response.RateLimit; l != nil {
		fmt.Printf("%d of %d %s left, this costs %d points\n", l.Remaining, l.Capacity, l.Unit, l.Cost)
	}
	// Output:
	// RATE_LIMITED: minute, wait 1.5s
	// 17 of 1000 points left, this costs 42 points
}

// Libraries such as genqlient and hasura/go-graphql-client hand out the extensions as a map.
func ExampleFromExtensions() {
	extensions := map[string]any{
		"rateLimit": map[string]any{"cost": 7.0, "limit": "minute", "unit": "points", "capacity": 1000.0, "remaining": 993.0},
	}

	limits, ok, err := ratelimitclient.FromExtensions(extensions)
	fmt.Println(limits.Remaining, limits.Unit, ok, err)
	// Output:
	// 993 points true <nil>
}

// Genqlient returns the errors of a response as a gqlerror.List.
func ExampleFromErrors() {
	var err error = gqlerror.List{{
		Message:    "the operation costs 5000 points, the limit for one operation is 500",
		Extensions: map[string]any{"code": "COST_LIMIT_EXCEEDED", "cost": 5000, "maxCost": 500},
	}}

	var list gqlerror.List
	if errors.As(err, &list) {
		if refusal, ok := ratelimitclient.FromErrors(list); ok {
			fmt.Println(refusal.Code, refusal.Cost, refusal.MaxCost, refusal.Temporary())
		}
	}
	// Output:
	// COST_LIMIT_EXCEEDED 5000 500 false
}

func ExampleRetryAfter() {
	header := http.Header{}
	header.Set("Retry-After", "2")

	if wait, ok := ratelimitclient.RetryAfter(header); ok {
		fmt.Println("again in", wait.Round(time.Second))
	}
	// Output:
	// again in 2s
}
