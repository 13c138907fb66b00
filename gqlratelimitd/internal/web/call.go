package web

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
)

// Headers of requests and answers.
const (
	headerReason    = "Ratelimit-Reason"
	headerTicket    = "Ratelimit-Ticket"
	headerKey       = "Idempotency-Key"
	headerID        = "Request-Id"
	headerHash      = "Ratelimit-Policy-Hash"
	headerAuthor    = "Ratelimit-Policy-Author"
	headerPublished = "Ratelimit-Policy-Published"
	headerSignature = "Ratelimit-Policy-Signature"
)

// Bounds of a request.
const (
	// maxJSON is how many bytes a body of JSON has.
	maxJSON = 64 << 10
	// maxPage is how many items are listed at once, and defaultPage where nothing is said.
	maxPage     = 1000
	defaultPage = 100
	// patience is how long a request may take that waits for nothing. A change that the database commits is answered all the same.
	patience = 30 * time.Second
)

// call is one request, and how it is answered.
type call struct {
	*http.Request
	w     http.ResponseWriter
	s     *Server
	actor access.Actor
	party party
	// leave ends what counts as under way, and is nil before that.
	leave func()
	// id names the request in logs and in the audit log.
	id string
	// query are the parameters, each once.
	query url.Values
	// status is what was answered.
	status int
}

func requestID() string { return strings.ToLower(rand.Text()) }

// serve wraps the handler of a route in everything that all of them have in common.
func (s *Server) serve(r *route) http.HandlerFunc {
	return func(w http.ResponseWriter, request *http.Request) {
		c := &call{Request: request, w: w, s: s, id: requestID()}
		c.run(request.Context(), r)
	}
}

// run answers the request.
func (c *call) run(ctx context.Context, r *route) {
	began := c.s.cfg.Now()
	defer func() { c.s.told.answered(ctx, r, c.status, c.s.cfg.Now().Sub(began)) }()
	header := c.w.Header()
	header.Set(headerID, c.id)
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	if err := c.admit(ctx, r); err != nil {
		c.fail(ctx, err)
		return
	}
	defer c.over(ctx, r)
	if !r.unbounded && !r.body {
		if err := c.begin(); err != nil {
			c.fail(ctx, err)
			return
		}
	}
	if !r.long {
		bounded, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		c.Request = c.WithContext(bounded)
	}
	if err := r.handle(c); err != nil {
		c.fail(ctx, err)
	}
}

// sameOrigin tells requests that a page of another site has made a browser send. What is no browser says nothing, and passes.
var sameOrigin = http.NewCrossOriginProtection()

// begin counts the request as under way, if there is a place. One with a body has it once that was read: who sends slowly takes none.
func (c *call) begin() (err error) {
	c.leave, err = c.s.gate.underWay.enter(&c.party)
	return err
}

// over ends what the request counts as, and counts it for its person.
func (c *call) over(ctx context.Context, r *route) {
	if c.leave != nil {
		c.leave()
	}
	if !r.public && c.status != http.StatusForbidden && c.status != http.StatusTooManyRequests {
		c.s.gate.served(ctx, &c.party, r.changes())
	}
}

// identify finds out who asks. What comes without a token that holds counts for its address, so that nobody is kept out by who shares theirs.
func (c *call) identify(ctx context.Context, r *route) (err error) {
	from := c.s.cfg.Address(c.Request)
	if r.public {
		c.party = strangerOf(from)
		return c.s.gate.stranger(ctx, from)
	}
	if c.actor, err = c.authenticate(ctx, r); err == nil {
		c.party = partyOf(&c.actor, r.urgent)
		return nil
	}
	var unknown *access.UnauthenticatedError
	judged := errors.As(err, &unknown) && unknown.Reason != access.ReasonUnavailable
	// Who leaves while it waits has been asked for as well.
	if !judged && !errors.Is(err, context.Canceled) {
		return err
	}
	if refused := c.s.gate.stranger(ctx, from); refused != nil {
		return refused
	}
	return err
}

// authenticate finds out who asks, when there is a place to wait for that.
func (c *call) authenticate(ctx context.Context, r *route) (access.Actor, error) {
	if id := c.s.cfg.Authenticator.Lookup(c.Request); id != "" {
		leave, err := c.s.gate.lookup(id, r.urgent)
		if err != nil {
			return access.Actor{}, err
		}
		defer leave()
	}
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return c.s.cfg.Authenticator.Authenticate(c.WithContext(bounded))
}

// admit returns why a request is not served, before anything is done for it.
func (c *call) admit(ctx context.Context, r *route) (err error) {
	if !r.unbounded {
		if err := c.identify(ctx, r); err != nil {
			return err
		}
	}
	if !r.public {
		if err := c.s.gate.known(ctx, &c.party, r.changes()); err != nil {
			return err
		}
		// A browser may send what it knows to whomever a page makes it ask.
		if r.changes() && sameOrigin.Check(c.Request) != nil {
			return &problem{Status: http.StatusForbidden, Title: "The request comes from a page of another site"}
		}
	}
	if c.query, err = url.ParseQuery(c.URL.RawQuery); err != nil {
		return badRequest("the query string cannot be read: escape it as RFC 3986 says")
	}
	for name, values := range c.query {
		if len(values) > 1 {
			return badRequest("the parameter %.32q stands more than once", name)
		}
	}
	return nil
}

// bounded is the context of what waits for nothing but a database, in a route that may wait for more.
func (c *call) bounded() (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.Context(), patience)
}

