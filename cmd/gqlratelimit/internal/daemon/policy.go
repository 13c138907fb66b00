package daemon

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/policy"
)

const policies = "/v1/ratelimit/policies"

// Newest returns the newest revision, nil if there is none yet.
func (d *Client) Newest() (*policy.Revision, error) {
	r, err := d.revision(policies)
	if missing(err) {
		return nil, nil //nolint:nilnil // that there is none is an answer
	}
	return r, err
}

// Revision returns a revision.
func (d *Client) Revision(number uint64) (*policy.Revision, error) {
	r, err := d.revision(policies + "/" + strconv.FormatUint(number, 10))
	if missing(err) {
		return nil, fmt.Errorf("the daemon has no revision %d", number)
	}
	return r, err
}

func missing(err error) bool {
	var p *ProblemError
	return errors.As(err, &p) && p.Status == http.StatusNotFound
}

func (d *Client) revision(path string) (*policy.Revision, error) {
	body, err := d.ask(&question{method: http.MethodGet, path: path, query: url.Values{"form": {"revision"}}, again: true})
	if err != nil {
		return nil, err
	}
	r := new(policy.Revision)
	if err := r.UnmarshalBinary(body); err != nil {
		return nil, fmt.Errorf("the daemon answers with something else than a revision: %w", err)
	}
	return r, r.Check()
}

// Published is a revision without its document.
type Published struct {
	Number    uint64    `json:"number"`
	Hash      string    `json:"hash"`
	Author    string    `json:"author"`
	Reason    string    `json:"reason"`
	Published time.Time `json:"published"`
}

// Since returns revisions above a number, the newest first and at most a hundred.
func (d *Client) Since(number uint64) ([]Published, error) {
	body, err := d.ask(&question{method: http.MethodGet, path: "/v1/ratelimit/revisions", query: url.Values{"limit": {"100"}}, again: true})
	if err != nil {
		return nil, err
	}
	var page struct {
		Revisions []Published `json:"revisions"`
	}
	if err := read(body, &page); err != nil {
		return nil, err
	}
	for i := range page.Revisions {
		if page.Revisions[i].Number <= number {
			return page.Revisions[:i], nil
		}
	}
	return page.Revisions, nil
}

// Change is a document that is published.
type Change struct {
	Document []byte
	// Expected is the revision that it replaces, 0 for none.
	Expected       uint64
	Reason, Ticket string
	// Key makes a repeat harmless.
	Key string
}

// Publish publishes a document as the next revision.
func (d *Client) Publish(change *Change) (*Published, error) {
	q := &question{
		method: http.MethodPut, path: policies, query: url.Values{"reason": {change.Reason}}, body: change.Document,
		header: http.Header{"Content-Type": {"application/yaml"}, "Idempotency-Key": {change.Key}},
	}
	if change.Ticket != "" {
		q.query.Set("ticket", change.Ticket)
	}
	if change.Expected == 0 {
		q.header.Set("If-None-Match", "*")
	} else {
		q.header.Set("If-Match", `"`+strconv.FormatUint(change.Expected, 10)+`"`)
	}
	body, err := d.ask(q)
	if err != nil {
		return nil, err
	}
	published := new(Published)
	return published, read(body, published)
}
