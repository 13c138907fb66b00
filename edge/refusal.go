package edge

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/sink"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// The layers of refusals, in extensions.layer.
const (
	// LayerAddress is what one address, or the site that it is in, may do.
	LayerAddress = "address"
	// LayerKey is what may be done with one API key.
	LayerKey = "key"
	// LayerConnection is what may be done on one WebSocket.
	LayerConnection = "connection"
	// LayerDocument is how large a request and what is in it may be.
	LayerDocument = "document"
	// LayerParser is how much is parsed and validated at once.
	LayerParser = "parser"
)

// refusal is why something does not pass. One without a code is no refusal of a limit, but a request that cannot be read.
type refusal struct {
	ratelimitclient.Refusal

	// status is that of one without a code.
	status int
}

func refused(code, layer, message string, retryAfter time.Duration) *refusal {
	return &refusal{Refusal: ratelimitclient.Refusal{Code: code, Layer: layer, Message: message, RetryAfter: retryAfter}}
}

// limited is the refusal of a limit.
func limited(layer string, l *bucket.LimitState) *refusal {
	whose := map[string]string{LayerAddress: "this address", LayerKey: "this API key", LayerConnection: "this connection"}[layer]
	r := refused(ratelimitclient.CodeRateLimited, layer, fmt.Sprintf("too many %s from %s", l.Limit.Unit, whose), l.RetryAfter)
	if l.Never {
		r.Code, r.Message = ratelimitclient.CodePayloadTooLarge, "the request is larger than "+whose+" may send at all"
	}
	r.Limit, r.Unit = l.Limit.Name, string(l.Limit.Unit)
	return r
}

// tooMany is the refusal of something of which there is too much at once.
func tooMany(layer, message string) *refusal {
	return refused(ratelimitclient.CodeRateLimited, layer, message, retrySoon)
}

// overloaded is the refusal of a server that has no room for anybody.
func overloaded(message string) *refusal {
	return refused(ratelimitclient.CodeOverloaded, LayerAddress, message, retrySoon)
}

// tooLargeFor is the refusal of what has more bytes than it may.
func tooLargeFor(what string, most int64) *refusal {
	return refused(ratelimitclient.CodePayloadTooLarge, LayerDocument, fmt.Sprintf("%s may have %d bytes at most: send less at once", what, most), 0)
}

// unreadable is the answer to what is no request.
func unreadable(status int, layer, message string) *refusal {
	r := refused("", layer, message, 0)
	r.status = status
	return r
}

// extensions are those of the error.
func (r *refusal) extensions() map[string]any {
	extensions := r.Extensions()
	if r.Code == "" {
		delete(extensions, "code")
	}
	return extensions
}

// refuseOperation reports the refusal of an operation and returns it as the error of gqlgen, with its status where the
// answer is still to be had.
func (d *Door) refuseOperation(ctx context.Context, a *arrival, r *refusal) *gqlerror.Error {
	d.reporter.told(ctx, a, r, bucket.Enforce)
	if x := sink.From(ctx); x != nil {
		x.Decide(d.status(r), nil, func(header http.Header) { retryAfter(header, r) })
	}
	return &gqlerror.Error{Message: r.Message, Extensions: r.extensions()}
}

// status is that of a refusal, zero for 200.
func (d *Door) status(r *refusal) int {
	switch {
	case d.cfg.StatusOK:
		return 0
	case r.Code == "":
		return r.status
	default:
		return ratelimitclient.Status(r.Code)
	}
}

func retryAfter(header http.Header, r *refusal) {
	if r.RetryAfter > 0 {
		header.Set("Retry-After", strconv.FormatInt(int64(math.Ceil(r.RetryAfter.Seconds())), 10))
	}
}

// refuse answers a request that does not pass.
func (d *Door) refuse(w http.ResponseWriter, r *http.Request, a *arrival, refusal *refusal) {
	d.reporter.told(r.Context(), a, refusal, bucket.Enforce)
	type graphQLError struct {
		Message    string         `json:"message"`
		Extensions map[string]any `json:"extensions"`
	}
	// Texts and numbers always have a form in JSON.
	body, _ := json.Marshal(struct {
		Errors []graphQLError `json:"errors"`
	}{[]graphQLError{{refusal.Message, refusal.extensions()}}})
	d.hurry(w, r, refusal.Code)
	header := w.Header()
	retryAfter(header, refusal)
	header.Set("Content-Type", contentType(r))
	header.Set("Content-Length", strconv.Itoa(len(body)))
	header.Set("Cache-Control", "no-store")
	if status := d.status(refusal); status != 0 {
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
