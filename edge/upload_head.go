package edge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/edge/internal/jsonvalue"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// head is what stands before the files of an upload, in this order, by the GraphQL multipart request specification: the operation, and
// where in its variables each file belongs.
type head struct{ operations, places []byte }

// readHead judges the head of an upload: gqlgen decodes it before it asks anybody, and panics where a place is not in the variables. The
// request gets back what was read. A form that is none is left to gqlgen, which says what is wrong with it.
func (b *bodies) readHead(r *http.Request, body *upload) *refusal {
	_, form, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return nil //nolint:nilerr // gqlgen says what is wrong.
	}
	read := &bytes.Buffer{}
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(read, body), body}
	most := b.cfg.MaxBody
	h, err := headOf(multipart.NewReader(io.TeeReader(io.LimitReader(body, most), read), form["boundary"]))
	body.judged = true
	switch {
	case errors.Is(err, errNoBytesLeft):
		return body.refusal
	case errors.Is(err, os.ErrDeadlineExceeded):
		return refused(ratelimitclient.CodePayloadTooSlow, LayerDocument,
			fmt.Sprintf("the operation of the upload did not arrive within %s: send it faster", b.cfg.UploadTime), 0)
	case err != nil && !errors.Is(err, errNoHead) && int64(read.Len()) >= most:
		return tooLargeFor("the operation and the map of an upload", most)
	case err != nil:
		return nil //nolint:nilerr // gqlgen says what is wrong.
	}
	if n, most := jsonvalue.In(h.operations)+jsonvalue.In(h.places), bounded(b.cfg.MaxValues); n > most {
		return tooManyValues(n, most)
	}
	if path, found := h.nowhere(); found {
		return unreadable(http.StatusUnprocessableEntity, LayerDocument, fmt.Sprintf("the map of the upload has a file at %.64q, which is no place of "+
			"its own in the variables: give each file a null there, and name the path to it", path))
	}
	return nil
}

var errNoHead = errors.New("edge: the form does not begin with operations and map")

// headOf reads the head of a form.
func headOf(form *multipart.Reader) (h head, err error) {
	for _, part := range []struct {
		name string
		into *[]byte
	}{{"operations", &h.operations}, {"map", &h.places}} {
		next, err := form.NextPart()
		if err != nil {
			return h, err
		}
		if next.FormName() != part.name {
			return h, errNoHead
		}
		if *part.into, err = io.ReadAll(next); err != nil {
			return h, err
		}
	}
	return h, nil
}

// nowhere returns a place that is not in the variables, or that lies within that of another file. A head that gqlgen cannot decode has none.
func (h head) nowhere() (path string, found bool) {
	params, ok := operationOf(h.operations)
	var places map[string][]string
	if !ok || json.NewDecoder(bytes.NewReader(h.places)).Decode(&places) != nil {
		return "", false
	}
	// A place within that of another file is found when all have theirs, whichever comes first.
	for range 2 {
		for _, paths := range places {
			for _, path := range paths {
				if !place(params.Variables, path) {
					return path, true
				}
			}
		}
	}
	return "", false
}

// file stands in the variables where a file belongs.
type file struct{}

// place puts a file at a path, as RawParams.AddUpload of gqlgen does, and returns false where that panics or fails.
func place(variables map[string]any, path string) bool {
	steps := strings.Split(path, ".")
	if len(steps) < 2 || steps[0] != "variables" {
		return false
	}
	var at any = variables
	for i, step := range steps[1:] {
		last := i == len(steps)-2
		if index, err := strconv.Atoi(step); err == nil {
			list, isList := at.([]any)
			if !isList || index < 0 || index >= len(list) {
				return false
			}
			if at = list[index]; last {
				list[index] = file{}
			}
			continue
		}
		object, isObject := at.(map[string]any)
		if !isObject || object == nil {
			return false
		}
		if at = object[step]; last {
			object[step] = file{}
		}
	}
	return true
}
