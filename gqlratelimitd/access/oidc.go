package access

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

// OIDCConfig configures an issuer of OpenID Connect whose JSON Web Tokens are bearer tokens.
type OIDCConfig struct {
	// Issuer is the URL of the issuer, exactly as its tokens have it. It is https, except on the machine itself.
	Issuer string
	// Audience is what the issuer calls the control plane: a token that is not for it does not hold.
	Audience string
	// Roles give roles to who has a claim with a value. Who has none of them is known, and may nothing.
	Roles []ClaimRole
	// TenantsClaim names the claim with the tenants that an actor is confined to, a text or a list. If it is set, who has none in
	// it has only the roles of rules with Everywhere: a claim that is forgotten opens nothing. See [ClaimRole.Claim] for its form.
	TenantsClaim string
	// SubjectClaim is the claim with the name of the actor. Empty is sub. An email counts if email_verified is true. Who the actor is,
	// where two persons are to be told apart, says sub alone: other names people change, and have several of (OpenID Connect Core 1.0,
	// section 5.7).
	SubjectClaim string
	// Skew is by how much the clocks of the issuer and of this machine may differ. Zero is a minute; at most 5 minutes.
	Skew time.Duration
	// Client asks the issuer for its keys. Nil is a client of its own. An answer may take 3 seconds, and is cut at 1 MiB.
	Client *http.Client
}

// ClaimRole gives a role to who has a claim with a value.
type ClaimRole struct {
	// Claim is the name of the claim, such as groups, or a path that begins with a slash: /realm_access/roles.
	Claim string
	// Value is the value of the claim, or one of its values if it is a list.
	Value string
	// Role is what who has it is.
	Role Role
	// Everywhere gives the role also to who has no tenants in [OIDCConfig.TenantsClaim]: over all of them. It says nothing
	// where there is no such claim.
	Everywhere bool
}

// maxIssuer is how many bytes the name of an issuer has: it stands in the audit log.
const maxIssuer = 512

// maxSkew is by how much clocks may differ at most.
const maxSkew = 5 * time.Minute

// check fills in the defaults and returns all mistakes.
func (c *OIDCConfig) check() error {
	var mistakes []error
	if !secure(c.Issuer) || len(c.Issuer) > maxIssuer {
		mistakes = append(mistakes, fmt.Errorf("the Issuer is not a URL with https, of at most %d bytes", maxIssuer))
	}
	if c.Audience == "" {
		mistakes = append(mistakes, errors.New("the Audience is missing: a token for another service of the issuer would hold"))
	}
	if c.Skew == 0 {
		c.Skew = time.Minute
	}
	if c.Skew < 0 || c.Skew > maxSkew {
		mistakes = append(mistakes, fmt.Errorf("the Skew is %s, want at most %s", c.Skew, maxSkew))
	}
	if c.SubjectClaim == "" {
		c.SubjectClaim = "sub"
	}
	for i, rule := range c.Roles {
		switch {
		case rule.Claim == "" || rule.Value == "":
			mistakes = append(mistakes, fmt.Errorf("rule Roles[%d] has no Claim or no Value", i))
		case !rule.Role.Valid():
			mistakes = append(mistakes, fmt.Errorf("rule Roles[%d] has no role that there is: want one of %v", i, Roles()))
		}
	}
	if err := errors.Join(mistakes...); err != nil {
		return fmt.Errorf("access: OIDCConfig of %q: %w", c.Issuer, err)
	}
	return nil
}

// secure says whether a URL has https, or is on this machine.
func secure(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback())
}

// issuer verifies tokens of one issuer.
type issuer struct {
	cfg      OIDCConfig
	keys     *keySet
	verifier *oidc.IDTokenVerifier
}

func newIssuer(cfg OIDCConfig, now func() time.Time) (*issuer, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	keys := newKeySet(cfg.Issuer, cfg.Client, now)
	return &issuer{cfg: cfg, keys: keys, verifier: oidc.NewVerifier(cfg.Issuer, keys, &oidc.Config{
		SupportedSigningAlgs: algorithmNames(),
		// Both are judged below, where a token that is for somebody else is told from one that has expired, and clocks may differ.
		SkipClientIDCheck: true,
		SkipExpiryCheck:   true,
	})}, nil
}

