package web

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// maxWait is for how long a request waits for another policy at most.
const maxWait = 55 * time.Second

// newestPolicy serves the newest document, or waits for another one than the client has.
func (s *Server) newestPolicy(c *call) error {
	if err := c.known("form", "wait"); err != nil {
		return err
	}
	if err := access.Authorize(c.actor, access.ReadPolicy, ""); err != nil {
		return err
	}
	wait, err := c.wait()
	if err != nil {
		return err
	}
	number, err := s.head(c)
	if err != nil {
		return err
	}
	have, known := newestTag(c.Header.Values("If-None-Match"))
	if known && have == number && wait > 0 {
		if err := s.await(c, number, wait); err != nil {
			return err
		}
		if number, err = s.head(c); err != nil {
			return err
		}
	}
	if known && have == number {
		c.w.Header().Set("ETag", tag(number))
		c.w.Header().Set("Cache-Control", "private, no-cache")
		c.send(http.StatusNotModified, nil)
		return nil
	}
	return s.document(c, 0)
}

// await waits until there may be another revision, for a time, if there is room for who waits.
func (s *Server) await(c *call, number uint64, wait time.Duration) error {
	leave, err := s.gate.waits.enter(&c.party)
	if err != nil {
		return err
	}
	defer leave()
	s.watch.wait(c.Context(), number, wait)
	return nil
}

// head is the number of the newest revision.
func (s *Server) head(c *call) (uint64, error) {
	ctx, cancel := c.bounded()
	defer cancel()
	return s.newest(ctx)
}

// wait is for how long the client would wait.
func (c *call) wait() (time.Duration, error) {
	text := c.query.Get("wait")
	if text == "" {
		return 0, nil
	}
	seconds, err := strconv.ParseUint(strings.TrimSuffix(text, "s"), 10, 16)
	if err != nil || time.Duration(seconds)*time.Second > maxWait {
		return 0, badRequest("the parameter wait is seconds, at most %.0f", maxWait.Seconds())
	}
	return time.Duration(seconds) * time.Second, nil
}

// newestTag is the largest revision that If-None-Match names. It compares weakly: proxies that compress make tags weak.
func newestTag(values []string) (newest uint64, known bool) {
	for part := range strings.SplitSeq(strings.Join(values, ","), ",") {
		if n, ok := parseTag(strings.TrimPrefix(strings.TrimSpace(part), "W/")); ok {
			newest, known = max(newest, n), true
		}
	}
	return newest, known
}

// policy serves a revision.
func (s *Server) policy(c *call) error {
	if err := c.known("form"); err != nil {
		return err
	}
	number, err := strconv.ParseUint(c.PathValue("number"), 10, 63)
	if err != nil || number == 0 {
		return control.ErrNotFound
	}
	return s.document(c, number)
}

// document answers with a revision: its document, byte for byte, or with form=revision the file that policy.NewFile reads, signature
// included.
func (s *Server) document(c *call, number uint64) error {
	form := c.query.Get("form")
	if form != "" && form != "document" && form != "revision" {
		return badRequest("the parameter form is document or revision")
	}
	ctx, cancel := c.bounded()
	defer cancel()
	r, err := s.cfg.Control.Policy(ctx, c.actor, number)
	if err != nil {
		if errors.Is(err, control.ErrNotFound) && number == 0 {
			return &problem{Status: http.StatusNotFound, Title: "No policy was published yet", Detail: "Publish the first one: PUT with If-None-Match: *."}
		}
		return err
	}
	header := c.w.Header()
	body, kind := r.Document, "application/yaml"
	if form == "revision" {
		if body, err = r.MarshalBinary(); err != nil {
			return err
		}
		kind = "application/octet-stream"
	}
	header.Set("Content-Type", kind)
	header.Set("Cache-Control", "private, no-cache")
	header.Set("ETag", tag(r.Number))
	header.Set(headerHash, r.Hash.String())
	c.send(http.StatusOK, body)
	return nil
}

// signed is the signature that comes with a revision, nil if none does.
func (c *call) signed() (*control.Signed, error) {
	text := c.Header.Get(headerSignature)
	if text == "" {
		return nil, nil
	}
	signature, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, badRequest("%s is no base64", headerSignature)
	}
	at, err := time.Parse(time.RFC3339Nano, c.Header.Get(headerPublished))
	if err != nil {
		return nil, badRequest("%s is a time such as 2026-11-22T03:00:00.123Z: the one that was signed", headerPublished)
	}
	return &control.Signed{Author: c.Header.Get(headerAuthor), Published: at, Signature: signature}, nil
}

// change reads what comes with the change of a policy.
func (c *call) change() (r control.Request, expected uint64, signed *control.Signed, err error) {
	if err = c.known("reason", "ticket"); err != nil {
		return r, 0, nil, err
	}
	if expected, err = c.expected(); err != nil {
		return r, 0, nil, err
	}
	if signed, err = c.signed(); err != nil {
		return r, 0, nil, err
	}
	r, err = c.request()
	return r, expected, signed, err
}

// publish publishes the body as the next revision.
func (s *Server) publish(c *call) error {
	// Who may not is told so before megabytes are read.
	if err := access.Authorize(c.actor, access.PublishPolicy, ""); err != nil {
		return err
	}
	r, expected, signed, err := c.change()
	if err != nil {
		return err
	}
	document, err := c.body(tiers.DefaultMaxDocument)
	if err != nil {
		return err
	}
	answer, err := s.cfg.Control.Publish(c.Context(), r, control.PublishInput{Document: document, Expected: expected, Signed: signed})
	return c.writePublished(answer, err)
}

// revert publishes an earlier document again.
func (s *Server) revert(c *call) error {
	if err := access.Authorize(c.actor, access.RevertPolicy, ""); err != nil {
		return err
	}
	r, expected, signed, err := c.change()
	if err != nil {
		return err
	}
	to, err := strconv.ParseUint(c.PathValue("number"), 10, 63)
	if err != nil {
		return control.ErrNotFound
	}
	answer, err := s.cfg.Control.Revert(c.Context(), r, control.RevertInput{To: to, Expected: expected, Signed: signed})
	return c.writePublished(answer, err)
}

// writePublished answers with a revision that was published.
func (c *call) writePublished(answer *control.Published, err error) error {
	if err != nil {
		return err
	}
	c.w.Header().Set("ETag", tag(answer.Number))
	return c.write(http.StatusOK, answer)
}

// lint compiles the body, and publishes nothing.
func (s *Server) lint(c *call) error {
	document, err := c.document(access.CheckPolicy)
	if err != nil {
		return err
	}
	warnings, err := s.cfg.Control.Lint(c.Context(), c.actor, document)
	return list(c, "warnings", warnings, err)
}

// revisions lists revisions, the newest first.
func (s *Server) revisions(c *call) error {
	if err := c.known("below", "limit"); err != nil {
		return err
	}
	below, err := c.number("below")
	if err != nil {
		return err
	}
	n, err := c.page()
	if err != nil {
		return err
	}
	found, err := s.cfg.Control.Policies(c.Context(), c.actor, below, n)
	return list(c, "revisions", found, err)
}
