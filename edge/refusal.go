package edge

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/edge/internal/document"
	"github.com/gqlgen-ratelimit/ratelimit/edge/internal/occupancy"
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

// retrySoon is when to come again where nobody knows how long something takes.
const retrySoon = time.Second

// tooMany is the refusal of something of which there is too much at once.
func tooMany(layer, message string) *refusal {
	return refused(ratelimitclient.CodeRateLimited, layer, message, retrySoon)
}

// overloaded is the refusal of a server that has no room for anybody.
func overloaded(message string) *refusal {
	return refused(ratelimitclient.CodeOverloaded, LayerAddress, message, retrySoon)
}

// unlessEntered is the refusal of who finds no room: of a server that has none for anybody, or of an address that has all of its own.
// It is nil for who has entered.
func unlessEntered(entry occupancy.Entry, forAll, forAddress string) *refusal {
	switch entry {
	case occupancy.Roomless:
		return overloaded(forAll)
	case occupancy.Crowded:
		return tooMany(LayerAddress, forAddress)
	default:
		return nil
	}
}

// parserSpread is by how much longer than retrySoon clients are told to wait at most: those who are refused together must
// not come back together.
const parserSpread = time.Second

// overloadedParser is the refusal of a document for which there was no turn in time.
func overloadedParser() *refusal {
	wait := retrySoon + rand.N(parserSpread) //nolint:gosec // It spreads load and is no secret.
	return refused(ratelimitclient.CodeOverloaded, LayerParser,
		"the server parses as many documents as it can: try again later", wait.Truncate(time.Millisecond))
}

// tooLargeFor is the refusal of what has more bytes than it may.
func tooLargeFor(what string, most int64) *refusal {
	return refused(ratelimitclient.CodePayloadTooLarge, LayerDocument, fmt.Sprintf("%s may have %d bytes at most: send less at once", what, most), 0)
}

// outOfBounds is the refusal of a document.
func outOfBounds(b *document.Broken) *refusal {
	if b.Rule == document.RuleBytes {
		return tooLargeFor("the document", int64(b.Allowed))
	}
	return beyond(b.Rule, b.Complaint(), b.Given, b.Allowed)
}

// tooManyExtensions and tooManyValues are the refusals of operations for what comes with their documents.
func tooManyExtensions(given, allowed int) *refusal {
	return beyond("extensions", fmt.Sprintf("the extensions of the operation have more than %d values", allowed), given, allowed)
}

func tooManyValues(given, allowed int) *refusal {
	return beyond("values", fmt.Sprintf("the operation has more than %d values of JSON in its variables: send them in several operations", allowed),
		given, allowed)
}

// beyond is the refusal of what breaks a bound, whose name clients read in extensions.rule.
func beyond(rule, message string, given, allowed int) *refusal {
	r := refused(ratelimitclient.CodeQueryLimitExceeded, LayerDocument, message, 0)
	r.Rule, r.Given, r.Allowed = rule, int64(given), int64(allowed)
	return r
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

// tell sets the header that says when to come again.
func (r *refusal) tell(header http.Header) {
	if r.RetryAfter > 0 {
		header.Set("Retry-After", strconv.FormatInt(int64(math.Ceil(r.RetryAfter.Seconds())), 10))
	}
}
