package access

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// CertificateRule says whom a client certificate is of. Exactly one of URI, DNS and Subject is set, and has to be in the certificate
// exactly: nothing is a pattern.
type CertificateRule struct {
	// URI is a URI among the alternative names, such as spiffe://example.org/deploy.
	URI string
	// DNS is a DNS name among the alternative names.
	DNS string
	// Subject is the whole distinguished name, as RFC 2253 writes it: CN=deploy,OU=limits,O=Example.
	Subject string
	// Roles and Tenants are those of the actor.
	Roles   []Role
	Tenants []string
}

// check returns all mistakes.
func (c *CertificateRule) check(i int) error {
	var mistakes []error
	set := 0
	for _, name := range []string{c.URI, c.DNS, c.Subject} {
		if name != "" {
			set++
		}
	}
	if set != 1 {
		mistakes = append(mistakes, fmt.Errorf("access: CertificateRule %d has %d of URI, DNS and Subject, want one", i, set))
	}
	if len(c.name()) > MaxTenant {
		mistakes = append(mistakes, fmt.Errorf("access: CertificateRule %d has a name of more than %d bytes", i, MaxTenant))
	}
	if err := checkRights(c.Roles, c.Tenants); err != nil {
		mistakes = append(mistakes, fmt.Errorf("access: CertificateRule %d: %w", i, err))
	}
	return errors.Join(mistakes...)
}

// checkRights returns what is wrong with roles and tenants of a configuration.
func checkRights(roles []Role, tenants []string) error {
	for _, role := range roles {
		if !role.Valid() {
			return fmt.Errorf("there is no role %q: want one of %v", role, Roles())
		}
	}
	switch {
	case len(roles) == 0:
		return fmt.Errorf("it has no roles: want some of %v", Roles())
	case len(tenants) > MaxTenants || slices.Contains(tenants, ""):
		return fmt.Errorf("it has an empty tenant, or more than %d", MaxTenants)
	case slices.Contains(roles, TenantAdmin) && len(tenants) == 0:
		return errors.New("a tenant admin without tenants has no rights: name the tenants")
	}
	return nil
}

// name returns what the rule looks for.
func (c *CertificateRule) name() string { return c.URI + c.DNS + c.Subject }

// fits says whether a certificate is one of the rule.
func (c *CertificateRule) fits(certificate *x509.Certificate) bool {
	switch {
	case c.URI != "":
		for _, uri := range certificate.URIs {
			if uri.String() == c.URI {
				return true
			}
		}
		return false
	case c.DNS != "":
		return slices.Contains(certificate.DNSNames, c.DNS)
	default:
		return certificate.Subject.String() == c.Subject
	}
}

// maxIssuer is how many bytes the name of an issuer has: it stands in the audit log.
const maxIssuer = 512

// byCertificate finds out whose the client certificate of the connection is: by the first rule that fits.
func (a *Authenticator) byCertificate(r *http.Request) (Actor, error) {
	// Only what the handshake has verified counts. A server that asks for certificates and does not verify them has no chains.
	if len(a.cfg.Certificates) == 0 || r.TLS == nil || len(r.TLS.VerifiedChains) == 0 || len(r.TLS.VerifiedChains[0]) == 0 {
		return Actor{}, refuse(ReasonMissing)
	}
	leaf := r.TLS.VerifiedChains[0][0]
	issuer := leaf.Issuer.String()
	// The handshake may be of days ago.
	if !holds(leaf, a.cfg.Now()) {
		return Actor{}, refuse(ReasonExpired)
	}
	if len(issuer) > maxIssuer {
		return Actor{}, refuse(ReasonUnknown)
	}
	for i := range a.cfg.Certificates {
		if rule := &a.cfg.Certificates[i]; rule.fits(leaf) {
			return Actor{
				Subject: rule.name(), Issuer: issuer, Method: MethodCertificate,
				Roles: slices.Clone(rule.Roles), Tenants: slices.Clone(rule.Tenants),
			}, nil
		}
	}
	return Actor{}, refuse(ReasonUnknown)
}

// holds says whether a certificate is valid at a time.
func holds(certificate *x509.Certificate, now time.Time) bool {
	return !now.Before(certificate.NotBefore) && !now.After(certificate.NotAfter)
}
