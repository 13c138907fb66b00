package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/testserver"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// answersWith is an extension that runs the operation and answers something else.
type answersWith struct{ response graphql.Response }

func (answersWith) ExtensionName() string                   { return "AnswersWith" }
func (answersWith) Validate(graphql.ExecutableSchema) error { return nil }
func (a answersWith) InterceptResponse(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	if next(ctx) == nil {
		return nil
	}
	response := a.response
	return &response
}

// oddAnswers are answers of which decoding would change a byte.
var oddAnswers = map[string]graphql.Response{
	"partial data with errors": {
		Data: json.RawMessage(`{"a":null,"b":{"id":"1","list":[null,{"x":1.0},[]]}}`),
		Errors: gqlerror.List{
			{Message: "first", Path: ast.Path{ast.PathName("a"), ast.PathIndex(0), ast.PathName("b")}},
			{Message: "second", Locations: []gqlerror.Location{{Line: 1, Column: 2}, {Line: 3}}},
			{},
		},
	},
	"no data at all": {Errors: gqlerror.List{{Message: "nothing"}}},
	"null":           {Data: json.RawMessage(`null`), Errors: gqlerror.List{{Message: "nothing"}}},
	"numbers that no double holds": {Data: json.RawMessage(
		`{"a":9007199254740993,"b":1e400,"c":-0,"d":1.10,"e":123456789012345678901234567890}`)},
	"characters that are escaped": {
		Data: json.RawMessage(`{"a":"<b>&amp;\u003c` + "\u2028é\\u00e9\\ud800" + `","a":2}`),
		Errors: gqlerror.List{
			{Message: "<a> & \u2028 \" \\ \x00"},
			{Message: "\xff\xfe bytes \uFFFD and \\ufffd \\\xff"},
			{Message: "\uFFFD"},
			{Message: "é", Extensions: map[string]any{"text": "\xff\uFFFD", "list": []any{"\xff\uFFFD"}}},
		},
	},
	"extensions of errors": {
		Data: json.RawMessage(`{}`),
		Errors: gqlerror.List{{Message: "m", Extensions: map[string]any{
			"code": "GRAPHQL_VALIDATION_FAILED", "n": int64(9007199254740993), "nothing": nil, "list": []any{1, "<", nil},
			"f": 1e21, "struct": struct {
				Z, A int
			}{1, 2}, "raw": json.RawMessage(`{"z": 1.0, "a": [ ]}`), "text": "<>&\u2028\"",
		}}},
	},
}

// TestAReplayHasTheBytesOfTheFirstAnswer compares whole responses but for extensions.rateLimit.
func TestAReplayHasTheBytesOfTheFirstAnswer(t *testing.T) {
	t.Parallel()
	for name, answer := range oddAnswers {
		for form, configure := range answerForms() {
			t.Run(name+" "+form, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, configure)
				f.server.Use(answersWith{answer})
				s := f.dial("free", nil)
				mutation := request{Query: createUser, Key: testKey}
				for transport, send := range map[string]func() (string, bool){
					"POST": func() (string, bool) {
						got := f.post(mutation)
						require.Equal(t, http.StatusOK, got.Status)
						return dataOf(t, got), got.Header.Get("Idempotent-Replayed") == "true"
					},
					"SSE": func() (string, bool) {
						body := f.sse(mutation).Body
						before, _, _ := strings.Cut(body, `,"extensions":{"rateLimit"`)
						return before, strings.Contains(body, `"replayed":true`)
					},
					"WebSocket": func() (string, bool) {
						message := s.run("1", mutation)[0]
						before, _, _ := strings.Cut(message, `,"extensions":{"rateLimit"`)
						return before, strings.Contains(message, `"replayed":true`)
					},
				} {
					mutation.Key = testKey + transport
					first, replayed := send()
					require.False(t, replayed, transport)
					again, replayed := send()
					require.True(t, replayed, transport)
					require.Equal(t, first, again, transport)
				}
			})
		}
	}
}

