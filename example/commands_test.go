package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/textproto"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// shell runs a line as a person who pastes it, without a proxy or a .curlrc of their own.
func shell(t *testing.T, line string) string {
	t.Helper()
	for _, tool := range []string{"bash", "curl"} {
		_, err := exec.LookPath(tool)
		require.NoErrorf(t, err, "the printed commands need %s: install it, for example with: make test", tool)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "bash", "-c", line)
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	require.NoError(t, err, "%s\n%s", line, stderr.String())
	return string(out)
}

// The commands, by their place in commands.
const (
	cheap = iota
	expensive
	refusal
	replay
)

// paste runs a printed command and returns the replies that it shows.
func paste(t *testing.T, i *instance, n int) []reply {
	t.Helper()
	printed := shell(t, i.lines[n])
	if n == refusal {
		return repliesWithHeaders(t, printed)
	}
	var replies []reply
	for line := range strings.Lines(printed) {
		if line = strings.TrimSpace(line); line != "" {
			// curl prints no status here: an answer with one of its own would have errors, too.
			replies = append(replies, reply{status: http.StatusOK, body: line})
		}
	}
	return replies
}

// repliesWithHeaders reads what curl -i prints.
func repliesWithHeaders(t *testing.T, printed string) []reply {
	t.Helper()
	var replies []reply
	for _, text := range strings.Split(printed, "HTTP/1.1 ")[1:] {
		statusLine, rest, found := strings.Cut(text, "\r\n")
		require.True(t, found, text)
		number, _, _ := strings.Cut(statusLine, " ")
		status, err := strconv.Atoi(number)
		require.NoError(t, err, text)
		head, body, found := strings.Cut(rest, "\r\n\r\n")
		require.True(t, found, text)
		header, err := textproto.NewReader(bufio.NewReader(strings.NewReader(head + "\r\n\r\n"))).ReadMIMEHeader()
		require.NoError(t, err, text)
		replies = append(replies, reply{status: status, header: http.Header(header), body: strings.TrimSpace(body)})
	}
	return replies
}

// TestPrintedCommandsDoWhatTheySay runs each printed command as it is printed, in the printed order,
// and compares what it returns with a golden file.
func TestPrintedCommandsDoWhatTheySay(t *testing.T) {
	t.Parallel()
	order := []int{cheap, expensive, refusal, replay}
	for store, play := range stores {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			replies := play(t, order)
			requireCommands(t, order, replies)
			for _, n := range order {
				requireGolden(t, goldenNames[n], replies[n])
			}
		})
	}
}

func TestPrintedCommandsAreTrueInAnotherOrder(t *testing.T) {
	t.Parallel()
	for _, order := range [][]int{{replay, refusal, expensive, cheap}, {refusal, cheap, replay, expensive}} {
		for store, play := range stores {
			t.Run(store, func(t *testing.T) {
				t.Parallel()
				requireCommands(t, order, play(t, order))
			})
		}
	}
}

var goldenNames = map[int]string{
	cheap: "cheap.json", expensive: "expensive.json", refusal: "refusal.json", replay: "replay.json",
}

// stores plays the commands in an order on a fresh start. The replies are by command.
var stores = map[string]func(t *testing.T, order []int) map[int][]reply{
	"memory": func(t *testing.T, order []int) map[int][]reply {
		t.Helper()
		i := startExample(t)
		replies := map[int][]reply{}
		for _, n := range order {
			replies[n] = paste(t, i, n)
		}
		return replies
	},
	"redis": func(t *testing.T, order []int) map[int][]reply {
		t.Helper()
		var replies map[int][]reply
		onRedis(t, func(address string) []reply {
			i := startExample(t, "-redis", address)
			replies = map[int][]reply{}
			var all []reply
			for _, n := range order {
				replies[n] = paste(t, i, n)
				all = append(all, replies[n]...)
			}
			return all
		})
		return replies
	},
}

