package edge_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/edge"
)

// parsing is a guarded server whose validations wait until they are let go.
type parsing struct {
	*guarded

	begun   chan struct{}
	release chan struct{}
	done    sync.WaitGroup
}

func newParsing(t *testing.T, cfg edge.DocumentConfig) *parsing {
	t.Helper()
	p := &parsing{guarded: newGuarded(t, cfg), begun: make(chan struct{}, 100), release: make(chan struct{})}
	p.during = func() {
		p.begun <- struct{}{}
		<-p.release
	}
	return p
}

// begin sends a document and returns where its answer comes.
func (p *parsing) begin(t *testing.T, address, document string) <-chan *documentAnswer {
	t.Helper()
	answers := make(chan *documentAnswer, 1)
	p.done.Go(func() { answers <- p.ask(t, address, document) })
	synctest.Wait()
	return answers
}

func (p *parsing) end() {
	close(p.release)
	p.done.Wait()
}

func TestAnAddressHasHalfOfTheSlotsForParsing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newParsing(t, edge.DocumentConfig{MaxParsing: 4})
		for _, document := range []string{"{a}", "{a a}", "{a a a}"} {
			p.begin(t, "192.0.2.1", document)
		}
		require.Len(t, p.begun, 2)
		p.begin(t, "192.0.2.2", "{a}")
		require.Len(t, p.begun, 3, "others have their turn")
		p.begin(t, "2001:db8::1", "{a a}")
		p.begin(t, "2001:db8::2", "{a a}")
		require.Len(t, p.begun, 4)
		p.end()
	})
}

func TestADocumentWithoutATurnInTimeIsToldThatTheServerIsOverloaded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newParsing(t, edge.DocumentConfig{MaxParsing: 2})
		p.begin(t, "192.0.2.1", "{a}")
		waiting := p.begin(t, "192.0.2.1", "{a a}")
		start := time.Now()
		refused := <-waiting
		require.Equal(t, 250*time.Millisecond, time.Since(start))
		require.Equal(t, "OVERLOADED", refused.code())
		require.Equal(t, "parser", refused.Errors[0].Extensions["layer"])
		require.Equal(t, http.StatusServiceUnavailable, refused.status)
		require.Contains(t, []string{"1", "2"}, refused.header.Get("Retry-After"))
		p.end()
	})
}

func TestWhoWaitsIsServedWhenASlotIsFreeAndACachedDocumentNeedsNone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newParsing(t, edge.DocumentConfig{MaxParsing: 2, MaxWait: 5 * time.Second})
		first := p.begin(t, "192.0.2.1", "{a}")
		second := p.begin(t, "192.0.2.1", "{a a}")
		p.release <- struct{}{}
		require.Nil(t, (<-first).code())
		synctest.Wait()
		require.Len(t, p.begun, 2, "the second has its turn")
		require.Nil(t, p.ask(t, "192.0.2.1", "{a}").code(), "it is in the cache")
		p.release <- struct{}{}
		require.Nil(t, (<-second).code())
		p.end()
	})
}

func TestAnInvalidDocumentGivesItsSlotBack(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, edge.DocumentConfig{MaxParsing: 1, MaxWaiting: edge.None, RememberInvalid: edge.None})
	for _, document := range []string{"{", "{nope}", "", "query A{a} query B{a}", "query($x:In!){b(x:$x)}", "{a}"} {
		for range 2 {
			require.NotEqual(t, "OVERLOADED", g.ask(t, "192.0.2.1", document).code(), document)
		}
	}
}

func TestARuleThatPanicsGivesItsSlotBackWithItsRequest(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, edge.DocumentConfig{MaxParsing: 1, MaxWaiting: edge.None})
	g.during = func() { panic("a rule") }
	for range 3 {
		require.NotEqual(t, "OVERLOADED", g.ask(t, "192.0.2.1", "{a}").code())
	}
	g.during = nil
	require.Nil(t, g.ask(t, "192.0.2.1", "{a}").code())
}

func TestWithoutTheHandlerARuleThatPanicsKeepsASlotForAWhileAndNotForever(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, edge.DocumentConfig{MaxParsing: 1, MaxWaiting: edge.None})
		g.during = func() { panic("a rule") }
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/query", strings.NewReader(`{"query":"{a}"}`))
		r.Header.Set("Content-Type", "application/json")
		g.ServeHTTP(httptest.NewRecorder(), r)
		g.during = nil
		require.Equal(t, "OVERLOADED", g.ask(t, "192.0.2.1", "{a}").code())
		time.Sleep(11 * time.Second) //nolint:forbidigo // in a bubble
		require.Nil(t, g.ask(t, "192.0.2.1", "{a}").code())
	})
}
