package access_test

import (
	"crypto/sha256"
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
		Roles: []access.Role{access.TenantAdmin}, Tenants: []string{"acme"},
	}
	fmt.Println(access.Authorize(actor, access.SetAllocations, "acme"))
	fmt.Println(access.Authorize(actor, access.SetAllocations, "globex"))
	fmt.Println(access.Authorize(actor, access.SetOverride, "acme"))
	// Output:
	// <nil>
	// access: denied: allocation.set outside the tenants that the actor is confined to
	// access: denied: override.set takes the role operator
}

// A token of somebody has no more rights than they have, and counts as them.
func ExampleNewToken() {
	ada := access.Actor{
		Subject: "ada", Issuer: "https://login.example.org", Method: access.MethodOIDC, Roles: []access.Role{access.Publisher},
	}
	token, text, err := access.NewToken(ada, access.TokenRequest{
		Subject: "deploy", Roles: []access.Role{access.Publisher}, Life: 30 * 24 * time.Hour,
	}, time.Now())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(text[:4], len(text), token.Owner)
	_, _, err = access.NewToken(ada, access.TokenRequest{Subject: "deploy", Roles: []access.Role{access.Operator}}, time.Now())
	fmt.Println(err)
	// Output:
	// grl_ 77 https://login.example.org ada
	// access: denied: token.issue takes the role operator
}

// An issuer of OpenID Connect says who somebody is, and its claims what they are.
func ExampleNewAuthenticator() {
	cfg := access.OIDCConfig{
		Issuer: "https://login.example.org", Audience: "ratelimits",
		Roles: []access.ClaimRole{
			{Claim: "groups", Value: "limits-publishers", Role: access.Publisher, Everywhere: true},
			{Claim: "groups", Value: "customers", Role: access.TenantAdmin},
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
	// Output: access: the request shows neither a token nor a client certificate
}

// A change that refuses much takes a second person, who approves exactly this document on exactly this revision.
func ExampleSecondPerson() {
	rule := access.SecondPerson{}
	if err := rule.Check(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(rule.Needed(access.Blast{Known: true, Share: 0.2, Tenants: 3}))

	ada := access.Actor{Subject: "ada", Issuer: "https://login.example.org", Method: access.MethodOIDC, Roles: []access.Role{access.Publisher}}
	bob := ada
	bob.Subject = "bob"
	change := access.Change{
		Action: access.PublishPolicy, Target: "policy", Content: sha256.Sum256([]byte("version: 1\n")), ExpectedRevision: 7,
	}
	proposal, err := rule.Propose(ada, "p-1", change, time.Now())
	if err != nil {
		log.Fatal(err)
	}
	_, err = rule.Approve(ada, proposal, change, time.Now())
	fmt.Println(err)
	approval, err := rule.Approve(bob, proposal, change, time.Now())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(rule.Permits(proposal, approval, change, time.Now()))
	change.ExpectedRevision = 8
	fmt.Println(rule.Permits(proposal, approval, change, time.Now()))
	// Output:
	// true
	// access: not approved: who proposes is not the second person
	// <nil>
	// access: not approved: what was approved is another document, or based on another revision
}
