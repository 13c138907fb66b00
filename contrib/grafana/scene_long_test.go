//go:build long

package grafana_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/contrib/prometheus/promtest"
	"github.com/gqlgen-ratelimit/ratelimit/event/redisstream"
	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisfeed"
)

// namespace is that of the example.
const namespace = "example"

// scene is the example as a process, with a Redis and a gqlratelimitd, a shop whose store breaks, and a Prometheus that scrapes all of them.
type scene struct {
	*testing.T
	prometheus      *promtest.Prometheus
	redis           *redistest.Server
	example, daemon string
	// leader is the process of the daemon that relays. There is another one.
	leader *os.Process
	token  string
	shop   *promtest.Shop
	// receivers are endpoints of webhooks: one that takes messages, one that is gone, and one that fails.
	receivers *httptest.Server
	client    *http.Client
	ticks     int
}

// newScene starts a Redis and two daemons, and nothing that scrapes them.
func newScene(t *testing.T) (_ *scene, second string) {
	t.Helper()
	s := &scene{T: t, redis: redistest.Start(t), client: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}}
	s.receivers = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(map[string]int{"/fine": http.StatusNoContent, "/gone": http.StatusGone, "/fails": http.StatusInternalServerError}[r.URL.Path])
	}))
	t.Cleanup(s.receivers.Close)
	second = s.startDaemons()
	return s, second
}

// newWholeScene is one in which everything is scraped.
func newWholeScene(t *testing.T) *scene {
	t.Helper()
	s, second := newScene(t)
	metrics := s.startExample()
	s.shop = promtest.NewShop(t, promtest.ShopConfig{Budgets: 20, Candidate: true})
	s.scraped(second, promtest.Target{Job: "example", Address: metrics, Namespace: namespace})
	return s
}

// scraped starts a Prometheus that scrapes both daemons, the shop, and more.
func (s *scene) scraped(second string, more ...promtest.Target) {
	s.Helper()
	rules, err := os.ReadFile("../prometheus/rules/ratelimit.rules.yml")
	require.NoError(s.T, err)
	s.prometheus = promtest.Start(s.T, promtest.Config{Rules: promtest.Shorten(string(rules), faster), Targets: append([]promtest.Target{
		{Job: "gqlratelimitd", Address: s.daemon, Token: s.token, Namespace: namespace},
		{Job: "gqlratelimitd-2", Address: second, Token: s.token, Namespace: namespace},
		{Job: "shop", Address: s.shop.URL, Namespace: "shop"},
	}, more...)})
}

// run runs a program until the end of the test, and returns what it writes first, and its process.
func (s *scene) run(path string, environment []string, args ...string) (string, *os.Process) {
	s.Helper()
	out := make(output, 1)
	command := exec.CommandContext(s.Context(), path, args...)
	command.Env = append(os.Environ(), environment...)
	command.Stdout = out
	require.NoError(s.T, command.Start())
	s.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	return <-out, command.Process
}

// output takes what a program writes first.
type output chan string

// Write implements io.Writer.
func (o output) Write(p []byte) (int, error) {
	select {
	case o <- string(p):
	default:
	}
	return len(p), nil
}

// startDaemons starts two gqlratelimitd of one database with the first policy, which is that of the example. It returns where the second one is.
func (s *scene) startDaemons() (second string) {
	s.Helper()
	path, data, config := filepath.Join(s.TempDir(), "gqlratelimitd"), s.TempDir(), filepath.Join(s.TempDir(), "limits.yaml")
	_, port, _ := strings.Cut(strings.TrimPrefix(s.receivers.URL, "http://"), ":")
	text := "webhooks: {allowNetworks: [127.0.0.1/32], allowPlain: [127.0.0.1], ports: [" + port + "]}\n"
	require.NoError(s.T, os.WriteFile(config, []byte(text), 0o600))
	build(s.T, nil, "-C", "../../gqlratelimitd", "-o", path, ".")
	start := func(address string) (string, *os.Process) {
		return s.run(path, nil, "-listen", address, "-data", data, "-redis", "redis://"+s.redis.Addr, "-namespace", namespace, "-config", config)
	}
	address := promtest.FreeAddress(s.T)
	out, process := start(address)
	s.leader, s.daemon, s.token = process, "http://"+address, regexp.MustCompile(`grl_\w+`).FindString(out)
	var issued struct{ Token string }
	answer := s.ask(http.MethodPost, "/v1/tokens", `{"subject": "me", "roles": ["admin"]}`)
	require.NoError(s.T, json.Unmarshal([]byte(answer), &issued), answer)
	s.token = issued.Token
	s.ask(http.MethodPut, "/v1/ratelimit/policies", s.examplePolicy(), "If-None-Match", "*")
	second = promtest.FreeAddress(s.T)
	start(second)
	return second
}

// webhooks registers the endpoints for a tenant, and has each tried.
func (s *scene) webhooks(tenant string) {
	s.Helper()
	for _, path := range []string{"/fine", "/gone", "/fails"} {
		var made struct {
			ID       string
			Revision uint64
		}
		of := "/v1/orgs/" + tenant + "/ratelimit/webhooks"
		answer := s.ask(http.MethodPost, of, `{"url": "`+s.receivers.URL+path+`"}`)
		require.NoError(s.T, json.Unmarshal([]byte(answer), &made))
		s.ask(http.MethodPost, of+"/"+made.ID+"/test", "", "If-Match", fmt.Sprintf("%q", fmt.Sprint(made.Revision)))
	}
}

