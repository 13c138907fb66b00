package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// transportCase is a way in which operations come and answers go.
type transportCase struct {
	name string
	// plain is an operation that the transport is made for, and keyed one that can have a key.
	plain, keyed string
	// send returns what the client gets, as it stands in a golden file.
	send func(*fixture, request) string
	// onSocket says that there are no status and headers.
	onSocket bool
}

const (
	exportQuery = `{ export(rows: 1) }`
	deferQuery  = `{ me { name ... @defer { friends(first: 2) { name } } } }`
	attachFiles = `mutation ($f: [Upload!]!) { attach(files: $f) }`
)

var transportCases = []transportCase{
	{name: "post-json", plain: cheapQuery, keyed: createUser, send: func(f *fixture, r request) string {
		return f.post(r).transcript()
	}},
	{name: "post-graphql-response", plain: cheapQuery, keyed: createUser, send: func(f *fixture, r request) string {
		return f.do(http.MethodPost, f.url, r, "application/graphql-response+json").transcript()
	}},
	{name: "get", plain: cheapQuery, keyed: exportQuery, send: func(f *fixture, r request) string {
		return f.get(r).transcript()
	}},
	{name: "urlencoded-form", plain: cheapQuery, keyed: createUser, send: urlEncodedForm},
	{name: "multipart-form", plain: cheapQuery, keyed: createUser, send: func(f *fixture, r request) string {
		return f.multipartForm(r).transcript()
	}},
	{name: "multipart-form-files", plain: attachFiles, send: func(f *fixture, r request) string {
		return f.multipartForm(r, "f").transcript()
	}},
	{name: "sse", plain: cheapQuery, keyed: createUser, send: func(f *fixture, r request) string {
		return f.sse(r).transcript()
	}},
	{name: "multipart-mixed", plain: deferQuery, keyed: createUser, send: func(f *fixture, r request) string {
		return f.multipartMixed(r).transcript()
	}},
	{name: "graphql-transport-ws", plain: cheapQuery, keyed: createUser, onSocket: true, send: over(transportWS)},
	{name: "graphql-ws", plain: cheapQuery, keyed: createUser, onSocket: true, send: over(legacyWS)},
}

// urlEncodedForm sends what gqlgen reads of such a form: one parameter, decoded if an encoded brace is its first
// character, and as it stands otherwise.
func urlEncodedForm(f *fixture, r request) string {
	body := "query=" + r.Query
	if strings.HasPrefix(r.Query, "{") {
		body = url.Values{"query": {r.Query}}.Encode()
	}
	return f.exchange(http.MethodPost, f.url, r, "application/json", "application/x-www-form-urlencoded",
		strings.NewReader(body)).transcript()
}

// multipartForm sends the operation with a list of one file in each of the named variables.
func (f *fixture) multipartForm(r request, files ...string) reply {
	f.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	variables, places := maps.Clone(r.Variables), map[string][]string{}
	if variables == nil {
		variables = map[string]any{}
	}
	for _, name := range files {
		variables[name], places[name] = []any{nil}, []string{"variables." + name + ".0"}
	}
	r.Variables = variables
	for _, part := range []struct {
		name  string
		value any
	}{{"operations", r.body()}, {"map", places}} {
		encoded, err := json.Marshal(part.value)
		require.NoError(f.t, err)
		require.NoError(f.t, form.WriteField(part.name, string(encoded)))
	}
	for _, name := range files {
		file, err := form.CreateFormFile(name, name+".txt")
		require.NoError(f.t, err)
		_, err = file.Write([]byte("content"))
		require.NoError(f.t, err)
	}
	require.NoError(f.t, form.Close())
	return f.exchange(http.MethodPost, f.url, r, "application/json", form.FormDataContentType(), &body)
}

func over(protocol string) func(*fixture, request) string {
	return func(f *fixture, r request) string {
		// A document that does not validate is judged by the headers, because gqlgen hides the payload from it.
		header := http.Header{"X-Tenant": {r.tenant()}}
		s := f.dialAs(protocol, r.tenant(), header)
		defer func() { _ = s.conn.Close(websocket.StatusNormalClosure, "") }()
		return indented(strings.Join(s.run("1", r), "\n"))
	}
}

