package edge_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator/core"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"github.com/gqlgen-ratelimit/ratelimit/edge"
	"github.com/gqlgen-ratelimit/ratelimit/internal/sink"
)

var schema = gqlparser.MustLoadSchema(&ast.Source{Input: `
type Query { a: Int b(x: In): Int e(e: E): Int q: Query }
enum E { ONE }
input In { x: [Int] i: In }
`})

// guarded is a server behind a door, which counts what it validates.
type guarded struct {
	*handler.Server

	door      *edge.Door
	documents *edge.Documents
	validated atomic.Int64
	// during runs in each validation. Nil does nothing.
	during func()
}

func newGuarded(t *testing.T, cfg edge.DocumentConfig, others ...graphql.HandlerExtension) *guarded {
	t.Helper()
	g := &guarded{documents: edge.NewDocuments(0)}
	g.Server = handler.New(&graphql.ExecutableSchemaMock{
		SchemaFunc: func() *ast.Schema { return schema },
		ExecFunc: func(context.Context) graphql.ResponseHandler {
			return graphql.OneShot(&graphql.Response{Data: []byte(`{"a":1}`)})
		},
	})
	g.AddTransport(transport.GET{})
	g.AddTransport(transport.POST{})
	cfg.Cache = g.documents
	door, err := edge.New(edge.Config{Documents: cfg, Observe: edge.ObserveConfig{Logger: slog.New(slog.DiscardHandler)}})
	require.NoError(t, err)
	g.door = door
	g.SetQueryCache(g.documents)
	g.SetValidationRulesFn(func() *rules.Rules {
		all := rules.NewDefaultRules()
		all.AddRule("Counting", func(*core.Events, core.AddErrFunc) {
			g.validated.Add(1)
			if g.during != nil {
				g.during()
			}
		})
		return all
	})
	g.Use(door)
	for _, other := range others {
		g.Use(other)
	}
	return g
}

// documentAnswer is what a client reads.
type documentAnswer struct {
	status int
	header http.Header
	// bytes is how many the answer has.
	bytes  int
	Data   json.RawMessage `json:"data"`
	Errors []struct {
		Message    string         `json:"message"`
		Extensions map[string]any `json:"extensions"`
		Locations  []any          `json:"locations"`
	} `json:"errors"`
}

func (a *documentAnswer) code() any {
	if len(a.Errors) == 0 {
		return nil
	}
	return a.Errors[0].Extensions["code"]
}

// ask sends a document from an address.
func (g *guarded) ask(t testing.TB, address, document string) *documentAnswer {
	t.Helper()
	body, err := json.Marshal(map[string]string{"query": document})
	require.NoError(t, err)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/query", strings.NewReader(string(body)))
	r.Header.Set("Content-Type", "application/json")
	r.RemoteAddr = address + ":4711"
	w := httptest.NewRecorder()
	g.door.Handler(sink.Handler(g)).ServeHTTP(w, r)
	a := &documentAnswer{status: w.Code, header: w.Header(), bytes: w.Body.Len()}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), a), w.Body.String())
	return a
}