// flood has more happen to a tenant than finds room before an endpoint that fails.
func (s *scene) flood(tenant string) {
	s.Helper()
	client := redis.NewClient(&redis.Options{Addr: s.redis.Addr})
	defer func() { _ = client.Close() }()
	sink, err := redisstream.New(redisstream.Config{Client: client, Namespace: namespace})
	require.NoError(s.T, err)
	var batch []stream.Envelope
	for n := range 1100 {
		batch = append(batch, stream.Envelope{
			ID: fmt.Sprint("R", n), Source: "ratelimit:example/test", Type: "ratelimit.decision.refused.v1", Subject: tenant, Time: time.Now(),
			Data: json.RawMessage(`{"tenant":"` + tenant + `"}`), Topic: "ratelimit.denials",
		})
	}
	require.Nil(s.T, sink.Send(s.Context(), batch))
}

// examplePolicy is that of the example, without demo-pro: that one is to have a record of its own.
func (s *scene) examplePolicy() string {
	s.Helper()
	text, err := os.ReadFile("../../example/policy.yaml")
	require.NoError(s.T, err)
	const named = "  demo-pro: {tier: pro}\n"
	require.Contains(s.T, string(text), named)
	return strings.Replace(string(text), named, "", 1)
}

// startExample starts the example with an exporter laid over it, and returns where it is scraped.
func (s *scene) startExample() string {
	s.Helper()
	root, err := filepath.Abs("../..")
	require.NoError(s.T, err)
	folder := s.TempDir()
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {
		filepath.Join(root, "example", "exporter.go"): filepath.Join(root, "contrib", "grafana", "testdata", "exporter.go"),
	}})
	require.NoError(s.T, err)
	require.NoError(s.T, os.WriteFile(filepath.Join(folder, "overlay.json"), overlay, 0o600))
	work := fmt.Sprintf("go 1.25.0\nuse %s\nuse %s\n", root, filepath.Join(root, "contrib", "grafana"))
	require.NoError(s.T, os.WriteFile(filepath.Join(folder, "go.work"), []byte(work), 0o600))
	path := filepath.Join(folder, "example")
	build(s.T, []string{"GOWORK=" + filepath.Join(folder, "go.work")}, "-C", root, "-overlay", filepath.Join(folder, "overlay.json"), "-o", path, "./example")
	address, metrics := promtest.FreeAddress(s.T), promtest.FreeAddress(s.T)
	s.run(path, []string{"METRICS_ADDRESS=" + metrics}, "-addr", address, "-redis", s.redis.Addr, "-follow")
	s.example = "http://" + address + "/query"
	return metrics
}

// build builds a program, as it is shipped: without the race detector. The first two arguments are -C and a folder.
func build(t *testing.T, environment []string, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", append([]string{"build"}, args...)...)
	command.Env = append(os.Environ(), environment...)
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// send sends a request, and returns the status and the text of the answer, 0 if there is none in time.
func (s *scene) send(method, url, body string, headers ...string) (int, string) {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), method, url, strings.NewReader(body))
	require.NoError(s.T, err)
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(text)
}

// ask asks the daemon, which has to do it. It is asked again while it does not answer yet.
func (s *scene) ask(method, path, body string, headers ...string) (text string) {
	s.Helper()
	headers = append(headers, "Authorization", "Bearer "+s.token, "Ratelimit-Reason", "why")
	require.Eventually(s.T, func() bool {
		var status int
		status, text = s.send(method, s.daemon+path, body, headers...)
		require.Less(s.T, status, http.StatusBadRequest, "%s %s: %s", method, path, text)
		return status != 0
	}, time.Minute, 50*time.Millisecond)
	return text
}

// query asks the example, with a key or without one.
func (s *scene) query(key, query string, more ...string) int {
	s.Helper()
	body, err := json.Marshal(map[string]string{"query": query})
	require.NoError(s.T, err)
	if key != "" {
		more = append(more, "X-API-Key", key)
	}
	status, _ := s.send(http.MethodPost, s.example, string(body), more...)
	return status
}

const search = `{ search(query: "nothing like it", first: 100) { ... on Issue { comments(first: 3) { nodes { id } } } } }`

// traffic is a moment of what clients do: some of it is refused, some is malformed.
func (s *scene) traffic() {
	s.Helper()
	s.ticks++
	for _, key := range []string{"demo-free", "demo-pro", "demo-enterprise"} {
		s.query(key, search)
		s.query(key, "{ viewer { login } }")
	}
	s.query("", "{ viewer { login } }")
	s.query("demo-pro", `mutation { createIssue(input: {repositoryId: "R_1", title: "Pasted"}) { issue { id } } }`, "Idempotency-Key", fmt.Sprint("issue-", s.ticks, "-of-this-run"))
	s.query("demo-pro", "{ viewer { "+strings.Repeat("login ", 3000)+"} }")
	for i := range 25 {
		s.shop.Ask(s.T, fmt.Sprint("local-", i), promtest.Users)
	}
	s.shop.Ask(s.T, "large-1", promtest.Search)
	s.shop.Ask(s.T, "closed-1", promtest.Users)
}

// publishElsewhere has somebody else than the daemon publish a policy, under a number that is larger than any of its own.
func (s *scene) publishElsewhere() {
	s.Helper()
	client := redis.NewClient(&redis.Options{Addr: s.redis.Addr})
	defer func() { _ = client.Close() }()
	feed, err := redisfeed.New(redisfeed.Config{Client: client, Namespace: namespace})
	require.NoError(s.T, err)
	newest, err := feed.Newest(s.Context(), policy.Head{})
	require.NoError(s.T, err)
	text := []byte(s.examplePolicy() + "# elsewhere\n")
	require.NoError(s.T, feed.Publish(context.WithoutCancel(s.Context()), &policy.Revision{
		Number: 1000, Document: text, Hash: policy.HashOf(text), Author: "somebody else",
	}, newest.Number))
}