// requireCommands checks what the comment above each command promises.
func requireCommands(t *testing.T, order []int, replies map[int][]reply) {
	t.Helper()
	require.Len(t, commands, len(order), "every command is run")
	require.Len(t, replies[cheap], 1)
	replies[cheap][0].requireCharged(t, commands[cheap].cost)
	require.EqualValues(t, 1000, limit(t, replies[cheap][0].rateLimit(t), "minute").Capacity)

	require.Len(t, replies[expensive], 1)
	replies[expensive][0].requireCharged(t, commands[expensive].cost)

	require.Len(t, replies[refusal], 3)
	replies[refusal][0].requireCharged(t, commands[refusal].cost)
	replies[refusal][2].requireRefused(t, commands[refusal].cost)

	require.Len(t, replies[replay], 2)
	first, second := replies[replay][0], replies[replay][1]
	first.requireCharged(t, commands[replay].cost)
	require.True(t, second.rateLimit(t).Replayed, second.body)
	require.Equal(t, commands[replay].cost, second.rateLimit(t).Cost)
	require.Zero(t, second.rateLimit(t).Charged)
	require.Positive(t, issueNumber(t, first))
	require.Equal(t, withoutRateLimit(t, first.body), withoutRateLimit(t, second.body), "the stored answer is the answer")
}

// issueNumber returns the number of the issue that was created.
func issueNumber(t *testing.T, r reply) int {
	t.Helper()
	var body struct {
		Data struct {
			CreateIssue struct{ Issue struct{ Number int } }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(r.body), &body), r.body)
	return body.Data.CreateIssue.Issue.Number
}

// requireGolden compares replies with a golden file, in which the numbers that depend on how long the
// test took are blanked out.
func requireGolden(t *testing.T, name string, replies []reply) {
	t.Helper()
	var transcript []map[string]any
	for _, r := range replies {
		var body any
		require.NoError(t, json.Unmarshal([]byte(r.body), &body), r.body)
		requireBounds(t, r)
		entry := map[string]any{"body": blank(t, body)}
		if r.header != nil {
			entry["status"], entry["header"] = r.status, steadyHeader(r.header)
		}
		transcript = append(transcript, entry)
	}
	got, err := json.MarshalIndent(transcript, "", "  ")
	require.NoError(t, err)
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, append(got, '\n'), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run go test -update once to record it")
	require.JSONEq(t, string(want), string(got))
}

// requireBounds checks what is blanked out in the golden files.
func requireBounds(t *testing.T, r reply) {
	t.Helper()
	state := r.rateLimit(t)
	top := limit(t, state, state.Limit)
	require.Equal(t, state.Capacity, top.Capacity, "the limit at the top is one of them")
	for _, l := range append(state.Limits, top) {
		require.GreaterOrEqual(t, l.Remaining, int64(0))
		require.LessOrEqual(t, l.Remaining, l.Capacity)
		require.GreaterOrEqual(t, l.ResetAfter, 0.0)
	}
}

// blanked stands for a number that is another one each time.
const blanked = "~"

var (
	volatileMessage = regexp.MustCompile(`\d+ of (\d+) left, try again in [0-9.ms]+ or`)
	volatileItem    = regexp.MustCompile(`;r=\d+(;t=\d+)?`)
)

// blank replaces what depends on time, all the way down.
func blank(t *testing.T, value any) any {
	t.Helper()
	switch v := value.(type) {
	case []any:
		for i := range v {
			v[i] = blank(t, v[i])
		}
	case map[string]any:
		if v["replayed"] == true {
			// A replay shows the limits of its own time, of which now one and now another is the tightest.
			v["limit"], v["capacity"] = blanked, blanked
		}
		for name, inner := range v {
			switch name {
			case "remaining", "resetAfter", "retryAfter":
				require.IsType(t, float64(0), inner, name)
				v[name] = blanked
			case "refusalId":
				require.Regexp(t, "^[A-Z2-7]{26}$", inner)
				v[name] = blanked
			case "message":
				require.IsType(t, "", inner)
				text, _ := inner.(string)
				v[name] = volatileMessage.ReplaceAllString(text, blanked+" of $1 left, try again in "+blanked+" or")
			default:
				v[name] = blank(t, inner)
			}
		}
	}
	return value
}

// steadyHeader returns the headers that an answer has each time.
func steadyHeader(header http.Header) http.Header {
	steady := header.Clone()
	steady.Del("Date")
	steady.Del("Content-Length")
	if state := steady.Get("RateLimit"); state != "" {
		steady.Set("RateLimit", volatileItem.ReplaceAllString(state, ";r="+blanked))
	}
	if steady.Get("Retry-After") != "" {
		steady.Set("Retry-After", blanked)
	}
	return steady
}
