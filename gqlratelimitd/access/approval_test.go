package access_test

import (
	"crypto/sha256"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
)

// publisher is a person who publishes.
func publisher(name string) access.Actor {
	return access.Actor{Subject: name, Issuer: "https://login.example.org", Method: access.MethodOIDC, Roles: []access.Role{access.Publisher}}
}

// robotOf is a token that a person has issued.
func robotOf(person access.Actor) access.Actor {
	return access.Actor{Subject: "ci#id", Issuer: access.LocalIssuer, Method: access.MethodToken, Owner: person.Person(), Roles: person.Roles}
}

func defaults(t *testing.T, rule access.SecondPerson) *access.SecondPerson {
	t.Helper()
	require.NoError(t, rule.Check())
	return &rule
}

// publishing is a change.
func publishing() access.Change {
	return access.Change{Action: access.PublishPolicy, Target: "policy", Content: sha256.Sum256([]byte("version: 1")), ExpectedRevision: 7}
}

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func TestASecondPersonIsNeededAboveABlastRadius(t *testing.T) {
	t.Parallel()
	rule := defaults(t, access.SecondPerson{})
	for _, c := range []struct {
		blast  access.Blast
		needed bool
	}{
		{access.Blast{Known: true}, false},
		{access.Blast{Known: true, Share: 0.05, Tenants: 10}, false},
		{access.Blast{Known: true, Share: 0.0501}, true},
		{access.Blast{Known: true, Tenants: 11}, true},
		{access.Blast{Known: true, Share: math.NaN()}, true},
		{access.Blast{Known: true, Share: math.Inf(1)}, true},
		{access.Blast{}, true},
	} {
		require.Equal(t, c.needed, rule.Needed(c.blast), "%+v", c.blast)
	}
	require.False(t, defaults(t, access.SecondPerson{MaxTenants: access.None}).Needed(access.Blast{Known: true, Tenants: math.MaxInt64}))
	require.False(t, defaults(t, access.SecondPerson{MaxShare: access.None}).Needed(access.Blast{}))
}

func TestARuleForASecondPersonSaysAllItsMistakes(t *testing.T) {
	t.Parallel()
	rule := access.SecondPerson{MaxShare: math.NaN(), MaxTenants: -2, Life: time.Second, Methods: []access.Method{access.MethodBootstrap}}
	err := rule.Check()
	for _, field := range []string{"MaxShare", "MaxTenants", "Life", "Methods"} {
		require.ErrorContains(t, err, field)
	}
	for _, share := range []float64{-0.1, 1.1, math.Inf(1)} {
		rule := access.SecondPerson{MaxShare: share}
		require.Error(t, rule.Check(), "%g", share)
	}
}

func TestWhoProposesMayNotApprove(t *testing.T) {
	t.Parallel()
	rule := defaults(t, access.SecondPerson{})
	ada, bob := publisher("ada"), publisher("bob")
	change := publishing()
	for _, proposer := range []access.Actor{ada, robotOf(ada)} {
		p, err := rule.Propose(proposer, "p-1", change, noon)
		require.NoError(t, err)
		for _, same := range []access.Actor{ada, robotOf(ada)} {
			_, err = rule.Approve(same, p, change, noon.Add(time.Hour))
			require.ErrorIs(t, err, access.ErrApproval)
			require.ErrorContains(t, err, "who proposes")
		}
		for _, second := range []access.Actor{bob, robotOf(bob)} {
			a, err := rule.Approve(second, p, change, noon.Add(time.Hour))
			require.NoError(t, err)
			require.NoError(t, rule.Permits(p, a, change, noon.Add(2*time.Hour)))
		}
	}
	// The same name of another issuer is another person.
	stranger := ada
	stranger.Issuer = "https://other.example.org"
	p, err := rule.Propose(ada, "p-1", change, noon)
	require.NoError(t, err)
	_, err = rule.Approve(stranger, p, change, noon)
	require.NoError(t, err)
}

func TestAnApprovalIsOfExactlyOneChange(t *testing.T) {
	t.Parallel()
	rule := defaults(t, access.SecondPerson{})
	change := publishing()
	p, err := rule.Propose(publisher("ada"), "p-1", change, noon)
	require.NoError(t, err)
	a, err := rule.Approve(publisher("bob"), p, change, noon)
	require.NoError(t, err)
	for name, spoil := range map[string]func(*access.Change){
		"another document": func(c *access.Change) { c.Content[31] ^= 1 },
		"another revision": func(c *access.Change) { c.ExpectedRevision++ },
		"another target":   func(c *access.Change) { c.Target = "policy of staging" },
		"another action":   func(c *access.Change) { c.Action = access.RevertPolicy },
	} {
		other := change
		spoil(&other)
		require.ErrorContains(t, rule.Permits(p, a, other, noon), "another document", name)
		_, err := rule.Approve(publisher("bob"), p, other, noon)
		require.ErrorContains(t, err, "another document", name)
		// Nor where a database says otherwise.
		forged := *a
		forged.Change = other
		require.ErrorContains(t, rule.Permits(p, &forged, other, noon), "another document", name)
	}
	require.ErrorIs(t, rule.Permits(p, nil, change, noon), access.ErrApproval)
	require.ErrorIs(t, rule.Permits(nil, a, change, noon), access.ErrApproval)
	forged := *a
	forged.Proposal = "p-2"
	require.ErrorIs(t, rule.Permits(p, &forged, change, noon), access.ErrApproval)
	forged = *a
	forged.Approver = ""
	require.ErrorIs(t, rule.Permits(p, &forged, change, noon), access.ErrApproval)
}

