package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/policy"
)

// secretToken is the one of the tests.
const secretToken = "grl_verysecret"

// document is a policy with so many points a minute.
func document(points int) string {
	return fmt.Sprintf("version: 1\ndefault: free\ntiers: {free: {limits: {minute: {capacity: %d, per: minute}}}}\n", points)
}

// control is a gqlratelimitd for tests: it keeps revisions, and answers what it is told to.
type control struct {
	*testing.T
	server *httptest.Server
	// folder is where the files of somebody are.
	folder string

	mu        sync.Mutex
	revisions []policy.Revision
	// answers are given to requests in the place of what the daemon would say, by method and path, each once.
	answers map[string][]reply
	seen    []*http.Request
	bodies  []string
}

// reply is an answer.
type reply struct {
	status int
	header http.Header
	body   string
}

func newControl(t *testing.T, documents ...string) *control {
	t.Helper()
	c := &control{T: t, folder: t.TempDir(), answers: map[string][]reply{}}
	for _, d := range documents {
		c.publish(d, "ada", "why")
	}
	c.server = httptest.NewServer(c)
	t.Cleanup(c.server.Close)
	return c
}

func (c *control) publish(document, author, reason string) *policy.Revision {
	r := policy.Revision{
		Number: uint64(len(c.revisions) + 1), Document: []byte(document), Hash: policy.HashOf([]byte(document)), Author: author, Reason: reason,
		Published: time.Date(2026, 11, 22, 3, len(c.revisions), 0, 0, time.UTC),
	}
	c.revisions = append(c.revisions, r)
	return &r
}

// answer has the next request of a kind be answered otherwise.
func (c *control) answer(request string, status int, header http.Header, body string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers[request] = append(c.answers[request], reply{status, header, body})
}

// problem has the next request of a kind be refused.
func (c *control) problem(request string, status int, body string) {
	c.answer(request, status, http.Header{"Content-Type": {"application/problem+json"}}, body)
}

func (c *control) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	c.seen, c.bodies = append(c.seen, r), append(c.bodies, string(body))
	request := r.Method + " " + r.URL.Path
	if told := c.answers[request]; len(told) > 0 {
		c.answers[request] = told[1:]
		for name, values := range told[0].header {
			w.Header()[name] = values
		}
		w.WriteHeader(told[0].status)
		_, _ = io.WriteString(w, told[0].body)
		return
	}
	const policies = "/v1/ratelimit/policies"
	switch {
	case r.Header.Get("Authorization") != "Bearer "+secretToken:
		refuse(w, http.StatusUnauthorized, `{"title": "It is not known who asks"}`)
	case request == "GET "+policies:
		c.revision(w, len(c.revisions))
	case request == "GET /v1/ratelimit/revisions":
		list := []any{}
		for i := len(c.revisions) - 1; i >= 0; i-- {
			list = append(list, summary(&c.revisions[i]))
		}
		write(w, map[string]any{"revisions": list})
	case request == "PUT "+policies:
		if r.Header.Get("If-Match") != strconv.Quote(strconv.Itoa(len(c.revisions))) && (len(c.revisions) > 0 || r.Header.Get("If-None-Match") != "*") {
			refuse(w, http.StatusPreconditionFailed, `{"title": "Something else is there"}`)
			return
		}
		write(w, summary(c.publish(string(body), "me", r.URL.Query().Get("reason"))))
	case strings.HasPrefix(request, "GET "+policies+"/"):
		n, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, policies+"/"))
		c.revision(w, n)
	default:
		refuse(w, http.StatusNotFound, `{"title": "There is no such path"}`)
	}
}

func (c *control) revision(w http.ResponseWriter, n int) {
	if n < 1 || n > len(c.revisions) {
		refuse(w, http.StatusNotFound, `{"title": "No policy was published yet"}`)
		return
	}
	text, _ := c.revisions[n-1].MarshalBinary()
	_, _ = w.Write(text)
}

func summary(r *policy.Revision) any {
	return map[string]any{"number": r.Number, "hash": r.Hash, "author": r.Author, "reason": r.Reason, "published": r.Published}
}

func write(w io.Writer, body any) { _ = json.NewEncoder(w).Encode(body) }

func refuse(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// run runs a line of somebody who has the token. FILE is their policy file.
func (c *control) run(line string, more ...string) (code int, stdout, stderr string) {
	c.Helper()
	o := &operator{env: map[string]string{"RATELIMIT_DAEMON": c.server.URL, "RATELIMIT_TOKEN": secretToken}}
	code, stdout, stderr = o.run(strings.ReplaceAll(line, "FOLDER", c.folder), more...)
	require.NotContains(c, stdout+stderr, secretToken)
	return code, stdout, stderr
}

// want runs a line that ends so, and returns all that it has written, with FOLDER for the folder.
func (c *control) want(code int, line string, more ...string) string {
	c.Helper()
	got, stdout, stderr := c.run(line, more...)
	require.Equal(c, code, got, "%s%s", stdout, stderr)
	return strings.ReplaceAll(stdout+stderr, c.folder, "FOLDER")
}

func (c *control) write(name, text string) {
	c.Helper()
	require.NoError(c, os.WriteFile(filepath.Join(c.folder, name), []byte(text), 0o600))
}

func (c *control) read(name string) string {
	c.Helper()
	text, err := os.ReadFile(filepath.Join(c.folder, name))
	require.NoError(c, err)
	return string(text)
}
