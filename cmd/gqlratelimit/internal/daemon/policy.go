package daemon

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/previewreport"
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
	Warnings  []Mistake `json:"warnings"`
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

// Preview is what the daemon says of a document: GET /openapi.yaml of it describes all.
type Preview struct {
	Against      uint64               `json:"against"`
	Missing      string               `json:"missing,omitempty"`
	Halts        bool                 `json:"halts"`
	Remark       string               `json:"remark,omitempty"`
	Lowers       bool                 `json:"lowers"`
	Reach        string               `json:"reach"`
	SecondPerson bool                 `json:"secondPerson"`
	Problem      string               `json:"problem,omitempty"`
	Report       previewreport.Report `json:"report"`
	Misfits      *Misfits             `json:"misfits,omitempty"`
}

// Misfits are tenants whose records would stop fitting.
type Misfits struct {
	Total   int `json:"total"`
	Tenants []struct {
		Tenant  string `json:"tenant"`
		Problem string `json:"problem"`
	} `json:"tenants"`
}

// Preview asks who would newly be refused by a document. At most so many tenants are named, 0 for as many as there can be.
func (d *Client) Preview(document []byte, rows int) (*Preview, error) {
	const most = 1000
	if rows == 0 || rows > most {
		rows = most
	}
	body, err := d.ask(&question{
		method: http.MethodPost, path: policies + "/preview", query: url.Values{"rows": {strconv.Itoa(rows)}}, body: document,
		header: http.Header{"Content-Type": {"application/yaml"}}, again: true,
	})
	if err != nil {
		return nil, err
	}
	p := new(Preview)
	return p, read(body, p)
}
