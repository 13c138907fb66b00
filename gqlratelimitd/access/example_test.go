package access_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
)

// Authorize says whether somebody may, and who may if they may not.
func ExampleAuthorize() {
	actor := access.Actor{
		Subject: "eve", Issuer: "https://login.example.org", Method: access.MethodOIDC,
		Roles: []access.Role{access.Operator}, Tenants: []string{"acme"},
	}
	fmt.Println(access.Authorize(actor, access.SetAllocations, "acme"))
	fmt.Println(access.Authorize(actor, access.SetAllocations, "globex"))
	fmt.Println(access.Authorize(actor, access.SetOverride, "acme"))
	// Output:
	// <nil>
	// access: denied: allocation.set outside the tenants that the actor is confined to
	// access: denied: override.set takes the role admin
}

// A token of somebody has no more rights than they have, and counts as them.
func ExampleTokenKey_NewToken() {
	var key access.TokenKey // the store keeps 32 random bytes
	ada := access.Actor{
		Subject: "ada", Issuer: "https://login.example.org", Method: access.MethodOIDC, Roles: []access.Role{access.Operator},
	}
	token, text, err := key.NewToken(ada, access.TokenRequest{
		Subject: "deploy", Roles: []access.Role{access.Operator}, Life: 30 * 24 * time.Hour,
	}, time.Now())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(text[:4], len(text), token.Owner)
	_, _, err = key.NewToken(ada, access.TokenRequest{Subject: "deploy", Roles: []access.Role{access.Admin}}, time.Now())
	fmt.Println(err)
	// Output:
	// grl_ 77 https://login.example.org ada
	// access: denied: token.issue takes the role admin
}

// An issuer of OpenID Connect says who somebody is, and its claims what they are.
func ExampleNewAuthenticator() {
	cfg := access.OIDCConfig{
		Issuer: "https://login.example.org", Audience: "ratelimits",
		Roles: []access.ClaimRole{
			{Claim: "groups", Value: "limits-admins", Role: access.Admin, Everywhere: true},
			{Claim: "groups", Value: "customers", Role: access.Operator},
		},
		TenantsClaim: "tenants",
	}
	door, err := access.NewAuthenticator(access.AuthConfig{OIDC: []access.OIDCConfig{cfg}})
	if err != nil {
		log.Fatal(err)
	}
	defer door.Close()
	_, err = door.Authenticate(httptest.NewRequest(http.MethodGet, "/", nil))
	fmt.Println(err)
	// Output: access: the request shows no token
}
