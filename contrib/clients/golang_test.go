package clients_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/Khan/genqlient/graphql"
	hasura "github.com/hasura/go-graphql-client"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gqlgen-ratelimit/ratelimit/contrib/clients/patient"
)

// withHeaders sends requests with the headers of a call, as an application's own client does.
type withHeaders struct {
	client  patient.Doer
	headers map[string]string
}

func (w *withHeaders) Do(request *http.Request) (*http.Response, error) {
	for name, value := range w.headers {
		request.Header.Set(name, value)
	}
	return w.client.Do(request)
}

// doer returns what a Go client sends through. Each has its connections to itself.
func (c *call) doer() *withHeaders {
	// Where a connection is reused, the transport of net/http itself repeats a request that has a key.
	plainClient := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if c.Setup == advised {
		return &withHeaders{client: &patient.Client{Doer: plainClient}, headers: c.Headers}
	}
	return &withHeaders{client: plainClient, headers: c.Headers}
}

func sendHasura(ctx context.Context, c call) (outcome, error) {
	var options []hasura.ClientOption
	if c.Setup == own {
		options = append(options, hasura.WithRetry(3))
	}
	_, err := hasura.NewClient(c.URL, c.doer(), options...).ExecRaw(ctx, c.Document, nil)
	var network hasura.NetworkError
	var list hasura.Errors
	switch {
	case err == nil:
		return outcome{Passed: true}, nil
	case errors.As(err, &network):
		return outcome{Sees: fmt.Sprintf("NetworkError %d", network.StatusCode())}, nil
	case errors.As(err, &list):
		code, _ := list[0].Extensions["code"].(string)
		return outcome{Sees: "Errors", Code: code}, nil
	default:
		return outcome{}, err
	}
}

func sendGenqlient(ctx context.Context, c call) (outcome, error) {
	var data any
	request := &graphql.Request{Query: c.Document}
	err := graphql.NewClient(c.URL, c.doer()).MakeRequest(ctx, request, &graphql.Response{Data: &data})
	var status *graphql.HTTPError
	var list gqlerror.List
	switch {
	case err == nil:
		return outcome{Passed: true}, nil
	case errors.As(err, &status):
		return outcome{Sees: fmt.Sprintf("*HTTPError %d", status.StatusCode), Code: codeOf(status.Response.Errors)}, nil
	case errors.As(err, &list):
		return outcome{Sees: "gqlerror.List", Code: codeOf(list)}, nil
	default:
		return outcome{Sees: fmt.Sprintf("%T", err)}, nil
	}
}

func codeOf(list gqlerror.List) string {
	if len(list) == 0 {
		return ""
	}
	code, _ := list[0].Extensions["code"].(string)
	return code
}