func TestADocumentThatBreaksABoundIsRefusedWithoutBeingParsed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule     string
		bounds   edge.DocumentConfig
		fits     string
		document string
	}{
		{"tokens", edge.DocumentConfig{MaxTokens: 4}, `{a,a,}`, "{a a a}"},
		{"tokens", edge.DocumentConfig{MaxTokens: 4}, "{a # a b c\n}", "{a #\n#\n}"},
		{"nesting", edge.DocumentConfig{MaxDepth: 3}, `{q{b(x:null)}} `, "{b(x:{x:[1]})}"},
		{"nesting", edge.DocumentConfig{MaxDepth: 2}, `{a # {{{` + "\n" + `}`, "{q{q{a}}}"},
		{"operations", edge.DocumentConfig{MaxOperations: 1}, "query($i:In={x:1}){b(x:$i)}", "query A{a} query B{a}"},
		{"operations", edge.DocumentConfig{MaxOperations: 1}, "query fragment{a}", "{a}{a}"},
		{"fragments", edge.DocumentConfig{MaxFragments: 1}, "fragment  fragment on Query{a}{...fragment}", //nolint:dupword // it may have that name
			"fragment F on Query{a} fragment G on Query{a} {...F ...G}"},
		{"name", edge.DocumentConfig{MaxName: 3}, "{abc:a}", "{abcd:a}"},
		{"name", edge.DocumentConfig{MaxName: 6}, `{a} # 1234567`, "{b(x:1234567)}"},
		{"reach", edge.DocumentConfig{MaxReach: 18}, "{...F}fragment F on Query{a}", "{...F}fragment F on Query{a a}"},
		{"reach", edge.DocumentConfig{MaxReach: 9}, `{b(x:"` + strings.Repeat("x", 61) + `")}`, `{b(x:"` + strings.Repeat("x", 128) + `")}`},
	} {
		g := newGuarded(t, c.bounds)
		refused := g.ask(t, "192.0.2.1", c.document)
		require.Equal(t, "QUERY_LIMIT_EXCEEDED", refused.code(), c.document)
		require.Equal(t, "document", refused.Errors[0].Extensions["layer"])
		require.Equal(t, c.rule, refused.Errors[0].Extensions["rule"])
		require.Equal(t, http.StatusBadRequest, refused.status)
		require.Zero(t, g.validated.Load(), c.document)
		require.NotEqual(t, "QUERY_LIMIT_EXCEEDED", g.ask(t, "192.0.2.1", c.fits).code(), c.fits)
		require.EqualValues(t, 1, g.validated.Load(), c.fits)
	}
}

func TestADocumentThatIsTooLongIsAPayloadThatIsTooLarge(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, edge.DocumentConfig{MaxBytes: 10})
	require.Nil(t, g.ask(t, "192.0.2.1", "{a}#456789").code())
	refused := g.ask(t, "192.0.2.1", "{a}#456789X")
	require.Equal(t, "PAYLOAD_TOO_LARGE", refused.code())
	require.Equal(t, http.StatusRequestEntityTooLarge, refused.status)
}

func TestBracesInStringsAndCommentsAreNoBraces(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, edge.DocumentConfig{MaxDepth: 3, MaxOperations: 1, MaxTokens: 12})
	for _, document := range []string{
		`{b(x:"}}}{{{{{{ \" {{{{")}`, `{b(x:"""{{{{{{"" \""" {{{{{""")}`, "{a #{{{{{{{{\n}", "{a} # { } { } { }",
		`{b(x:-1.5e+10)}`, `{b(x:"")}`,
	} {
		require.NotEqual(t, "QUERY_LIMIT_EXCEEDED", g.ask(t, "192.0.2.1", document).code(), document)
	}
	require.Equal(t, "QUERY_LIMIT_EXCEEDED", g.ask(t, "192.0.2.1", `{b(x:"")}{a}`).code())
}

func TestABoundThatIsTakenAwayIsNone(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, edge.DocumentConfig{MaxTokens: edge.None, MaxDepth: edge.None})
	require.Nil(t, g.ask(t, "192.0.2.1", strings.Repeat("{q", 100)+"{"+strings.Repeat("a ", 3000)+"}"+strings.Repeat("}", 100)).code())
}

func TestAnInvalidDocumentIsRememberedWhoeverSendsItAndWhateverItsVariablesAre(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, edge.DocumentConfig{})
	first := g.ask(t, "192.0.2.1", "{nope nada}")
	require.Len(t, first.Errors, 2)
	again := g.ask(t, "192.0.2.1", "{nope nada}")
	require.Equal(t, first.Errors, again.Errors, "who had the errors has them again")
	require.Equal(t, http.StatusUnprocessableEntity, again.status)
	other := g.ask(t, "192.0.2.2", "{nope nada}")
	require.Equal(t, "GRAPHQL_VALIDATION_FAILED", other.code())
	require.NotContains(t, other.Errors[0].Message, "nope", "others are told nothing that a presenter has written for somebody")
	require.EqualValues(t, 1, g.validated.Load())

	require.Equal(t, "GRAPHQL_PARSE_FAILED", g.ask(t, "192.0.2.1", "{").code())
	require.Equal(t, "GRAPHQL_PARSE_FAILED", g.ask(t, "192.0.2.2", "{").code())
	require.Equal(t, http.StatusUnprocessableEntity, g.ask(t, "192.0.2.2", "{").status)
}