// answerForms are the ways in which an answer can be stored.
func answerForms() map[string]func(*ratelimit.Config) {
	return map[string]func(*ratelimit.Config){
		"in the record": nil,
		"by a codec":    func(cfg *ratelimit.Config) { cfg.Idempotency.Codec = reversed{} },
		"elsewhere, by a codec": func(cfg *ratelimit.Config) {
			cfg.Idempotency.Codec, cfg.Idempotency.Answers = reversed{}, &answerMap{}
		},
	}
}

// reversed is a codec that writes answers backwards, after the name of their record.
type reversed struct{}

func (reversed) Encode(name string, answer []byte) ([]byte, error) {
	return append([]byte(name), backwards(answer)...), nil
}

func (reversed) Decode(name string, kept []byte) ([]byte, error) {
	rest, found := strings.CutPrefix(string(kept), name)
	if !found {
		return nil, errors.New("of another record")
	}
	return backwards([]byte(rest)), nil
}

func backwards(b []byte) []byte {
	turned := make([]byte, len(b))
	for i := range b {
		turned[len(b)-1-i] = b[i]
	}
	return turned
}

// answerMap keeps answers in a map.
type answerMap struct {
	mu             sync.Mutex
	kept           map[string][]byte
	putErr, getErr error
	// before runs before an answer is put.
	before func()
}

func (a *answerMap) Put(_ context.Context, name string, answer []byte, _ time.Duration) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.before != nil {
		a.before()
	}
	if a.putErr != nil {
		return a.putErr
	}
	if a.kept == nil {
		a.kept = map[string][]byte{}
	}
	a.kept[name] = append([]byte(nil), answer...)
	return nil
}

func (a *answerMap) Get(_ context.Context, name string) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	answer, found := a.kept[name]
	switch {
	case a.getErr != nil:
		return nil, a.getErr
	case !found:
		return nil, idempotency.ErrNoAnswer
	}
	return answer, nil
}

func (a *answerMap) set(change func(*answerMap)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(a)
}

var errBroken = errors.New("broken")

// brokenCodec is a codec of which one half is broken.
type brokenCodec struct {
	reversed

	encode, decode func() error
}

func (b brokenCodec) Encode(name string, answer []byte) ([]byte, error) {
	if b.encode != nil {
		return nil, b.encode()
	}
	return b.reversed.Encode(name, answer)
}

func (b brokenCodec) Decode(name string, kept []byte) ([]byte, error) {
	if b.decode != nil {
		return nil, b.decode()
	}
	return b.reversed.Decode(name, kept)
}

func TestACodecThatFailsCostsTheReplayAndNotTheAnswer(t *testing.T) {
	t.Parallel()
	fails, panics := func() error { return errBroken }, func() error { panic("broken") }
	for name, codec := range map[string]brokenCodec{
		"encoding fails": {encode: fails}, "encoding panics": {encode: panics},
		"decoding fails": {decode: fails}, "decoding panics": {decode: panics},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, func(cfg *ratelimit.Config) { cfg.Idempotency.Codec = codec })
			first := f.post(request{Query: createUser, Key: testKey})
			require.Equal(t, http.StatusOK, first.Status)
			require.Contains(t, first.Body, `"Grace"`)
			again := f.post(request{Query: createUser, Key: testKey})
			require.Equal(t, http.StatusConflict, again.Status)
			require.Equal(t, ratelimitclient.CodeAnswerUnavailable, again.errorCode(t))
			require.NotContains(t, again.Body, "broken", "clients are not told how")
			require.EqualValues(t, 1, f.resolver.Created.Load())
		})
	}
}

