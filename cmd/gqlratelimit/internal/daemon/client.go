// Package daemon asks gqlratelimitd, over plain HTTP as its OpenAPI document has it.
package daemon

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Variables of the environment. The token has no flag: arguments are seen by everybody on the machine.
const (
	URLVariable   = "RATELIMIT_DAEMON"
	TokenVariable = "RATELIMIT_TOKEN"
)

const (
	// maxToken is how many bytes a token has, those of OpenID Connect included.
	maxToken = 16 << 10
	// maxAnswer is how many bytes of an answer are read: a document, and what goes with it.
	maxAnswer = tiers.MaxDocument + 1<<20
	// defaultTimeout is for how long an answer is waited for.
	defaultTimeout = time.Minute
)

// Flags say where the daemon is, and who asks.
type Flags struct {
	URL, TokenFile string
	CA             string
	PlainText      bool
	Timeout        time.Duration
}

// Register adds the flags.
func (f *Flags) Register(flags *flag.FlagSet) {
	flags.StringVar(&f.URL, "daemon", "", "`URL` of gqlratelimitd; $"+URLVariable+" unless given")
	flags.StringVar(&f.TokenFile, "token-file", "", "`file` with the token; $"+TokenVariable+" unless given")
	flags.StringVar(&f.CA, "daemon-ca", "", "PEM `file` of the authorities of the daemon")
	flags.BoolVar(&f.PlainText, "daemon-plain-text", false, "send the token without TLS to another machine")
	flags.DurationVar(&f.Timeout, "daemon-timeout", defaultTimeout, "how much `time` the daemon has for each answer")
}

// Client asks one daemon. Client.Close ends its connections.
type Client struct {
	base    string
	token   string
	timeout time.Duration
	http    *http.Client
}

// Open reads what the flags name. It does not connect.
func (f *Flags) Open(c cli.Console) (*Client, error) {
	base, err := f.base(c)
	if err != nil {
		return nil, err
	}
	if f.Timeout < 100*time.Millisecond || f.Timeout > time.Hour {
		return nil, cli.Usagef("a -daemon-timeout of %v: 100ms to 1h fits", f.Timeout)
	}
	token := c.Getenv(TokenVariable)
	if f.TokenFile != "" {
		text, err := cli.ReadFile(f.TokenFile, maxToken)
		if err != nil {
			return nil, err
		}
		token = string(text)
	}
	token = strings.TrimSpace(token)
	switch {
	case token == "":
		return nil, cli.Usagef("nobody is named who asks: set $%s, or say -token-file FILE", TokenVariable)
	case len(token) > maxToken || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return nil, cli.Usagef("what stands for a token is none: it is one word")
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, DialContext: (&net.Dialer{Timeout: f.Timeout}).DialContext}
	if f.CA != "" {
		if transport.TLSClientConfig, err = redisclient.LoadTLS(f.CA, "", ""); err != nil {
			return nil, cli.Usagef("%v", err)
		}
	}
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		// Whoever it leads to would be given the token.
		return http.ErrUseLastResponse
	}}
	return &Client{base: base, token: token, timeout: f.Timeout, http: client}, nil
}

// base is the URL without a slash at its end. A token is sent to nobody who could read it on the way.
func (f *Flags) base(c cli.Console) (string, error) {
	text := f.URL
	if text == "" {
		text = c.Getenv(URLVariable)
	}
	if text == "" {
		return "", cli.Usagef("no daemon is given: say -daemon URL, or set $%s", URLVariable)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return "", cli.Usagef("the URL of the daemon is none: https://HOST:PORT fits")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", cli.Usagef("the URL of the daemon has more than a host and a path: a token stands in $%s", TokenVariable)
	case u.Scheme == "http" && !f.PlainText && !loopback(u.Hostname()):
		return "", cli.Usagef("without TLS others could read the token on its way to %s: say https://, or -daemon-plain-text", cli.Plain(u.Host))
	}
	return strings.TrimSuffix(u.String(), "/"), nil
}

func loopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

// Close ends the connections.
func (d *Client) Close() { d.http.CloseIdleConnections() }

// question is what is asked.
type question struct {
	method, path string
	query        url.Values
	header       http.Header
	body         []byte
	// again says that it does no harm twice.
	again bool
	// most is how many bytes of an answer are read, 0 for the usual number.
	most int64
}

// ask asks and returns the answer, with a status below 300. Any other is a [*ProblemError].
func (d *Client) ask(q *question) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), d.timeout)
	defer cancel()
	target := d.base + q.path
	if len(q.query) > 0 {
		target += "?" + q.query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, q.method, target, bytes.NewReader(q.body))
	if err != nil {
		return nil, cli.Usagef("the URL of the daemon is none")
	}
	for name, values := range q.header {
		request.Header[name] = values
	}
	request.Header.Set("Authorization", "Bearer "+d.token)
	request.Header.Set("User-Agent", "gqlratelimit")
	response, err := d.http.Do(request)
	if err != nil {
		return nil, d.away(err, q)
	}
	defer func() { _ = response.Body.Close() }()
	most := cmp.Or(q.most, maxAnswer)
	body, err := io.ReadAll(io.LimitReader(response.Body, most+1))
	switch {
	case err != nil:
		return nil, d.away(err, q)
	case int64(len(body)) > most:
		return nil, fmt.Errorf("the daemon answers with more than %d bytes", most)
	case response.StatusCode >= http.StatusMultipleChoices:
		return nil, problemOf(response, body)
	}
	return body, nil
}

// away says that there was no answer.
func (d *Client) away(err error, q *question) error {
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no answer within %v", d.timeout)
	}
	host := d.base
	if u, parseErr := url.Parse(d.base); parseErr == nil {
		host = u.Host
	}
	if q.again {
		return fmt.Errorf("the daemon at %s cannot be asked: %w", cli.Plain(host), err)
	}
	return fmt.Errorf("the daemon at %s gave no answer, and may have done it; do the same again, which does nothing twice: %w", cli.Plain(host), err)
}

// read reads an answer of JSON.
func read(body []byte, into any) error {
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("the daemon answers with something else than this command knows: is it another version? %w", err)
	}
	return nil
}

// ProblemError is why the daemon has not done something: application/problem+json, RFC 9457.
type ProblemError struct {
	Status   int             `json:"status"`
	Title    string          `json:"title"`
	Detail   string          `json:"detail"`
	Request  string          `json:"request"`
	Mistakes []tiers.Mistake `json:"mistakes"`
}

// problemOf reads a problem, also one that something else than the daemon has answered.
func problemOf(response *http.Response, body []byte) *ProblemError {
	p := &ProblemError{}
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if kind != "application/problem+json" || json.Unmarshal(body, p) != nil || p.Title == "" {
		p = &ProblemError{Title: "it answers " + response.Status, Detail: "This is nothing that gqlratelimitd says: is it another address, or something in front of it?"}
	}
	// The package of the daemon that says it is nobody's business here.
	p.Detail = strings.TrimPrefix(p.Detail, "control: ")
	p.Status = response.StatusCode
	return p
}

// Error says it in sentences.
func (p *ProblemError) Error() string {
	const most = 2000
	text := "the daemon says: " + p.Title
	if p.Detail != "" {
		text += ". " + p.Detail
	}
	if p.Request != "" {
		text += " (request " + p.Request + ")"
	}
	if len(text) > most {
		text = text[:most] + "…"
	}
	return cli.Plain(text)
}