// TestEveryTransportAnswersEveryOutcome compares whole answers, status and headers included, with a golden file
// for each transport: what a client sees is part of the contract. What goes for all answers of an
// outcome is said in the tables, so that no golden file can be recorded that breaks it.
func TestEveryTransportAnswersEveryOutcome(t *testing.T) {
	t.Parallel()
	for i := range transportCases {
		via := &transportCases[i]
		t.Run(via.name, func(t *testing.T) {
			t.Parallel()
			sections := newSections(t, "matrix-"+via.name)
			for j := range outcomeCases {
				o := &outcomeCases[j]
				t.Run(o.name, func(t *testing.T) {
					if why := o.lacks(via); why != nil {
						sections.compare(t, o.name, "# "+why.reason+"\n"+why.show(t, via))
						return
					}
					sections.compare(t, o.name, o.play(t, via))
				})
			}
		})
	}
}

// play brings the outcome about, checks what goes for it on every transport, and returns what the client got.
func (o *outcomeCase) play(t *testing.T, via *transportCase) string {
	t.Helper()
	w := &witness{}
	f := newFixtureWithin(t, func(cfg *ratelimit.Config) {
		cfg.Policy = policyOf(t, matrixPolicy)
		if o.configure != nil {
			o.configure(cfg)
		}
	}, w)
	f.server.SetErrorPresenter(w.present)
	r := o.request(via)
	if o.before != nil {
		if end := o.before(f, r, via); end != nil {
			defer end()
		}
	}
	w.forget()
	ran := f.resolver.Asked.Load() + f.resolver.Created.Load()
	transcript := via.send(f, r)
	require.Equal(t, o.runs, f.resolver.Asked.Load()+f.resolver.Created.Load() > ran, "whether a resolver ran: %s", transcript)

	answers := answersIn(transcript)
	require.NotEmpty(t, answers, transcript)
	refusal := refusalIn(t, answers[0])
	require.Equal(t, o.code, refusal.Code, transcript)
	if o.code != "" {
		require.Equal(t, []string{o.code}, w.presentedCodes(), "what the error presenter saw")
		require.Equal(t, []string{o.code}, w.answeredCodes(), "what a tracer of responses saw")
	} else {
		require.Empty(t, w.presentedCodes())
	}
	require.Equal(t, o.runs, w.fields.Load() > 0, "whether a tracer of fields saw any")
	if !via.onSocket {
		o.checkHeaders(t, transcript, refusal)
	}
	return transcript
}

// checkHeaders holds the status and the headers to what the body says.
func (o *outcomeCase) checkHeaders(t *testing.T, transcript string, refusal ratelimitclient.Refusal) {
	t.Helper()
	head, _, _ := strings.Cut(transcript, "\n\n")
	if o.status != 0 {
		require.True(t, strings.HasPrefix(head, fmt.Sprintf("%d ", o.status)), head)
	}
	retry := ""
	if found := retryAfterLine.FindStringSubmatch(head); found != nil {
		retry = found[1]
	}
	want := ""
	if refusal.RetryAfter > 0 {
		// Whole seconds, and never earlier than the body says.
		want = fmt.Sprint(int64(refusal.RetryAfter.Seconds() + 0.9999))
	}
	require.Equal(t, want, retry, head)
}

var retryAfterLine = regexp.MustCompile(`(?m)^Retry-After: (.*)$`)

// refusalIn returns why an answer is a refusal, zero if it is none.
func refusalIn(t *testing.T, answer map[string]any) ratelimitclient.Refusal {
	t.Helper()
	encoded, err := json.Marshal(answer["errors"])
	require.NoError(t, err)
	refusal, found := ratelimitclient.FromErrors(encoded)
	if !found {
		return ratelimitclient.Refusal{}
	}
	return *refusal
}