func TestTheCodecSeesEachAnswerBeforeTheStoreDoesAndItsResultIsMeasured(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(cfg *ratelimit.Config) { cfg.Idempotency.Codec = reversed{} })
	f.post(request{Query: createUser, Key: testKey})
	kept := string(f.store.Settlements()[0].Claim.Answer)
	require.NotContains(t, kept, "Grace")
	require.Contains(t, kept, "ecarG")

	size := len(kept) - 1
	for want, most := range map[bool]int{true: size + 1, false: size} {
		f := newFixture(t, func(cfg *ratelimit.Config) {
			cfg.Idempotency.Codec, cfg.Idempotency.MaxAnswer = reversed{}, most
		})
		f.post(request{Query: createUser, Key: testKey})
		require.Equal(t, want, f.store.Settlements()[0].Claim.Answer != nil, "%d bytes", most)
	}
}

// shortens is a codec that makes a few bytes of anything, and counts what it was given.
type shortens struct{ given *[]int }

func (s shortens) Encode(_ string, answer []byte) ([]byte, error) {
	*s.given = append(*s.given, len(answer))
	return []byte("short"), nil
}
func (shortens) Decode(string, []byte) ([]byte, error) { return []byte(`{"data":{}}`), nil }

func TestACodecIsGivenMoreThanIsStoredAndABoundedAmountOfIt(t *testing.T) {
	t.Parallel()
	for length, want := range map[int]bool{100: true, 6300: true, 6500: false} {
		var given []int
		f := newFixture(t, func(cfg *ratelimit.Config) {
			cfg.Idempotency.Codec, cfg.Idempotency.MaxAnswer = shortens{&given}, 100
		})
		f.server.Use(answersWith{graphql.Response{Data: json.RawMessage(`"` + strings.Repeat("x", length) + `"`)}})
		f.post(request{Query: createUser, Key: testKey})
		require.Equal(t, want, len(given) > 0, "%d bytes", length)
		require.Equal(t, want, f.store.Settlements()[0].Claim.Answer != nil, "%d bytes", length)
	}
}

// TestAnswersInEitherFormAreReadWhateverTheConfigurationIsNow changes the configuration between the attempts,
// as a deploy does. What cannot be read is refused and never answered wrongly.
func TestAnswersInEitherFormAreReadWhateverTheConfigurationIsNow(t *testing.T) {
	t.Parallel()
	answers := &answerMap{}
	plain := func(*ratelimit.Config) {}
	codec := func(cfg *ratelimit.Config) { cfg.Idempotency.Codec = reversed{} }
	elsewhere := func(cfg *ratelimit.Config) { cfg.Idempotency.Answers = answers }
	for name, test := range map[string]struct {
		before, after func(*ratelimit.Config)
		readable      bool
	}{
		"a codec was added":     {plain, codec, true},
		"a codec was removed":   {codec, plain, false},
		"answers were moved":    {plain, elsewhere, true},
		"answers were moved in": {elsewhere, plain, false},
	} {
		store := bucket.NewMemory(bucket.MemoryConfig{})
		first := newInProcess(t, store, test.before).post(request{Query: createUser, Key: testKey})
		server := newInProcess(t, store, test.after)
		again := server.post(request{Query: createUser, Key: testKey})
		if test.readable {
			require.Equal(t, dataOf(t, first), dataOf(t, again), name)
		} else {
			require.Equal(t, ratelimitclient.CodeAnswerUnavailable, again.errorCode(t), name)
		}
		require.Zero(t, server.resolver.Created.Load(), name)
	}
}

func TestAnAnswerIsElsewhereBeforeItsRecordSaysSoAndBeforeItIsSent(t *testing.T) {
	t.Parallel()
	answers := &answerMap{}
	f := newFixture(t, func(cfg *ratelimit.Config) { cfg.Idempotency.Answers = answers })
	var settled []int
	answers.before = func() { settled = append(settled, len(f.store.Settlements())) }
	f.post(request{Query: createUser, Key: testKey})
	require.Equal(t, []int{0}, settled, "put once, before the claim was settled")
	record := f.store.Settlements()[0].Claim.Answer
	require.Len(t, record, 33, "the record holds a digest")
	require.NotContains(t, string(record), "Grace")
	require.Equal(t, true, f.post(request{Query: createUser, Key: testKey}).rateLimit(t)["replayed"])
}