func TestWhatAPresenterAddsToErrorsIsNotKept(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, edge.DocumentConfig{})
	presented := 0
	g.SetErrorPresenter(func(ctx context.Context, err error) *gqlerror.Error {
		presented++
		shown := graphql.DefaultErrorPresenter(ctx, err)
		if presented == 1 {
			shown.Extensions["secret"] = strings.Repeat("x", 1<<20)
		}
		return shown
	})
	require.Contains(t, g.ask(t, "192.0.2.1", "{nope}").Errors[0].Extensions, "secret")
	again := g.ask(t, "192.0.2.1", "{nope}")
	require.Equal(t, "GRAPHQL_VALIDATION_FAILED", again.code())
	require.NotContains(t, again.Errors[0].Extensions, "secret")
	require.Equal(t, 2, presented, "each answer is presented")
}

func TestWhatDependsOnVariablesOrTheNameOfTheOperationIsNotRemembered(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, edge.DocumentConfig{})
	for range 2 {
		require.Equal(t, "GRAPHQL_VALIDATION_FAILED", g.ask(t, "192.0.2.1", "query($x:In!){b(x:$x)}").code())
	}
	require.EqualValues(t, 2, g.validated.Load())
}

func TestTheMemoryOfInvalidDocumentsIsBounded(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, edge.DocumentConfig{RememberInvalid: 4 << 10})
	g.ask(t, "192.0.2.1", "{first}")
	for _, name := range strings.Fields("c d e f g h i j k l m n o p r s") {
		g.ask(t, "192.0.2.1", "{"+name+"}")
	}
	before := g.validated.Load()
	g.ask(t, "192.0.2.1", "{first}")
	require.Equal(t, before+1, g.validated.Load())
	g.ask(t, "192.0.2.1", "{s}")
	require.Equal(t, before+1, g.validated.Load())
}

func TestTheAnswerToAnInvalidDocumentListsSoManyErrors(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, edge.DocumentConfig{MaxErrors: 3})
	a := g.ask(t, "192.0.2.1", "{"+strings.Repeat("nope ", 10)+"}")
	require.Len(t, a.Errors, 4)
	require.Equal(t, "7 more errors are not listed", a.Errors[3].Message)
}

func TestTheAnswerToAnInvalidDocumentIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	for name, document := range map[string]string{
		"many long names":        "{" + strings.Repeat(" "+strings.Repeat("x", 250), 200) + "}",
		"a name in fragments":    "{...f0}" + chainTo(10, strings.Repeat("x", 60_000)),
		"a value that is wrong":  `{b(x:{x:["` + strings.Repeat("é", 10_000) + `"]})}`,
		"wrong values in others": "{b(x:" + strings.Repeat("{i:", 20) + `{x:["` + strings.Repeat("x", 10_000) + `" 99999999999999999999]}` + strings.Repeat("}", 20) + ")}",
		"a text that is no text": "{b(x:\"" + strings.Repeat("x", 60_000) + "\n",
	} {
		g := newGuarded(t, edge.DocumentConfig{MaxName: edge.None, MaxReach: edge.None})
		for _, address := range []string{"192.0.2.1", "192.0.2.1", "192.0.2.2"} {
			a := g.ask(t, address, document)
			require.NotEmpty(t, a.Errors, name)
			require.NotEqual(t, "QUERY_LIMIT_EXCEEDED", a.code(), name)
			told := 0
			for _, err := range a.Errors {
				require.LessOrEqual(t, len(err.Message), 1<<10, name)
				require.NotContains(t, err.Message, "\ufffd", name)
				told += len(err.Message)
			}
			require.LessOrEqual(t, told, 33<<10, name)
			require.Less(t, a.bytes, 64<<10, name)
		}
	}
}

// refusing is a limiter that admits what it is told to.
type refusing struct {
	admits, unread bool
}

func (refusing) ExtensionName() string                   { return "Refusing" }
func (refusing) Validate(graphql.ExecutableSchema) error { return nil }
func (r refusing) Admitted(context.Context) bool         { return r.admits }
func (r refusing) RefusesUnread(context.Context, *graphql.RawParams) *gqlerror.Error {
	if r.unread {
		return gqlerror.Errorf("known")
	}
	return nil
}

