package edge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"github.com/gqlgen-ratelimit/ratelimit/edge/internal/jsonvalue"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// headerBytes is the size of what comes before the body of a request, nearly: HTTP/2 packs it.
func headerBytes(r *http.Request) int64 {
	const line = int64(len(": \r\n"))
	size := int64(len(r.Method)+len(r.RequestURI)+len(r.Proto)+len("Host")+len(r.Host)) + 2*line
	for name, values := range r.Header {
		for _, value := range values {
			size += int64(len(name)+len(value)) + line
		}
	}
	return size
}

// bodies are read within the bounds of a request, and paid from the budgets.
type bodies struct {
	cfg       *RequestConfig
	budgets   *budgets
	deadlines *deadlines
}

// tooLarge refuses a request for what is known of its size before its body is read.
func (b *bodies) tooLarge(r *http.Request, header int64) *refusal {
	cfg := b.cfg
	most := cfg.MaxBody
	if isUpload(r) {
		most = cfg.MaxUpload
	}
	switch {
	case len(r.URL.RawQuery) > cfg.MaxQuery:
		return tooLargeFor("the query string of the URL", int64(cfg.MaxQuery))
	case header > int64(cfg.MaxHeader):
		return tooLargeFor("the URL and the headers together", int64(cfg.MaxHeader))
	case r.ContentLength > most:
		return tooLargeFor("the body", most)
	default:
		return nil
	}
}

func isUpload(r *http.Request) bool {
	if r.Header.Get("Content-Type") == plainJSON {
		return false
	}
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && media == "multipart/form-data"
}

// buffers were used, so that a body that is held is no garbage.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// largestKept is the largest buffer that is used again.
const largestKept = 64 << 10

// read reads the body of a request within its time, and gives the request what was read. What is released must not
// be used any more. Of a body of multipart/form-data the head is read, and the files are passed on.
func (b *bodies) read(w http.ResponseWriter, r *http.Request, a *arrival) (release func(), refusal *refusal) {
	release = func() {}
	if r.Body == nil || r.Body == http.NoBody {
		return release, nil
	}
	if isUpload(r) {
		b.deadlines.set(w, time.Now().Add(b.cfg.UploadTime))
		return release, b.readHead(r, &upload{ReadCloser: http.MaxBytesReader(w, r.Body, b.cfg.MaxUpload), budgets: b.budgets, arrival: a, r: r})
	}
	b.deadlines.set(w, time.Now().Add(b.cfg.BodyTime))
	buffer, _ := buffers.Get().(*bytes.Buffer)
	buffer.Reset()
	held := &heldBody{}
	release = func() {
		_ = held.Close() // never fails
		if buffer.Cap() <= largestKept {
			buffers.Put(buffer)
		}
	}
	most := b.cfg.MaxBody
	read, err := buffer.ReadFrom(io.LimitReader(r.Body, most+1))
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return release, refused(ratelimitclient.CodePayloadTooSlow, LayerDocument,
			fmt.Sprintf("the body did not arrive within %s: send less, or faster", b.cfg.BodyTime), 0)
	case err != nil:
		return release, unreadable(http.StatusBadRequest, LayerDocument, "the body cannot be read")
	case read > most:
		return release, tooLargeFor("the body", most)
	}
	if refusal := b.judge(r, a, buffer.Bytes()); refusal != nil {
		return release, refusal
	}
	if streams(r) && !isOperation(buffer.Bytes()) {
		return release, unreadable(http.StatusBadRequest, LayerDocument, "the body is not the JSON of an operation")
	}
	held.unread = buffer.Bytes()
	r.Body, r.ContentLength, r.TransferEncoding = held, read, nil
	return release, nil
}

// judge takes a body that has come from the limits, as far as nobody knew of it before, and refuses one that gqlgen is not to
// decode: it would do so before anybody is asked.
func (b *bodies) judge(r *http.Request, a *arrival, body []byte) *refusal {
	n, most := jsonvalue.In(body), bounded(b.cfg.MaxValues)
	if n > most {
		n = most + 1
	}
	unpaid := jsonvalue.Bytes * int64(n)
	if r.ContentLength < 0 {
		unpaid += int64(len(body))
	}
	if unpaid > 0 {
		if refusal := b.budgets.take(r.Context(), a, Bytes, unpaid); refusal != nil {
			return refusal
		}
	}
	if n > most {
		return tooManyValues(n, most)
	}
	return nil
}

// heldBody is a body that was read. A handler that goes on after its request has ended, as one within http.TimeoutHandler
// does, must not read what is another request's by then.
type heldBody struct {
	mu     sync.Mutex
	unread []byte
	closed bool
}

// Read implements io.Reader.
func (b *heldBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return 0, http.ErrBodyReadAfterClose
	case len(b.unread) == 0:
		return 0, io.EOF
	}
	n := copy(p, b.unread)
	b.unread = b.unread[n:]
	return n, nil
}

// Close implements io.Closer.
func (b *heldBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unread, b.closed = nil, true
	return nil
}

// streams says whether gqlgen may answer the request with server-sent events or in parts. It would write a body that it cannot
// decode to the log of the process, as it is.
func streams(r *http.Request) bool {
	accept := r.Header.Get("Accept")
	if !strings.Contains(accept, "text/event-stream") && !strings.Contains(accept, "multipart/mixed") {
		return false
	}
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && media == plainJSON
}

// isOperation says whether gqlgen can decode the body.
func isOperation(body []byte) bool {
	_, ok := operationOf(body)
	return ok
}

// operationOf decodes an operation as gqlgen does, and returns false where that fails: of any number, and one value and nothing of what follows.
func operationOf(body []byte) (params graphql.RawParams, ok bool) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	return params, decoder.Decode(&params) == nil
}