// issuerOf reads the issuer that a token claims to be of, and says whether it is a JSON Web Token at all. Nothing of it is verified.
func issuerOf(credential string) (string, bool) {
	parts := strings.Split(credential, ".")
	if len(parts) != 3 {
		return "", false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return "", false
	}
	var claims struct {
		Issuer string `json:"iss"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		return "", false
	}
	return claims.Issuer, true
}

// actor verifies a token and returns whose it is. Errors of the verifier may repeat what the token says, so they are not passed on.
func (i *issuer) actor(ctx context.Context, credential string, now time.Time) (Actor, error) {
	token, err := i.verifier.Verify(ctx, credential)
	if err != nil {
		if away := i.keys.away(); away != nil {
			return Actor{}, unavailable(away)
		}
		return Actor{}, refuse(ReasonUnknown)
	}
	// Numbers of claims are times here, and fit a float.
	var claims map[string]any
	if err := token.Claims(&claims); err != nil {
		return Actor{}, refuse(ReasonMalformed)
	}
	if !slices.Contains(token.Audience, i.cfg.Audience) {
		return Actor{}, refuse(ReasonAudience)
	}
	if party, ok := claims["azp"].(string); ok && len(token.Audience) > 1 && party != i.cfg.Audience {
		return Actor{}, refuse(ReasonAudience)
	}
	if !i.timely(token.Expiry, token.IssuedAt, claims["nbf"], now) {
		return Actor{}, refuse(ReasonExpired)
	}
	return i.actorOf(claims)
}

// timely says whether a token holds at a time. It has to say when it ends.
func (i *issuer) timely(expires, issued time.Time, notBefore any, now time.Time) bool {
	latest := now.Add(i.cfg.Skew)
	if !now.Add(-i.cfg.Skew).Before(expires) || issued.After(latest) {
		return false
	}
	switch from := notBefore.(type) {
	case nil:
		return true
	case float64:
		return from <= float64(latest.Unix())
	default:
		return false
	}
}

// actorOf returns the actor that claims are of.
func (i *issuer) actorOf(claims map[string]any) (Actor, error) {
	subject, _ := find(claims, i.cfg.SubjectClaim).(string)
	verified, _ := claims["email_verified"].(bool)
	sub, _ := claims["sub"].(string)
	if !plain(subject, MaxTenant) || !plain(sub, MaxTenant) || i.cfg.SubjectClaim == "email" && !verified {
		return Actor{}, refuse(ReasonUnknown)
	}
	actor := Actor{Subject: sub, Issuer: i.cfg.Issuer, Method: MethodOIDC}
	if subject != sub {
		actor.Owner, actor.Subject = actor.Person(), subject
	}
	if i.cfg.TenantsClaim != "" {
		actor.Tenants = textsOf(find(claims, i.cfg.TenantsClaim))
	}
	if len(actor.Tenants) > MaxTenants || slices.ContainsFunc(actor.Tenants, func(t string) bool { return t == "" || len(t) > MaxTenant }) {
		return Actor{}, refuse(ReasonMalformed)
	}
	for _, rule := range i.cfg.Roles {
		everywhere := i.cfg.TenantsClaim == "" || rule.Everywhere
		if (everywhere || actor.Confined()) && !actor.Has(rule.Role) && slices.Contains(textsOf(find(claims, rule.Claim)), rule.Value) {
			actor.Roles = append(actor.Roles, rule.Role)
		}
	}
	return actor, nil
}

// find returns a claim by its name, or by its path.
func find(claims map[string]any, name string) any {
	path, isPath := strings.CutPrefix(name, "/")
	if !isPath {
		return claims[name]
	}
	var value any = claims
	for step := range strings.SplitSeq(path, "/") {
		object, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = object[step]
	}
	return value
}

// textsOf returns the texts of a claim: one, or those of a list.
func textsOf(claim any) []string {
	switch value := claim.(type) {
	case string:
		return []string{value}
	case []any:
		texts := make([]string, 0, len(value))
		for _, element := range value {
			if text, ok := element.(string); ok {
				texts = append(texts, text)
			}
		}
		return texts
	default:
		return nil
	}
}
