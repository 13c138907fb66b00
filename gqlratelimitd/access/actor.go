package access

import (
	"net/netip"
	"regexp"
	"slices"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
)

// Method is how an actor has shown who they are.
type Method string

// The methods.
const (
	// MethodToken is a token of the control plane's own.
	MethodToken Method = "token"
	// MethodBootstrap is the token that a control plane without any prints. It may issue one token, and nothing else.
	MethodBootstrap Method = "bootstrap"
	// MethodOIDC is a token that an OpenID Connect issuer has signed.
	MethodOIDC Method = "oidc"
	// MethodSystem is the control plane itself, see [System].
	MethodSystem Method = "system"
)

// Actor is who asks. The zero value may do nothing. An actor is not changed once somebody else has it.
type Actor struct {
	// Subject is the name that the issuer gives the actor, and Issuer who gives it: the URL of an OpenID Connect issuer, or
	// [LocalIssuer]. Together they name one actor.
	Subject, Issuer string
	// Method is how the actor has shown that.
	Method Method
	// Owner is the [Actor.Person] who has issued the token of the actor, and of an actor whom an issuer of OpenID Connect calls by another claim
	// than sub, that issuer and sub. It is empty where there is none.
	Owner string
	// Token is the ID of the token that the actor has come in with, and Apart is its [Token.Apart]. Both are empty where it is no token of ours.
	Token string
	Apart bool
	// Root is the [Token.Root] of that token. It is empty where Token is.
	Root string
	// Until is when that token ends. What is issued with it ends no later.
	Until time.Time
	// Roles are what the actor is.
	Roles []Role
	// Tenants confine the actor to these tenants: what is about another one, or about all, is denied in whatever role.
	// Empty confines nobody.
	Tenants []string
	// Address is where the request came from, and Agent what its client calls itself: at most [MaxAgent] bytes. They are told,
	// and decide nothing.
	Address netip.Addr
	Agent   string
}

const (
	// LocalIssuer is the issuer of tokens of the control plane's own, and of the control plane itself.
	LocalIssuer = "gqlratelimitd"
	// MaxAgent is how many bytes of a User-Agent are kept.
	MaxAgent = 256
	// MaxTenants is how many tenants an actor is confined to at most.
	MaxTenants = 100
)

// System is a part of the control plane that acts by itself, such as the relay. It may do what has to happen
// without a person. No request is ever made by one.
func System(part string) Actor {
	return Actor{Subject: part, Issuer: LocalIssuer, Method: MethodSystem}
}

// Person is who answers for what the actor does, as one text that stays whatever else they are called: the issuer and sub of OpenID
// Connect, or of a token that is a program of somebody's, that person. A token that is [Token.Apart] answers for itself.
func (a Actor) Person() string {
	if a.Owner != "" && !a.Apart {
		return a.Owner
	}
	// A space is in no URL and in no name of ours, so that no two pairs are one text.
	return a.Issuer + " " + a.Subject
}

// program reports whether the actor is a token of somebody else's, who answers for it.
func (a *Actor) program() bool {
	return a.Method == MethodToken && a.Owner != "" && !a.Apart
}

// AnswersFor reports whether the actor is the person who has issued a token, by themselves or by a program of theirs.
func (a Actor) AnswersFor(token *Token) bool {
	return !a.program() && token.Owner == a.Person()
}

// Confined reports whether the actor has to do with some tenants only.
func (a Actor) Confined() bool { return len(a.Tenants) > 0 }

// bearerID matches the ID of a token in the name of its bearer, also one that was cut where the name has no room.
var bearerID = regexp.MustCompile(`#[a-z2-7]{1,13}( |$)`)

// Told is the name of somebody who has done something, as the actor is told it. Who is confined learns the ID of no token but their own.
func (a Actor) Told(name string) string {
	if !a.Confined() || name == a.Subject {
		return name
	}
	return bearerID.ReplaceAllString(name, "$1")
}

// Has reports whether the actor has the role.
func (a Actor) Has(role Role) bool { return slices.Contains(a.Roles, role) }

// Audit returns the actor as words of the audit log.
func (a Actor) Audit() audit.Actor {
	words := audit.Actor{Subject: a.Subject, Issuer: a.Issuer, Method: string(a.Method), Owner: a.Owner, Agent: a.Agent}
	if a.Address.IsValid() {
		words.Address = a.Address.String()
	}
	return words
}
