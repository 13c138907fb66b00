package edge

import (
	"context"
	"encoding/json"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/sink"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// answers tell clients of refusals, and the reporter of them.
type answers struct {
	reporter  *reporter
	deadlines *deadlines
	// statusOK is [Config.StatusOK].
	statusOK bool
}

// operation reports the refusal of an operation and returns it as the error of gqlgen, with its status where the
// answer is still to be had.
func (s *answers) operation(ctx context.Context, a *arrival, r *refusal) *gqlerror.Error {
	s.reporter.told(ctx, a, r, bucket.Enforce)
	if x := sink.From(ctx); x != nil {
		x.Decide(s.status(r), nil, r.tell)
	}
	return &gqlerror.Error{Message: r.Message, Extensions: r.extensions()}
}

// status is that of a refusal, zero for 200.
func (s *answers) status(r *refusal) int {
	switch {
	case s.statusOK:
		return 0
	case r.Code == "":
		return r.status
	default:
		return ratelimitclient.Status(r.Code)
	}
}

// refuse answers a request that does not pass.
func (s *answers) refuse(w http.ResponseWriter, r *http.Request, a *arrival, refusal *refusal) {
	s.reporter.told(r.Context(), a, refusal, bucket.Enforce)
	type graphQLError struct {
		Message    string         `json:"message"`
		Extensions map[string]any `json:"extensions"`
	}
	// Texts and numbers always have a form in JSON.
	body, _ := json.Marshal(struct {
		Errors []graphQLError `json:"errors"`
	}{[]graphQLError{{refusal.Message, refusal.extensions()}}})
	s.deadlines.hurry(w, r, refusal.Code)
	header := w.Header()
	refusal.tell(header)
	header.Set("Content-Type", contentType(r))
	header.Set("Content-Length", strconv.Itoa(len(body)))
	header.Set("Cache-Control", "no-store")
	if status := s.status(refusal); status != 0 {
		w.WriteHeader(status)
	}
	_, _ = w.Write(body) // who has left misses it
}

const (
	plainJSON    = "application/json"
	responseJSON = "application/graphql-response+json"
)

// maxAccepted is how many media types of a request are looked at: a refusal has to be cheap, whatever the header lists.
const maxAccepted = 32

// contentType is that of an answer to the request, as gqlgen chooses it where nobody has set another default.
func contentType(r *http.Request) string {
	left := maxAccepted
	for part := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		if left--; left < 0 {
			break
		}
		switch media, _, err := mime.ParseMediaType(part); {
		case err != nil:
		case media == responseJSON:
			return responseJSON
		case media == plainJSON, media == "application/*", media == "*/*":
			return plainJSON
		}
	}
	return plainJSON
}
