package main

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
)

func TestEveryGenomeIsADocument(t *testing.T) {
	t.Parallel()
	s, err := newStation()
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(1, 1))
	d, valid := randomGenome(r), 0
	const genomes = 500
	for range genomes {
		text := newAuthor(s.schema, d, 4<<10).document()
		_, err := parser.ParseQuery(&ast.Source{Input: text})
		require.NoError(t, err, text)
		if _, err := s.valid(text); err == nil {
			valid++
		}
		d = d.child(r, randomGenome(r))
	}
	require.Greater(t, valid, genomes/10)
}

func TestAGenomeIsNotItsChild(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	parent := randomGenome(r)
	before, err := json.Marshal(parent)
	require.NoError(t, err)
	for range 100 {
		parent.child(r, randomGenome(r)).shrink()
	}
	after, err := json.Marshal(parent)
	require.NoError(t, err)
	require.Equal(t, string(before), string(after))
}

func TestTheSearchBeginsWithWhatIsKnownToBeDear(t *testing.T) {
	t.Parallel()
	s, err := newStation()
	require.NoError(t, err)
	var texts strings.Builder
	for _, d := range beginnings() {
		texts.WriteString(newAuthor(s.schema, d, mostDocument).document())
	}
	for _, part := range []string{"__schema", "not:{not:", "wwww", "on __Schema{...f0_1 ...f0_1 }", "on Query{...f0_1 ...f1_0 }", "query q159"} {
		require.Contains(t, texts.String(), part)
	}
	for _, f := range families {
		_, err := parse(f.text())
		require.NoError(t, err, f.name)
	}
}

func TestAStepIsMeasuredOnlyWithWhatComesToIt(t *testing.T) {
	t.Parallel()
	s, err := newStation()
	require.NoError(t, err)
	nanos := func(step int, text string) float64 {
		v, err := s.try(trial{Step: step, Text: text}, func() error { return nil })
		require.NoError(t, err)
		return v.Nanos
	}
	for i := range steps {
		require.Positive(t, nanos(i, "query q0{"+strings.Repeat(" id", 300)+"}"), steps[i].name)
	}
	require.Zero(t, nanos(1, "{"))
	require.Zero(t, nanos(3, "{missing}"))
}

func TestATrialEndsByTheTimeOfTheProcessor(t *testing.T) {
	t.Parallel()
	var a allowance
	a.begin()
	begun := processorTime()
	require.False(t, a.over(begun))
	require.True(t, a.over(begun+longestTrial+time.Second))
}

func TestTheServersOfASearchAnswerADocumentTheyHaveNotSeen(t *testing.T) {
	t.Parallel()
	s, err := newStation()
	require.NoError(t, err)
	for _, server := range []http.Handler{s.open, s.guarded, s.whole} {
		var answers []string
		do, err := ask(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			answers = append(answers, string(body))
			r.Body = io.NopCloser(bytes.NewReader(body))
			kept := httptest.NewRecorder()
			server.ServeHTTP(kept, r)
			require.Equal(t, http.StatusOK, kept.Code, kept.Body)
		}), "query q0{id}")
		require.NoError(t, err)
		do()
		do()
		require.NotEqual(t, answers[0], answers[1])
	}
}
