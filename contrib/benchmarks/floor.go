package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/99designs/gqlgen/graphql"

	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// shortAnswer is what most answers tell of limits.
type shortAnswer struct {
	Cost       int64   `json:"cost"`
	Charged    int64   `json:"charged"`
	Actual     *int64  `json:"actual,omitempty"`
	Limit      string  `json:"limit"`
	Unit       string  `json:"unit"`
	Capacity   int64   `json:"capacity"`
	Remaining  int64   `json:"remaining"`
	ResetAfter float64 `json:"resetAfter"`
}

// fullAnswer is what an answer tells that tells everything.
type fullAnswer = ratelimitclient.RateLimit

var errNotTheFloor = errors.New("what the limiter tells is not what the floor of it can tell: bring the floor up to date")

// floor returns a server that tells in each answer what a limited server tells in one, and decides nothing: what no limiter
// can be cheaper than that tells so much by way of gqlgen. It is told as a ready-made struct, because encoding/json compacts
// what is ready-made JSON, which takes longer.
func floor(ctx context.Context, limited http.Handler, told any) (http.Handler, error) {
	// The first request of a tenant finds all buckets full.
	answer(ctx, limited, requestBody)
	recorder := answer(ctx, limited, requestBody)
	var response struct {
		Extensions struct {
			RateLimit json.RawMessage `json:"rateLimit"`
		} `json:"extensions"`
	}
	if err := json.Unmarshal(recorder.Body.Bytes(), &response); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(response.Extensions.RateLimit, told); err != nil {
		return nil, err
	}
	again, err := json.Marshal(told)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(again, response.Extensions.RateLimit) {
		return nil, errNotTheFloor
	}
	header := make(map[string][]string)
	for name, values := range recorder.Header() {
		if name != "Content-Type" {
			header[name] = values
		}
	}
	if len(header) == 0 {
		return nil, errNotTheFloor
	}
	server := plainServer()
	server.Use(constant{told})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, values := range header {
			w.Header()[name] = slices.Clone(values)
		}
		server.ServeHTTP(w, r)
	}), nil
}

// constant is an extension that adds the same to each response.
type constant struct{ told any }

var _ interface {
	graphql.HandlerExtension
	graphql.OperationInterceptor
	graphql.ResponseInterceptor
} = constant{}

// ExtensionName implements graphql.HandlerExtension.
func (constant) ExtensionName() string { return "Constant" }

// Validate implements graphql.HandlerExtension.
func (constant) Validate(graphql.ExecutableSchema) error { return nil }

type constantKey struct{}

// InterceptOperation implements graphql.OperationInterceptor.
func (c constant) InterceptOperation(ctx context.Context, next graphql.OperationHandler) graphql.ResponseHandler {
	// No limiter does without a value in the context.
	return next(context.WithValue(ctx, constantKey{}, c))
}

// InterceptResponse implements graphql.ResponseInterceptor.
func (c constant) InterceptResponse(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	response := next(ctx)
	if response == nil {
		return nil
	}
	if response.Extensions == nil {
		response.Extensions = make(map[string]any, 1)
	}
	response.Extensions["rateLimit"] = c.told
	return response
}
