package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/webhook"
	"github.com/gqlgen-ratelimit/ratelimit/internal/freeport"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// webhookGuide is the page for admins of tenants.
func webhookGuide(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../docs/guide/control-plane-webhooks.md")
	require.NoError(t, err)
	return string(text)
}

// pythonReceiver is the receiver of the guide in Python, at an address of this machine.
type pythonReceiver struct {
	*testing.T
	url string
	// came has an id and a type for each message that was taken.
	came chan [2]string
}

func (p *pythonReceiver) port() string { return p.url[strings.LastIndexByte(p.url, ':')+1:] }

// listen runs the lines of the guide with a secret.
func (p *pythonReceiver) listen(secret, guide string) {
	p.Helper()
	block := regexp.MustCompile("(?s)```python\n(.*?)```").FindStringSubmatch(guide)
	require.Len(p.T, block, 2)
	require.Contains(p.T, block[1], ", 8080)")
	command := exec.CommandContext(p.Context(), "python3", "-c", strings.ReplaceAll(block[1], ", 8080)", ", "+p.port()+")"))
	command.Env = append(os.Environ(), "WEBHOOK_SECRET="+secret)
	out, err := command.StdoutPipe()
	require.NoError(p.T, err)
	require.NoError(p.T, command.Start())
	p.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			id, kind, _ := strings.Cut(lines.Text(), " ")
			p.came <- [2]string{id, kind}
		}
	}()
	p.Eventually(func() bool { return p.post(http.Header{}, "{}") == http.StatusUnauthorized })
}

// Eventually waits until something holds.
func (p *pythonReceiver) Eventually(holds func() bool) {
	p.Helper()
	require.Eventually(p.T, holds, patient, soon)
}

// post sends it a message as it is, and returns the status of the answer, 0 for none.
func (p *pythonReceiver) post(header http.Header, body string) int {
	p.Helper()
	request, err := http.NewRequestWithContext(p.Context(), http.MethodPost, p.url, strings.NewReader(body))
	require.NoError(p.T, err)
	request.Header = header
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// next is the type of the next message that it has taken.
func (p *pythonReceiver) next() (id, kind string) {
	p.Helper()
	select {
	case came := <-p.came:
		return came[0], came[1]
	case <-time.After(patient):
		p.Fatal("nothing has come")
		return "", ""
	}
}

func TestTheGuideOfWebhooksIsFollowedLineByLineToAReceiverInPython(t *testing.T) {
	t.Parallel()
	redis, guide := redistest.Start(t), webhookGuide(t)
	address, err := freeport.Address()
	require.NoError(t, err)
	python := &pythonReceiver{T: t, url: "http://" + address, came: make(chan [2]string, 100)}
	gone := newReceiver(t, "127.0.0.1", status(http.StatusGone))
	r := start(t, t.TempDir(), "-redis", "redis://"+redis.Addr, "-config", hooksAt(t, gone.port(), python.port()))
	variables := map[string]string{"TOKEN": r.first()}
	lines := commands.FindAllString(strings.ReplaceAll(guide, "http://127.0.0.1:8470", r.url), -1)
	require.Len(t, lines, 4, "register, test, failures, replay")
	typed := func(line string) string {
		t.Helper()
		set := ""
		for name, value := range variables {
			set += name + "=" + value + "\n"
		}
		return r.shell(set + line)
	}
	run := func(line string) (answer struct {
		ID, Secret string
		Failures   []struct{ Message string }
	},
	) {
		t.Helper()
		text := typed(line)
		require.NotContains(t, text, `"title"`, line)
		require.NoError(t, json.Unmarshal([]byte(text), &answer), text)
		return answer
	}

	made := run(strings.ReplaceAll(lines[0], "https://hooks.example.com", python.url))
	python.listen(made.Secret, guide)
	variables["ID"] = made.ID
	revision := func(of *receiver) string { return fmt.Sprint(r.state(variables["TOKEN"], of).Revision) }
	variables["REVISION"] = revision(&receiver{id: made.ID})
	run(lines[1])
	_, kind := python.next()
	require.Equal(t, "ratelimit.webhook.test.v1", kind)
	queue := queueTo(t, redis.Addr)
	python.Eventually(func() bool {
		queue.Observe(t.Context(), event.Decided{At: time.Now(), RefusalID: "R1", Outcome: "limited", Code: "RATE_LIMITED", Tenant: "acme"})
		return len(python.came) > 0
	})
	id, kind := python.next()
	require.Equal(t, "ratelimit.decision.refused.v1", kind)

	// What is forged, or was signed long ago, it does not take.
	secret, err := webhook.ParseSecret(made.Secret)
	require.NoError(t, err)
	body := `{"type": "again"}`
	for at, want := range map[time.Duration]int{0: http.StatusNoContent, time.Hour: http.StatusUnauthorized, -time.Hour: http.StatusUnauthorized} {
		header := http.Header{}
		require.NoError(t, webhook.Sign(header, id, time.Now().Add(at), []byte(body), webhook.NewSecret(), secret))
		require.Equal(t, want, python.post(header, body))
		require.Equal(t, http.StatusUnauthorized, python.post(header, body+" "))
	}

	// What has failed is listed, and replayed.
	r.register(variables["TOKEN"], "acme", gone)
	variables["ID"] = gone.id
	// A refusal that was on its way may find the endpoint gone first, which writes a revision.
	python.Eventually(func() bool {
		variables["REVISION"] = revision(gone)
		return !strings.Contains(typed(lines[1]), `"title"`) || r.state(variables["TOKEN"], gone).Disabled == "gone"
	})
	python.Eventually(func() bool {
		is := r.state(variables["TOKEN"], gone)
		return is.Dead > 0 && is.Disabled == "gone"
	})
	failed := run(lines[2]).Failures
	require.NotEmpty(t, failed)
	variables["REVISION"] = revision(gone)
	run(lines[3])
	for _, still := range run(lines[2]).Failures {
		require.NotContains(t, failed, still, "it waits again")
	}
}