func TestAnApprovalExpires(t *testing.T) {
	t.Parallel()
	rule := defaults(t, access.SecondPerson{Life: time.Hour})
	change := publishing()
	p, err := rule.Propose(publisher("ada"), "p-1", change, noon)
	require.NoError(t, err)
	a, err := rule.Approve(publisher("bob"), p, change, noon.Add(59*time.Minute))
	require.NoError(t, err)
	require.NoError(t, rule.Permits(p, a, change, noon.Add(time.Hour-1)))
	require.ErrorContains(t, rule.Permits(p, a, change, noon.Add(time.Hour)), "expired")
	_, err = rule.Approve(publisher("bob"), p, change, noon.Add(time.Hour))
	require.ErrorContains(t, err, "expired")
	stretched := *p
	stretched.Expires = noon.Add(1000 * time.Hour)
	require.ErrorContains(t, rule.Permits(&stretched, a, change, noon.Add(2*time.Hour)), "expired")
	late := *a
	late.Approved = p.Expires
	require.ErrorContains(t, rule.Permits(p, &late, change, noon), "expired")
	early := *a
	early.Approved = noon.Add(-time.Second)
	require.ErrorContains(t, rule.Permits(p, &early, change, noon), "expired")
}

func TestOnlyWhoMayApproves(t *testing.T) {
	t.Parallel()
	change := publishing()
	rule := defaults(t, access.SecondPerson{Methods: []access.Method{access.MethodOIDC}})
	p, err := rule.Propose(publisher("ada"), "p-1", change, noon)
	require.NoError(t, err)
	for _, actor := range []access.Actor{letters["o"], letters["a"], letters["v"], letters["b"], letters["s"], {}, confined(access.Publisher)} {
		_, err := rule.Approve(actor, p, change, noon)
		require.ErrorIs(t, err, access.ErrDenied, "%+v", actor)
		_, err = rule.Propose(actor, "p-2", change, noon)
		require.ErrorIs(t, err, access.ErrDenied, "%+v", actor)
	}
	_, err = rule.Approve(robotOf(publisher("bob")), p, change, noon)
	require.ErrorContains(t, err, "comes in by [oidc]")
}

// Whoever has installed a control plane holds a token that the bootstrap token has issued, and is a person of the issuer besides.
func TestWhereAnIssuerSaysWhoSomebodyIsATokenOfNobodyIsNoFirstPerson(t *testing.T) {
	t.Parallel()
	change, ada := publishing(), publisher("ada")
	first := access.Actor{Subject: "me#id", Issuer: access.LocalIssuer, Method: access.MethodToken, Roles: ada.Roles}
	anyway := defaults(t, access.SecondPerson{})
	open, err := anyway.Propose(first, "p-1", change, noon)
	require.NoError(t, err)
	a, err := anyway.Approve(ada, open, change, noon)
	require.NoError(t, err)
	require.NoError(t, anyway.Permits(open, a, change, noon))

	rule := defaults(t, access.SecondPerson{Methods: []access.Method{access.MethodOIDC}})
	for _, nobody := range []access.Actor{first, robotOf(first)} {
		_, err := rule.Propose(nobody, "p-2", change, noon)
		require.ErrorIs(t, err, access.ErrApproval)
		require.ErrorContains(t, err, "nobody answers for")
	}
	// What was proposed and approved before the rule was changed is judged by it.
	_, err = rule.Approve(ada, open, change, noon)
	require.ErrorContains(t, err, "nobody answers for")
	require.ErrorContains(t, rule.Permits(open, a, change, noon), "nobody answers for")
	for _, known := range []access.Actor{ada, robotOf(ada), {Subject: "spiffe://x", Issuer: "CN=CA", Method: access.MethodCertificate, Roles: ada.Roles}} {
		p, err := rule.Propose(known, "p-3", change, noon)
		require.NoError(t, err)
		_, err = rule.Approve(publisher("bob"), p, change, noon)
		require.NoError(t, err)
	}
	tokens := defaults(t, access.SecondPerson{Methods: []access.Method{access.MethodOIDC, access.MethodToken}})
	_, err = tokens.Propose(first, "p-4", change, noon)
	require.NoError(t, err)
}