// known returns an error if there are parameters that the route does not have: one that is misspelt must not be taken for none.
func (c *call) known(names ...string) error {
	for name := range c.query {
		if !contains(names, name) {
			if len(names) == 0 {
				return badRequest("there is a parameter %.32q, and this takes none", name)
			}
			return badRequest("there is no parameter %.32q; there are %s", name, strings.Join(names, ", "))
		}
	}
	return nil
}

func contains(names []string, name string) bool {
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
}

// number is a parameter that counts, 0 if it is not there.
func (c *call) number(name string) (uint64, error) {
	text := c.query.Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, badRequest("the parameter %s is no whole number from 0 on", name)
	}
	return n, nil
}

// page is how many items are asked for.
func (c *call) page() (int, error) {
	n, err := c.number("limit")
	switch {
	case err != nil:
		return 0, err
	case n > maxPage:
		return 0, badRequest("the parameter limit is above %d", maxPage)
	case n == 0:
		return defaultPage, nil
	}
	return int(n), nil
}

// paged is how many items a list is asked for that has these parameters beside the limit.
func (c *call) paged(parameters ...string) (int, error) {
	if err := c.known(append(parameters, "limit")...); err != nil {
		return 0, err
	}
	return c.page()
}

// request is what comes with a change. The reason and the ticket may stand in the query, where they are escaped.
func (c *call) request() (control.Request, error) {
	out := control.Request{Actor: c.actor, ID: c.id}
	for _, text := range [...]struct {
		header, parameter string
		into              *string
	}{{headerReason, "reason", &out.Reason}, {headerTicket, "ticket", &out.Ticket}, {headerKey, "", &out.Key}} {
		values := c.Header.Values(text.header)
		if text.parameter != "" && c.query.Has(text.parameter) {
			values = append(values[:len(values):len(values)], c.query.Get(text.parameter))
		}
		if len(values) > 1 {
			return out, badRequest("%s is said more than once", text.header)
		}
		if len(values) == 1 {
			*text.into = values[0]
		}
	}
	return out, nil
}

// expected is the revision that the author has seen: If-Match with its number in quotation marks, or If-None-Match: * for none.
func (c *call) expected() (uint64, error) {
	match, none := c.Header.Values("If-Match"), c.Header.Values("If-None-Match")
	switch {
	case len(match) == 0 && len(none) == 1 && none[0] == "*":
		return 0, nil
	case len(match) == 0 && len(none) == 0:
		return 0, &problem{
			Status: http.StatusPreconditionRequired, Title: "The request does not say what it replaces",
			Detail: `Read what is there, and send its ETag: If-Match: "7", or If-None-Match: * if there is nothing yet.`,
		}
	case len(match) == 1 && len(none) == 0:
		if n, ok := parseTag(match[0]); ok {
			return n, nil
		}
	}
	return 0, badRequest(`If-Match is one revision in quotation marks, such as "7"; If-None-Match is * and stands alone`)
}

// tag is the ETag of a revision.
func tag(revision uint64) string { return `"` + strconv.FormatUint(revision, 10) + `"` }

// parseTag reads one that is strong, as If-Match needs it.
func parseTag(text string) (uint64, bool) {
	inner, ok := strings.CutPrefix(text, `"`)
	inner, ok2 := strings.CutSuffix(inner, `"`)
	n, err := strconv.ParseUint(inner, 10, 63)
	return n, ok && ok2 && err == nil
}

// body reads a body of at most so many bytes, and then counts the request as under way.
func (c *call) body(most int) ([]byte, error) {
	reading := c.s.gate.bodies
	if most > maxJSON {
		reading = c.s.gate.large
	}
	body, err := c.readAll(reading, most)
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, &problem{Status: http.StatusRequestEntityTooLarge, Title: "The body is too large", Detail: fmt.Sprintf("It may have %d bytes.", most)}
	}
	if refused := (*problem)(nil); errors.As(err, &refused) {
		return nil, refused
	}
	if err != nil {
		return nil, badRequest("the body did not arrive")
	}
	return body, c.begin()
}

// readAll reads a body while it has a place.
func (c *call) readAll(reading *room, most int) ([]byte, error) {
	leave, err := reading.enter(&c.party)
	if err != nil {
		return nil, err
	}
	defer leave()
	return io.ReadAll(http.MaxBytesReader(c.w, c.Body, int64(most)))
}

// read reads a body of JSON, with no fields but those of into.
func (c *call) read(into any) error {
	body, err := c.body(maxJSON)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return badRequest("the body is not the JSON that GET /openapi.yaml describes: %.200s", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return badRequest("there is something behind the JSON of the body")
	}
	return nil
}

// write answers with JSON.
func (c *call) write(status int, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("web: %w", err)
	}
	c.w.Header().Set("Content-Type", "application/json")
	c.send(status, append(text, '\n'))
	return nil
}

// reply answers with JSON, or fails with an error.
func (c *call) reply(status int, body any, err error) error {
	if err != nil {
		return err
	}
	return c.write(status, body)
}

// list answers with a list of that name, empty if nothing was found, or fails with an error.
func list[T any](c *call, name string, found []T, err error) error {
	return c.reply(http.StatusOK, map[string][]T{name: append([]T{}, found...)}, err)
}

// send answers with bytes. Who does not read them has left.
func (c *call) send(status int, body []byte) {
	c.status = status
	c.w.WriteHeader(status)
	_, _ = c.w.Write(body)
}
