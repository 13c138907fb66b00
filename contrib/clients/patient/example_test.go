package patient_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/Khan/genqlient/graphql"
	hasura "github.com/hasura/go-graphql-client"

	"github.com/gqlgen-ratelimit/ratelimit/contrib/clients/patient"
)

func Example() {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("the API is sent the key", r.Header.Get("Idempotency-Key"))
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"data": {"pay": true}}`)
	}))
	defer api.Close()

	ctx := patient.WithKey(context.Background(), "f81d4fae-one-for-each-payment")
	const pay = `mutation Pay { pay }`

	// hasura/go-graphql-client, without its own retries.
	_, err := hasura.NewClient(api.URL, &patient.Client{}).ExecRaw(ctx, pay, nil)
	fmt.Println(err)

	// Khan/genqlient: the generated functions take the same client and context.
	client := graphql.NewClient(api.URL, &patient.Client{})
	fmt.Println(client.MakeRequest(ctx, &graphql.Request{Query: pay}, &graphql.Response{}))
	// Output:
	// the API is sent the key f81d4fae-one-for-each-payment
	// <nil>
	// the API is sent the key f81d4fae-one-for-each-payment
	// <nil>
}
