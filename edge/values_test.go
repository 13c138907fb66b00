package edge_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/edge"
	"github.com/gqlgen-ratelimit/ratelimit/edge/internal/jsonvalue"
)

// tooManyValues are bodies of 10 001 values or more.
func tooManyValues() map[string]string {
	list := func(element string, n int) string {
		return `{"query":"{a}","variables":{"x":[` + strings.Repeat(element+",", n-1) + element + `]}}`
	}
	return map[string]string{
		"numbers":         list("0", 9997),
		"objects":         list(`{}`, 9997),
		"members":         list(`{"a":0}`, 4999),
		"objects, nested": `{"query":"{a}","variables":` + strings.Repeat(`{"":`, 9998) + `0` + strings.Repeat("}", 9998) + "}",
	}
}

func TestABodyOfTooManyValuesIsRefusedBeforeItIsDecoded(t *testing.T) {
	t.Parallel()
	for name, text := range tooManyValues() {
		next := &passed{}
		h := newDoor(t, edge.Config{}).Handler(next)
		refused := ask(t, h, "192.0.2.1", body(text, true))
		require.Equal(t, http.StatusBadRequest, refused.status, name)
		require.Equal(t, "QUERY_LIMIT_EXCEEDED", refused.refusal.Code, name)
		require.Equal(t, "values", refused.refusal.Rule, name)
		require.EqualValues(t, 10_001, refused.refusal.Given, name)
		require.Contains(t, refused.refusal.Message, "send them in several operations", name)
		require.Empty(t, next.bodies, name)

		unbounded := newDoor(t, edge.Config{Request: edge.RequestConfig{MaxValues: edge.None}}).Handler(next)
		require.Equal(t, http.StatusOK, ask(t, unbounded, "192.0.2.1", body(text, true)).status, name)
		require.Equal(t, []string{text}, next.bodies, name)
	}
	h := newDoor(t, edge.Config{}).Handler(&passed{})
	fits := `{"query":"{a}","variables":{"x":[` + strings.Repeat("0,", 9995) + `0]}}`
	require.Equal(t, http.StatusOK, ask(t, h, "192.0.2.1", body(fits, true)).status, "10 000 are not too many")
}

func TestVariablesThatAreInNoBodyHaveTheSameBound(t *testing.T) {
	t.Parallel()
	s := serve(t, edge.Config{Request: edge.RequestConfig{MaxValues: 20}}, nil)
	const variables = `{"x":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}`
	response, err := s.Client().Get(s.URL + "?query=" + url.QueryEscape("{me{id}}") + "&variables=" + url.QueryEscape(variables))
	require.NoError(t, err)
	require.Equal(t, "values", read(t, response).refusal.Rule)

	c, _ := s.dial(t, "websocket")
	c.send(map[string]any{"id": "1", "type": "subscribe", "payload": map[string]any{
		"query": "{ me { id } }", "variables": json.RawMessage(variables),
	}})
	require.Contains(t, c.receive(), `"rule":"values"`)
	require.Contains(t, c.receive(), `"complete"`)
	require.Contains(t, c.run("2"), `"me"`, "the connection goes on")
}

func TestEachValueCountsAsBytes(t *testing.T) {
	t.Parallel()
	for n, most := range map[int]int{0: 8, 1000: 1} {
		h := newDoor(t, edge.Config{
			Address: edge.AddressConfig{Limits: []bucket.Limit{{Name: "bytes", Unit: edge.Bytes, Capacity: 26_000, Period: time.Hour}}},
			Request: edge.RequestConfig{MaxHeader: 1000, MaxQuery: 500, MaxBody: 8000, MaxValues: 1000},
		}).Handler(&passed{})
		text := "[" + strings.Repeat(" ", 3000-2*n) + strings.TrimSuffix(strings.Repeat("0,", n-min(n, 1)), ",") + "]"
		admitted := 0
		for ask(t, h, "192.0.2.1", body(text, true)).status == http.StatusOK {
			admitted++
		}
		require.Equal(t, most, admitted, "of %d values", n)
	}
}

func TestWhatAllOperationsOfAnAddressHoldIsBounded(t *testing.T) {
	t.Parallel()
	s := serve(t, edge.Config{Address: edge.AddressConfig{Values: 30}}, nil)
	s.resolver.Tick = make(chan int)
	c, _ := s.dial(t, "websocket")
	holding := map[string]any{"query": ticking, "extensions": map[string]any{"x": make([]int, 19)}}
	c.send(map[string]any{"id": "1", "type": "subscribe", "payload": holding})
	require.Eventually(t, func() bool { return s.resolver.Asked.Load() == 1 }, time.Minute, time.Millisecond)
	c.send(map[string]any{"id": "2", "type": "subscribe", "payload": holding})
	refused := c.receive()
	require.Contains(t, refused, `"code":"RATE_LIMITED"`)
	require.Contains(t, refused, `"layer":"address"`)

	post := `{"query":"{ me { id } }","variables":{"x":"` + strings.Repeat("x", 64*20) + `"}}`
	require.Equal(t, http.StatusTooManyRequests, s.post(t, strings.NewReader(post)).status, "64 bytes count as one value")
	c.send(map[string]any{"id": "1", "type": "complete"})
	for range 3 {
		require.Eventually(t, func() bool { return s.post(t, strings.NewReader(post)).status == http.StatusOK }, time.Minute, time.Millisecond,
			"what has ended makes room")
	}
}

func TestWhatAllOperationsHoldIsBounded(t *testing.T) {
	t.Parallel()
	s := serve(t, edge.Config{Request: edge.RequestConfig{Values: 30}}, nil)
	post := func(n int) answer {
		return s.post(t, strings.NewReader(`{"query":"{ me { id } }","variables":{"x":[`+strings.TrimSuffix(strings.Repeat("0,", n), ",")+`]}}`))
	}
	require.Equal(t, http.StatusServiceUnavailable, post(30).status)
	require.Equal(t, http.StatusOK, post(29).status)
	require.Equal(t, http.StatusOK, post(29).status, "what has ended makes room")
}

// Not parallel: it reads the heap of the process.
func TestAValueTakesNoMoreThanIsSaid(t *testing.T) {
	const copies, bytesPerHeld = 10, 400
	texts := tooManyValues()
	texts["objects in objects"] = `{"variables":{"x":[` + strings.Repeat(`{"":{"":{"":{"":{"":{"":{"":{"":{}}}}}}}}},`, 1000) + `0]}}`
	texts["lists in lists"] = `{"variables":{"x":[` + strings.Repeat(`[[[[[[[[[0]]]]]]]]],`, 1000) + `0]}}`
	texts["long names"] = `{"variables":{"x":[` + strings.Repeat(`{"`+strings.Repeat("x", 60)+`":{}},`, 1000) + `0]}}`
	for name, text := range texts {
		kept, n := make([]any, copies), jsonvalue.In([]byte(text))
		before := heap()
		for i := range kept {
			decoder := json.NewDecoder(strings.NewReader(text))
			decoder.UseNumber()
			require.NoError(t, decoder.Decode(&kept[i]))
		}
		taken := float64(heap()-before) / copies / float64(n)
		t.Logf("%-20s %5.0f bytes for each of %d", name, taken, n)
		require.Less(t, taken, float64(bytesPerHeld), name)
		runtime.KeepAlive(kept)
	}
}