func (r refusing) InterceptResponse(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	return next(ctx)
}

func TestTheCacheKeepsWhatIsAdmittedAndNothingElse(t *testing.T) {
	t.Parallel()
	for _, admits := range []bool{false, true} {
		g := newGuarded(t, edge.DocumentConfig{Limiter: refusing{admits: admits}}, refusing{admits: admits})
		for range 3 {
			g.ask(t, "192.0.2.1", "{a}")
		}
		g.ask(t, "192.0.2.1", "{nope}")
		if admits {
			require.Equal(t, 1, g.documents.Len())
			require.EqualValues(t, 2, g.validated.Load())
		} else {
			require.Zero(t, g.documents.Len())
			require.EqualValues(t, 4, g.validated.Load())
		}
	}
}

func TestWhatTheLimiterRefusesUnreadIsNotParsed(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, edge.DocumentConfig{Limiter: refusing{unread: true}})
	require.Equal(t, "known", g.ask(t, "192.0.2.1", "{a}").Errors[0].Message)
	require.Zero(t, g.validated.Load())
}

// persisted stands for persisted queries: an empty text is that of a document.
type persisted struct{ text string }

func (*persisted) ExtensionName() string                   { return "Persisted" }
func (*persisted) Validate(graphql.ExecutableSchema) error { return nil }
func (k *persisted) MutateOperationParameters(_ context.Context, params *graphql.RawParams) *gqlerror.Error {
	if params.Query == "" {
		params.Query = k.text
	}
	return nil
}

func TestAnEmptyTextThatAnExtensionFillsInIsNotTakenForTheLastOne(t *testing.T) {
	t.Parallel()
	p := &persisted{text: "{nope}"}
	g := newGuarded(t, edge.DocumentConfig{}, p)
	require.Equal(t, "GRAPHQL_VALIDATION_FAILED", g.ask(t, "192.0.2.1", "").code())
	p.text = "{a}"
	require.Nil(t, g.ask(t, "192.0.2.1", "").code())
	require.Equal(t, "GRAPHQL_VALIDATION_FAILED", g.ask(t, "192.0.2.1", "{nope}").code())
	require.EqualValues(t, 2, g.validated.Load(), "what it filled in is known by its own text")
}

// keeping notes the text that it is shown.
type keeping struct{ text string }

func (*keeping) ExtensionName() string                   { return "Keeping" }
func (*keeping) Validate(graphql.ExecutableSchema) error { return nil }
func (k *keeping) MutateOperationParameters(_ context.Context, params *graphql.RawParams) *gqlerror.Error {
	k.text = params.Query
	return nil
}

func TestAPartOfAURLDoesNotKeepTheWholeURLInMemory(t *testing.T) {
	t.Parallel()
	kept := &keeping{}
	g := newGuarded(t, edge.DocumentConfig{}, kept)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/query?query={a}&padding="+strings.Repeat("x", 1000), nil)
	sent := r.URL.Query().Get("query")
	g.ServeHTTP(httptest.NewRecorder(), r)
	require.Equal(t, sent, kept.text)
	require.NotSame(t, unsafe.StringData(r.URL.RawQuery[len("query="):]), unsafe.StringData(kept.text))
}

func TestADoorServesOneSchemaAndReportsEveryMistake(t *testing.T) {
	t.Parallel()
	door, err := edge.New(edge.Config{})
	require.NoError(t, err)
	other := gqlparser.MustLoadSchema(&ast.Source{Input: `type Query { a: Int }`})
	require.NoError(t, door.Validate(&graphql.ExecutableSchemaMock{SchemaFunc: func() *ast.Schema { return schema }}))
	require.ErrorContains(t, door.Validate(&graphql.ExecutableSchemaMock{SchemaFunc: func() *ast.Schema { return other }}), "another schema")

	_, err = edge.New(edge.Config{Documents: edge.DocumentConfig{MaxBytes: -2, MaxTokens: -2, MaxWait: -1}})
	for _, field := range []string{"Documents.MaxBytes is -2", "Documents.MaxTokens is -2", "Documents.MaxWait is -1ns"} {
		require.ErrorContains(t, err, field)
	}
}
