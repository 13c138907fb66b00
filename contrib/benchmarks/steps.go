package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/edge"
	"github.com/gqlgen-ratelimit/ratelimit/validation"
)

//go:embed testdata/recursive.graphqls
var recursiveText string

// The bounds of the documents that are searched, which are those of the example.
const (
	mostTokens   = 2000
	mostDocument = 64 << 10
)

// station is where the documents of a search are worked on.
type station struct {
	schema    *ast.Schema
	estimator *cost.Estimator
	// open and guarded are servers without and with a front door.
	open, guarded http.Handler
}

func newStation() (*station, error) {
	schema, err := gqlparser.LoadSchema(&ast.Source{Name: "recursive.graphqls", Input: recursiveText})
	if err != nil {
		return nil, err
	}
	estimator, err := cost.New(schema, cost.Config{})
	if err != nil {
		return nil, err
	}
	// What is measured is parsing: nobody is refused for how often they ask, and nothing is remembered.
	none := []bucket.Limit{}
	door, err := edge.New(edge.Config{
		Address:   edge.AddressConfig{Limits: none, SiteLimits: none},
		Documents: edge.DocumentConfig{RememberInvalid: edge.None},
		Observe:   edge.ObserveConfig{Logger: slog.New(slog.DiscardHandler), Refusals: edge.None},
	})
	if err != nil {
		return nil, err
	}
	guarded := bareServer(schema)
	guarded.Use(door)
	return &station{schema: schema, estimator: estimator, open: bareServer(schema), guarded: door.Handler(guarded)}, nil
}

// bareServer reads and validates documents, and runs nothing.
func bareServer(schema *ast.Schema) *handler.Server {
	srv := handler.New(nothing{schemaOnly{schema: schema}})
	srv.AddTransport(transport.POST{})
	srv.SetParserTokenLimit(mostTokens)
	srv.SetValidationRulesFn(validation.Rules)
	return srv
}

// nothing answers without running anything.
type nothing struct{ schemaOnly }

// Exec implements graphql.ExecutableSchema.
func (nothing) Exec(context.Context) graphql.ResponseHandler {
	return graphql.OneShot(&graphql.Response{Data: []byte("null")})
}

// A step is a part of what a server does with a document that it has not seen. It returns what is to be measured, and
// an error if the document does not come so far.
type step struct {
	name string
	of   func(s *station, text string) (func(), error)
}

var errInvalid = errors.New("the document is not valid")

var steps = []step{
	{"parse", func(_ *station, text string) (func(), error) {
		return func() { _, _ = parse(text) }, nil
	}},
	{"validate, gqlparser's rules", func(s *station, text string) (func(), error) { return s.validate(text, rules.NewDefaultRules) }},
	{"validate, `validation.Rules`", func(s *station, text string) (func(), error) { return s.validate(text, validation.Rules) }},
	{"compile the price", func(s *station, text string) (func(), error) {
		document, err := s.valid(text)
		if err != nil {
			return nil, err
		}
		return func() { _, _ = s.estimator.Compile(document, document.Operations[0]) }, nil
	}},
	{"evaluate the price", func(s *station, text string) (func(), error) {
		document, err := s.valid(text)
		if err != nil {
			return nil, err
		}
		plan, err := s.estimator.Compile(document, document.Operations[0])
		if err != nil {
			return nil, err
		}
		return func() { _, _ = plan.Evaluate(nil) }, nil
	}},
	{"a server, answer included", func(s *station, text string) (func(), error) { return ask(s.open, text) }},
	{"the same behind the front door", func(s *station, text string) (func(), error) { return ask(s.guarded, text) }},
}

func parse(text string) (*ast.QueryDocument, error) {
	return parser.ParseQueryWithTokenLimit(&ast.Source{Input: text}, mostTokens)
}

func (s *station) validate(text string, by func() *rules.Rules) (func(), error) {
	document, err := parse(text)
	if err != nil {
		return nil, err
	}
	return func() { _ = validator.ValidateWithRules(s.schema, document, by()) }, nil
}

func (s *station) valid(text string) (*ast.QueryDocument, error) {
	document, err := parse(text)
	if err != nil {
		return nil, err
	}
	if errs := validator.ValidateWithRules(s.schema, document, validation.Rules()); len(errs) > 0 {
		return nil, errInvalid
	}
	return document, nil
}

func ask(server http.Handler, text string) (func(), error) {
	body, err := json.Marshal(map[string]string{"query": text, "operationName": "q0"})
	if err != nil {
		return nil, err
	}
	return func() {
		r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/query", strings.NewReader(string(body)))
		r.Header.Set("Content-Type", "application/json")
		server.ServeHTTP(httptest.NewRecorder(), r)
	}, nil
}

// trial is a document that is to be worked on, and verdict how long that took.
type (
	trial struct {
		Step int    `json:"step"`
		Text string `json:"text"`
	}
	verdict struct {
		// Begun says that the step begins: what comes before it has ended. It is told first, without a time.
		Begun bool `json:"begun"`
		// Nanos is the time of the processor, 0 if the document does not come to the step.
		Nanos float64 `json:"nanos"`
	}
)

// try works on the document once.
func (s *station) try(t trial, begin func() error) (verdict, error) {
	do, err := steps[t.Step].of(s, t.Text)
	if err := begin(); err != nil {
		return verdict{}, err
	}
	if err != nil {
		// It does not come so far, which is no mistake of the search.
		return verdict{}, nil //nolint:nilerr // see above
	}
	runtime.GC()
	const enough, most = 2 * time.Millisecond, 64
	before, start, n := processorTime(), time.Now(), 0
	for n == 0 || n < most && time.Since(start) < enough {
		do()
		n++
	}
	return verdict{Nanos: float64(processorTime()-before) / float64(n)}, nil
}

// measureTrials is the part of a process that is asked for one document after the other, and killed if one takes too long.
func measureTrials(in io.Reader, out io.Writer) error {
	s, err := newStation()
	if err != nil {
		return err
	}
	trials, verdicts := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var t trial
		if err := trials.Decode(&t); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		v, err := s.try(t, func() error { return verdicts.Encode(verdict{Begun: true}) })
		if err != nil {
			return err
		}
		if err := verdicts.Encode(v); err != nil {
			return err
		}
	}
}
