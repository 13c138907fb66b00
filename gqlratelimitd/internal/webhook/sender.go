package webhook

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Resolver finds the addresses of a name. *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// SenderConfig says what a [Sender] may reach. The zero value reaches public addresses over TLS at port 443. Every mistake in it is reported, all at once.
type SenderConfig struct {
	// AllowNetworks are networks that endpoints may be in beside the public internet, such as 10.20.0.0/16. Metadata addresses of clouds are refused
	// also where they stand in one.
	AllowNetworks []netip.Prefix
	// AllowPlain are hosts, in small letters, that may be reached without TLS. Their addresses are vetted like others.
	AllowPlain []string
	// Ports are those that may be reached. None means 443, and 80 for hosts of AllowPlain.
	Ports []uint16
	// Timeout is for how long an attempt may take in all, from a second to 30 s. Zero means 20 s.
	Timeout time.Duration
	// RootCAs are the authorities whose certificates are believed. Nil means those of the machine.
	RootCAs *x509.CertPool
	// Resolver finds addresses. Nil means net.DefaultResolver.
	Resolver Resolver
	// UserAgent is the header of that name. Empty means gqlgen-ratelimit-webhook.
	UserAgent string
}

const (
	minTimeout     = time.Second
	maxTimeout     = 30 * time.Second
	defaultTimeout = 20 * time.Second
	connectTimeout = 5 * time.Second
	// maxAddresses is how many addresses of a name are tried.
	maxAddresses = 4
	// MaxBody is how large a message may be, in bytes.
	MaxBody = 20_000
	// MaxURL is how long the URL of an endpoint may be, in bytes.
	MaxURL = 2048
)

// Sender brings single messages to endpoints. It is made by [NewSender], safe for concurrent use, and keeps nothing open between attempts.
type Sender struct {
	cfg       SenderConfig
	transport *http.Transport
}

// NewSender returns a sender. The error has everything that is wrong with the configuration.
func NewSender(cfg SenderConfig) (*Sender, error) {
	cfg.Timeout = cmp.Or(cfg.Timeout, defaultTimeout)
	cfg.UserAgent = cmp.Or(cfg.UserAgent, "gqlgen-ratelimit-webhook")
	if cfg.Resolver == nil {
		cfg.Resolver = net.DefaultResolver
	}
	var errs []error
	if cfg.Timeout < minTimeout || cfg.Timeout > maxTimeout {
		errs = append(errs, fmt.Errorf("webhook: SenderConfig.Timeout is %v: write %v to %v, or 0 for %v", cfg.Timeout, minTimeout, maxTimeout, defaultTimeout))
	}
	for i, network := range cfg.AllowNetworks {
		if !network.IsValid() || network.Addr().Is4In6() {
			errs = append(errs, fmt.Errorf("webhook: SenderConfig.AllowNetworks[%d] is no network: write one such as 10.20.0.0/16", i))
		}
	}
	for _, host := range cfg.AllowPlain {
		if host == "" || host != strings.ToLower(host) || strings.ContainsAny(host, "/:@ ") {
			errs = append(errs, fmt.Errorf("webhook: SenderConfig.AllowPlain has %.80q: write the name of a host in small letters, without scheme and port", host))
		}
	}
	if slices.Contains(cfg.Ports, 0) {
		errs = append(errs, errors.New("webhook: SenderConfig.Ports has 0: write ports such as 443"))
	}
	if strings.ContainsFunc(cfg.UserAgent, func(r rune) bool { return r < ' ' || r > '~' }) {
		errs = append(errs, errors.New("webhook: SenderConfig.UserAgent: write printable ASCII"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	s := &Sender{cfg: cfg}
	s.transport = &http.Transport{
		// No proxy, not even that of the environment: it would resolve again, and is inside.
		Proxy:                  nil,
		DialContext:            s.dial,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: cfg.RootCAs},
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: 16 << 10,
	}
	return s, nil
}

// CheckURL returns what is wrong with the URL of an endpoint, nil if nothing is. It resolves nothing: addresses are vetted at each attempt.
func (s *Sender) CheckURL(text string) error {
	_, err := s.parse(text)
	return err
}

func (s *Sender) parse(text string) (*url.URL, error) {
	if len(text) > MaxURL {
		return nil, fmt.Errorf("webhook: the URL has %d bytes: want %d at most", len(text), MaxURL)
	}
	u, err := url.Parse(text)
	if err != nil {
		// The error of url.Parse has the URL, which may have a token in it.
		return nil, errors.New("webhook: the URL cannot be read")
	}
	host := strings.ToLower(u.Hostname())
	plain := u.Scheme == "http" && slices.Contains(s.cfg.AllowPlain, host)
	switch {
	case u.Scheme != "https" && !plain:
		return nil, errors.New("webhook: the URL does not begin with https://")
	case host == "" || u.Opaque != "" || strings.Contains(host, "%"):
		return nil, errors.New("webhook: the URL has no host, or one with a zone")
	case u.User != nil:
		return nil, errors.New("webhook: the URL has a name and password: leave them out, messages are signed")
	case u.Fragment != "":
		return nil, errors.New("webhook: the URL has a fragment, which is never sent: leave it out")
	}
	if port := u.Port(); !s.mayReach(port, plain) {
		return nil, fmt.Errorf("webhook: the port %.5q of the URL is not among those that the operator allows", port)
	}
	return u, nil
}

// mayReach says whether a port is one of those that are allowed. An empty one is that of the scheme.
func (s *Sender) mayReach(port string, plain bool) bool {
	ordinary := uint16(443)
	if plain {
		ordinary = 80
	}
	number := ordinary
	if port != "" {
		parsed, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return false
		}
		number = uint16(parsed)
	}
	if len(s.cfg.Ports) == 0 {
		return number == ordinary
	}
	return slices.Contains(s.cfg.Ports, number)
}

// errAddress says that a name leads to an address that is not to be reached.
var errAddress = errors.New("webhook: the host has an address that is not public, and that the operator does not allow")

// errName says that a name leads to no address.
var errName = errors.New("webhook: the host has no address")

// dial resolves a host once and connects to what it has vetted: who resolves again, as net.Dial would, asks a name server that may have changed its mind.
func (s *Sender) dial(ctx context.Context, network, hostport string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		return nil, err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, err
	}
	addresses, err := s.vetted(ctx, host)
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{Timeout: connectTimeout}
	var errs []error
	for _, address := range addresses {
		conn, err := dialer.DialContext(ctx, network, netip.AddrPortFrom(address, uint16(number)).String())
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// vetted returns addresses of a host. It has none if one of them is not to be reached: names with a public and a private address are made to be
// resolved until the other one comes.
func (s *Sender) vetted(ctx context.Context, host string) ([]netip.Addr, error) {
	addresses := []netip.Addr{}
	if literal, err := netip.ParseAddr(host); err == nil {
		addresses = append(addresses, literal)
	} else if addresses, err = s.cfg.Resolver.LookupNetIP(ctx, "ip", host); err != nil {
		return nil, fmt.Errorf("%w: %w", errName, err)
	}
	if len(addresses) == 0 {
		return nil, errName
	}
	for _, address := range addresses {
		if !reachable(address, s.cfg.AllowNetworks) {
			return nil, errAddress
		}
	}
	return addresses[:min(len(addresses), maxAddresses)], nil
}
