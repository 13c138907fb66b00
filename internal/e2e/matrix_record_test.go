package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gqlgen-ratelimit/ratelimit"
)

// sections is a golden file with one part for each outcome.
type sections struct {
	path  string
	names []string
	texts map[string]string
}

// sectionStart is the line before a part.
var sectionStart = regexp.MustCompile(`(?m)^=== (\S+)\n`)

// newSections reads testdata/golden/NAME.txt. Under -update it writes the file when the test ends, and keeps the
// parts of outcomes that did not run.
func newSections(t *testing.T, name string) *sections {
	t.Helper()
	s := &sections{path: filepath.Join("testdata", "golden", name+".txt"), texts: map[string]string{}}
	for i := range outcomeCases {
		s.names = append(s.names, outcomeCases[i].name)
	}
	text, err := os.ReadFile(s.path)
	if !*update {
		require.NoError(t, err, "run go test -update once to record it")
	}
	starts := sectionStart.FindAllStringSubmatchIndex(string(text), -1)
	for i, at := range starts {
		end := len(text)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		s.texts[string(text[at[2]:at[3]])] = string(text[at[1]:end])
	}
	if *update {
		t.Cleanup(func() { s.write(t) })
		return s
	}
	require.Len(t, s.texts, len(s.names), "parts of %s that no outcome has: run go test -update", s.path)
	return s
}

// compare holds what was got to the part, or replaces the part under -update.
func (s *sections) compare(t *testing.T, name, got string) {
	t.Helper()
	// Parts end with one empty line, and streams of parts in lines of MIME.
	got = withoutIDs(got)
	got = strings.TrimRight(strings.ReplaceAll(got, "\r", ""), "\n") + "\n\n"
	if *update {
		s.texts[name] = got
		return
	}
	require.Equal(t, s.texts[name], got, "%s of %s", name, s.path)
}

func (s *sections) write(t *testing.T) {
	t.Helper()
	var b strings.Builder
	for _, name := range s.names {
		fmt.Fprintf(&b, "=== %s\n%s", name, s.texts[name])
	}
	require.NoError(t, os.WriteFile(s.path, []byte(strings.TrimRight(b.String(), "\n")+"\n\n"), 0o600))
}

// witness is a tracer of responses and fields, and an error presenter.
type witness struct {
	fields atomic.Int64

	mu                  sync.Mutex
	presented, answered []string
}

func (*witness) ExtensionName() string                   { return "Witness" }
func (*witness) Validate(graphql.ExecutableSchema) error { return nil }

func (w *witness) InterceptField(ctx context.Context, next graphql.Resolver) (any, error) {
	w.fields.Add(1)
	return next(ctx)
}

func (w *witness) InterceptResponse(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	response := next(ctx)
	if response == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, err := range response.Errors {
		w.answered = append(w.answered, fmt.Sprint(err.Extensions["code"]))
	}
	return response
}

func (w *witness) present(ctx context.Context, err error) *gqlerror.Error {
	var refused *ratelimit.RefusedError
	if errors.As(err, &refused) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.presented = append(w.presented, refused.Code)
	}
	return graphql.DefaultErrorPresenter(ctx, err)
}

// forget drops what was seen so far.
func (w *witness) forget() {
	w.fields.Store(0)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.presented, w.answered = nil, nil
}

func (w *witness) presentedCodes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.presented
}

func (w *witness) answeredCodes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.answered
}
