package edge_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/edge"
)

// uploading is a server that takes uploads, and counts the panics in it.
type uploading struct {
	handler http.Handler
	panics  atomic.Int64
}

func newUploading(t *testing.T, cfg edge.Config) *uploading {
	t.Helper()
	u, g := &uploading{}, newGuarded(t, edge.DocumentConfig{})
	g.AddTransport(transport.MultipartForm{})
	g.SetRecoverFunc(func(context.Context, any) error {
		u.panics.Add(1)
		return errors.New("a panic")
	})
	u.handler = newDoor(t, cfg).Handler(g)
	return u
}

// form is an upload with one file.
func form(t *testing.T, operations, places string) (body []byte, contentType string) {
	t.Helper()
	var all bytes.Buffer
	w := multipart.NewWriter(&all)
	require.NoError(t, w.WriteField("operations", operations))
	require.NoError(t, w.WriteField("map", places))
	file, err := w.CreateFormFile("0", "a.txt")
	require.NoError(t, err)
	_, err = io.WriteString(file, "content")
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return all.Bytes(), w.FormDataContentType()
}

func (u *uploading) send(t *testing.T, body io.Reader, contentType string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/query", body)
	r.Header.Set("Content-Type", contentType)
	w := httptest.NewRecorder()
	u.handler.ServeHTTP(w, r)
	return w
}

func TestAFileBelongsAtAPlaceInTheVariables(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		variables string
		paths     []string
		fits      bool
	}{
		{`{"f":null}`, []string{"variables.f"}, true},
		{`{}`, []string{"variables.f"}, true},
		{`{"f":[null,null]}`, []string{"variables.f.1", "variables.f.0"}, true},
		{`{"f":{"g":[{"h":null}]}}`, []string{"variables.f.g.0.h", "variables.f.g.0.i"}, true},
		{`{"f":null}`, []string{"variables.f", "variables.f"}, true},
		{`{"f":[null]}`, []string{"variables.f.9"}, false},
		{`{"f":[null]}`, []string{"variables.f.-1"}, false},
		{`{"f":[null]}`, []string{"variables.f.g"}, false},
		{`{"f":{"g":null}}`, []string{"variables.f.0"}, false},
		{`{"f":"text"}`, []string{"variables.f.g"}, false},
		{`{"f":null}`, []string{"variables.f.g"}, false},
		{`{"f":null}`, []string{"variables.f", "variables.f.g"}, false},
		{`{"f":{"g":null}}`, []string{"variables.f.g", "variables.f"}, false},
		{`{"f":null}`, []string{"variables.0"}, false},
		{`{"f":null}`, []string{"f"}, false},
		{`{"f":null}`, []string{"variables"}, false},
		{`null`, []string{"variables.f"}, false},
		{`{"f":[null],"x":1e400}`, []string{"variables.f.9"}, false},
	} {
		t.Run(fmt.Sprint(c.variables, c.paths), func(t *testing.T) {
			t.Parallel()
			u := newUploading(t, edge.Config{})
			places, err := json.Marshal(map[string][]string{"0": c.paths})
			require.NoError(t, err)
			body, contentType := form(t, `{"query":"{a}","variables":`+c.variables+`}`, string(places))
			answer := u.send(t, bytes.NewReader(body), contentType)
			require.Zero(t, u.panics.Load())
			if c.fits {
				require.Equal(t, http.StatusOK, answer.Code, answer.Body)
				return
			}
			require.Equal(t, http.StatusUnprocessableEntity, answer.Code, answer.Body)
			require.Contains(t, answer.Body.String(), "the map of the upload")
		})
	}
}

func TestNoPlaceOfAFileMakesTheServerPanic(t *testing.T) {
	t.Parallel()
	u := newUploading(t, edge.Config{Address: edge.AddressConfig{Limits: []bucket.Limit{}}})
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	var value func(depth int) string
	value = func(depth int) string {
		switch kind := random.IntN(6); {
		case kind < 2 && depth < 4:
			return "[" + value(depth+1) + "," + value(depth+1) + "]"
		case kind < 4 && depth < 4:
			return `{"a":` + value(depth+1) + `,"0":` + value(depth+1) + `}`
		default:
			return pick("null", "1", "1e400", "-1e999", strings.Repeat("9", 400), `"text"`, "true", "{}", "[]")
		}
	}
	ran := 0
	for range 1000 {
		paths := []string{}
		for range 1 + random.IntN(3) {
			path := pick("variables", "variables", "variables", "variables", "vars", "")
			for range random.IntN(4) {
				path += "." + pick("a", "a", "0", "1", "-1", "+0", "b", "")
			}
			paths = append(paths, path)
		}
		places, err := json.Marshal(map[string][]string{"0": paths})
		require.NoError(t, err)
		body, contentType := form(t, `{"query":"{a}","variables":`+pick(`{"a":`+value(0)+`}`, "null", value(0))+`}`, string(places))
		if u.send(t, bytes.NewReader(body), contentType).Code == http.StatusOK {
			ran++
		}
		require.Zero(t, u.panics.Load(), string(body))
	}
	require.Greater(t, ran, 10)
}

func TestTheHeadOfAnUploadIsBounded(t *testing.T) {
	t.Parallel()
	u := newUploading(t, edge.Config{Request: edge.RequestConfig{MaxBody: 2000, MaxUpload: 1 << 20, MaxValues: 50}})
	const operations, places = `{"query":"{a}","variables":{"f":null}}`, `{"0":["variables.f"]}`
	body, contentType := form(t, operations, places)
	large := bytes.Replace(body, []byte("content"), bytes.Repeat([]byte("x"), 500_000), 1)
	require.Equal(t, http.StatusOK, u.send(t, bytes.NewReader(large), contentType).Code, "a large file")

	body, contentType = form(t, `{"query":"{a} #`+strings.Repeat("x", 2000)+`"}`, places)
	require.Equal(t, http.StatusRequestEntityTooLarge, u.send(t, bytes.NewReader(body), contentType).Code, "a large operation")
	body, contentType = form(t, operations, `{"0":["variables.f"],"`+strings.Repeat("x", 2000)+`":[]}`)
	require.Equal(t, http.StatusRequestEntityTooLarge, u.send(t, bytes.NewReader(body), contentType).Code, "a large map")
	body, contentType = form(t, `{"query":"{a}","variables":{"f":null,"g":[`+strings.Repeat("1,", 60)+`1]}}`, places)
	answer := u.send(t, bytes.NewReader(body), contentType)
	require.Equal(t, http.StatusBadRequest, answer.Code, "many values")
	require.Contains(t, answer.Body.String(), `"rule":"values"`)
}

func TestAnUploadPaysForTheBytesOfItsHead(t *testing.T) {
	t.Parallel()
	u := newUploading(t, edge.Config{
		Request: edge.RequestConfig{MaxBody: 400_000, MaxValues: 100},
		Address: edge.AddressConfig{Limits: []bucket.Limit{{Name: "bytes", Unit: edge.Bytes, Capacity: 500_000, Period: time.Hour}}},
	})
	body, contentType := form(t, `{"query":"{a} #`+strings.Repeat("x", 300_000)+`"}`, `{"0":["variables.f"]}`)
	for _, status := range []int{http.StatusUnprocessableEntity, http.StatusTooManyRequests} {
		answer := u.send(t, struct{ io.Reader }{bytes.NewReader(body)}, contentType) // of unknown length
		require.Equal(t, status, answer.Code, answer.Body)
	}
}