func TestAnswersThatAreAwayAreAskedForLaterAndLostOnesAreRefused(t *testing.T) {
	t.Parallel()
	answers := &answerMap{}
	f := newFixture(t, func(cfg *ratelimit.Config) { cfg.Idempotency.Answers = answers })
	mutation := request{Query: createUser, Key: testKey}
	f.post(mutation)
	answers.set(func(a *answerMap) { a.getErr = errBroken })
	away := f.post(mutation)
	require.Equal(t, http.StatusServiceUnavailable, away.Status)
	require.Equal(t, ratelimitclient.CodeUnavailable, away.errorCode(t))
	require.NotEmpty(t, away.Header.Get("Retry-After"))
	answers.set(func(a *answerMap) { a.getErr = nil })
	require.Equal(t, true, f.post(mutation).rateLimit(t)["replayed"])
	for name, lose := range map[string]func(kept map[string][]byte){
		"another answer": func(kept map[string][]byte) {
			for name := range kept {
				kept[name] = []byte(`{"data":{"createUser":{"id":"1","name":"Mallory"}}}`)
			}
		},
		"no answer": func(kept map[string][]byte) { clear(kept) },
	} {
		answers.set(func(a *answerMap) { lose(a.kept) })
		require.Equal(t, ratelimitclient.CodeAnswerUnavailable, f.post(mutation).errorCode(t), name)
	}
	require.EqualValues(t, 1, f.resolver.Created.Load())
}

func TestAnAnswerThatCannotBePutElsewhereReachesItsClientAllTheSame(t *testing.T) {
	t.Parallel()
	answers := &answerMap{putErr: errBroken}
	f := newFixture(t, func(cfg *ratelimit.Config) { cfg.Idempotency.Answers = answers })
	tries := 0
	answers.before = func() { tries++ }
	require.Contains(t, f.post(request{Query: createUser, Key: testKey}).Body, `"Grace"`)
	require.Equal(t, allTries, tries)
	require.Equal(t, ratelimitclient.CodeAnswerUnavailable, f.post(request{Query: createUser, Key: testKey}).errorCode(t))
	require.EqualValues(t, 1, f.resolver.Created.Load())
}

// seesResponses is an extension before the limiter, which sees replays as well.
type seesResponses struct{ codes *[]any }

func (seesResponses) ExtensionName() string                   { return "SeesResponses" }
func (seesResponses) Validate(graphql.ExecutableSchema) error { return nil }
func (s seesResponses) InterceptOperation(ctx context.Context, next graphql.OperationHandler) graphql.ResponseHandler {
	responses := next(ctx)
	return func(ctx context.Context) *graphql.Response {
		response := responses(ctx)
		*s.codes = append(*s.codes, response.Errors[0].Extensions["code"])
		return response
	}
}

func TestTheCodeOfAnErrorIsAStringInAReplay(t *testing.T) {
	t.Parallel()
	var codes []any
	server := newGraphQLServer(&testserver.Resolver{})
	server.Use(seesResponses{&codes})
	server.Use(ratelimit.New(ratelimit.Config{
		Store: bucket.NewMemory(bucket.MemoryConfig{}), Policy: compiledPolicy(t), Subject: byTenantHeader, Observe: ratelimit.ObserveConfig{Logger: discard},
	}))
	server.Use(answersWith{oddAnswers["extensions of errors"]})
	run := &inProcess{t: t, handler: ratelimit.Handler(server)}
	for range 2 {
		run.post(request{Query: createUser, Key: testKey})
	}
	require.Equal(t, []any{"GRAPHQL_VALIDATION_FAILED", "GRAPHQL_VALIDATION_FAILED"}, codes)
}
