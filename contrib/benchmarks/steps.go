package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"github.com/gqlgen-ratelimit/ratelimit"
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
	// open and guarded are servers without and with a front door, and whole is one with a limiter as well, which suggests
	// no names: the defaults of the example.
	open, guarded, whole http.Handler
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
	guarded, err := guardedServer(bareServer(schema))
	if err != nil {
		return nil, err
	}
	limiter, err := roomyLimiter()
	if err != nil {
		return nil, err
	}
	limited := bareServer(schema)
	limited.SetDisableSuggestion(true)
	whole, err := guardedServer(limited, limiter)
	if err != nil {
		return nil, err
	}
	return &station{schema: schema, estimator: estimator, open: bareServer(schema), guarded: guarded, whole: whole}, nil
}

// guardedServer puts a door before a server, and other extensions behind it.
func guardedServer(server *handler.Server, others ...graphql.HandlerExtension) (http.Handler, error) {
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
	server.Use(door)
	for _, other := range others {
		server.Use(other)
	}
	return door.Handler(ratelimit.Handler(server)), nil
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
	{"the same with the defaults of the example, price included", func(s *station, text string) (func(), error) { return ask(s.whole, text) }},
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

// ask asks a server with a text that it has not seen, each time.
func ask(server http.Handler, text string) (func(), error) {
	quoted, err := json.Marshal(text)
	if err != nil {
		return nil, err
	}
	begin := `{"operationName":"q0","query":` + strings.TrimSuffix(string(quoted), `"`)
	return func() {
		body := fmt.Sprintf(`%s\n#%d"}`, begin, texts.Add(1))
		r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/query", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Tenant", "searching")
		server.ServeHTTP(httptest.NewRecorder(), r)
	}, nil
}

// texts counts those that servers were asked with.
var texts atomic.Int64

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

// exitLate is the status of a process that a document has kept too long.
const exitLate = 3

// allowance ends this process when a part of a trial has taken longestTrial of the processor. What other processes take
// does not count.
type allowance struct{ until atomic.Int64 }

// begin is called where a part begins.
func (a *allowance) begin() { a.until.Store(int64(processorTime() + longestTrial)) }

func (a *allowance) over(spent time.Duration) bool { return int64(spent) > a.until.Load() }

// watch looks at the time until the context ends.
func (a *allowance) watch(ctx context.Context) {
	tick := time.NewTicker(longestTrial / 200)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if a.over(processorTime()) {
				os.Exit(exitLate)
			}
		}
	}
}

// measureTrials is the part of a process that is asked for one document after the other, and that ends if one takes too long.
func measureTrials(in io.Reader, out io.Writer) error {
	s, err := newStation()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var left allowance
	left.begin()
	go left.watch(ctx)
	trials, verdicts := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var t trial
		if err := trials.Decode(&t); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		left.begin()
		v, err := s.try(t, func() error {
			left.begin()
			return verdicts.Encode(verdict{Begun: true})
		})
		if err != nil {
			return err
		}
		if err := verdicts.Encode(v); err != nil {
			return err
		}
	}
}
