package main

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/session"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

var update = flag.Bool("update", false, "write what the command prints into the transcripts and the documentation")

// prompt begins a line that a person types. What follows it is what the command prints, on either
// output, and what go run adds to an exit code that is not 0.
const prompt = "$ go run ./cmd/gqlratelimit "

// github is a directory with the schema of GitHub, which transcripts call $GITHUB.
var github string

// TestMain runs the tests at the root of the repository, where a reader runs the commands.
func TestMain(m *testing.M) {
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	if err := os.Chdir(filepath.Join("..", "..")); err != nil {
		return 0, err
	}
	if github, err = os.MkdirTemp("", "github"); err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(github) }()
	packed, err := os.Open(filepath.FromSlash("cmd/gqlratelimit/testdata/github/schema.graphql.gz"))
	if err != nil {
		return 0, err
	}
	defer func() { _ = packed.Close() }()
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		return 0, err
	}
	text, err := io.ReadAll(unpacked)
	if err != nil {
		return 0, err
	}
	if err := os.WriteFile(filepath.Join(github, "schema.graphql"), text, 0o600); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// livePolicy is the policy of the limiter that transcripts work on.
const livePolicy = "cmd/gqlratelimit/testdata/live/policy.yaml"

// installed begins a line of a person whose environment names a Redis and a policy.
const installed = "$ gqlratelimit "

// spending is a line between commands that says what has happened meanwhile.
var spending = regexp.MustCompile(`^# (\S+) spends (\d+) points(?: as (\S+))?(?: on (\S+))?\n`)

// fleet is a line that says what three instances have decided.
var fleet = regexp.MustCompile(`^# three instances have refused (\S+)\n`)

// offline are the sub-commands without a Redis.
var offline = regexp.MustCompile(`^(cost|lint|diff) `)

// What no two runs have in common: how long is left, and dates.
var (
	left = regexp.MustCompile(`\bin [0-9][0-9hm.]*s\b`)
	date = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	took = regexp.MustCompile(`("resetAfterSeconds": )\d+`)
)

// stage is where a transcript is played.
type stage struct {
	t *testing.T
	// addr is that of the Redis of the transcript. It is empty until a command needs one.
	addr string
}

// redis is the address of the Redis of the transcript.
func (th *stage) redis() string {
	if th.addr == "" {
		th.addr = redistest.Start(th.t).Addr
	}
	return th.addr
}

func (th *stage) getenv(name string) string {
	switch name {
	case session.RedisVariable:
		return "redis://" + th.redis()
	case session.PolicyVariable:
		return livePolicy
	case "USER":
		return "jo"
	}
	return ""
}

// output runs the command and returns what a person sees.
func (th *stage) output(getenv func(string) string, args ...string) string {
	var both bytes.Buffer
	code := run(cli.Console{Stdout: &both, Stderr: &both, Getenv: getenv}, args)
	if code != exitOK {
		fmt.Fprintf(&both, "exit status %d\n", code)
	}
	text := both.String()
	if th.addr != "" {
		text = strings.ReplaceAll(text, th.addr, "127.0.0.1:6379")
	}
	text = left.ReplaceAllStringFunc(text, func(s string) string { return "in 42s" + strings.Repeat(" ", max(0, len(s)-6)) })
	text = date.ReplaceAllString(text, "2026-11-22T18:00:00Z")
	return trailing.ReplaceAllString(took.ReplaceAllString(text, "${1}42"), "\n")
}

var trailing = regexp.MustCompile(` +\n`)

// spend charges what a line says that somebody spends.
func (th *stage) spend(said []string) {
	t := th.t
	held, err := session.LoadPolicy(livePolicy)
	require.NoError(t, err)
	client, err := redisclient.Open(th.redis(), redisclient.Config{DialTimeout: patience, SocketTimeout: patience})
	require.NoError(t, err)
	defer func() { _ = client.Close() }()
	store, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Timeout: patience, AdminTimeout: patience})
	require.NoError(t, err)
	points, err := strconv.ParseInt(said[2], 10, 64)
	require.NoError(t, err)
	var selection tiers.Selection
	if said[4] != "" {
		selection.Fields = []string{said[4]}
	}
	rules := held.Rules(tiers.Subject{Tenant: said[1], User: said[3]}, selection)
	result, err := store.Take(t.Context(), bucket.Take{
		Tenant: said[1], Buckets: rules.Buckets,
		Amounts: bucket.Amounts{{Unit: bucket.Points, N: points}, {Unit: bucket.Requests, N: 1}},
	})
	require.NoError(t, err)
	require.Equal(t, bucket.Admitted, result.Verdict)
}

// patience is how long a busy machine may take.
const patience = 30 * time.Second

// words are the arguments of a line, of which quotes make one.
func words(line string) []string {
	var all []string
	var word strings.Builder
	var quote rune
	within := false
	for _, r := range line + " " {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			quote, within = r, true
		case r == ' ' || r == '\n':
			if within {
				all = append(all, word.String())
			}
			word.Reset()
			within = false
		default:
			word.WriteRune(r)
			within = true
		}
	}
	return all
}

// replay returns the text with what its commands print now, and how many commands it has.
func replay(t *testing.T, text string) (replayed string, commands int) {
	t.Helper()
	th := &stage{t: t}
	var b strings.Builder
	lines := strings.SplitAfter(text, "\n")
	for i := 0; i < len(lines); i++ {
		b.WriteString(lines[i])
		if said := spending.FindStringSubmatch(lines[i]); said != nil {
			th.spend(said)
			continue
		}
		if said := fleet.FindStringSubmatch(lines[i]); said != nil {
			th.refuse(said[1])
			continue
		}
		getenv := func(string) string { return "" }
		args, ok := strings.CutPrefix(lines[i], prompt)
		if !ok {
			getenv = th.getenv
			// What is priced in a project of somebody is an example.
			if args, ok = strings.CutPrefix(lines[i], installed); !ok || offline.MatchString(args) {
				continue
			}
		}
		commands++
		printed := th.output(getenv, words(strings.ReplaceAll(args, "$GITHUB", github))...)
		b.WriteString(strings.ReplaceAll(printed, github, "$GITHUB"))
		for i+1 < len(lines) && !ends(lines[i+1]) {
			i++
		}
	}
	return b.String(), commands
}

// ends reports whether a line is no longer what a command printed.
func ends(line string) bool {
	return strings.HasPrefix(line, "$ ") || strings.HasPrefix(line, "# ") || strings.HasPrefix(line, "```")
}

// documents are the texts whose transcripts are held to the truth.
func documents(t *testing.T) []string {
	t.Helper()
	transcripts, err := filepath.Glob("cmd/gqlratelimit/testdata/transcripts/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, transcripts)
	return append(transcripts, "docs/reference/command.md", "docs/guide/pricing.md", "docs/guide/rollout.md", "docs/guide/runbook.md")
}

func TestTheCommandPrintsWhatTheTranscriptsAndTheDocumentationSay(t *testing.T) {
	t.Parallel()
	for _, file := range documents(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			replayed, commands := replay(t, string(text))
			require.Positive(t, commands, "the text has a command")
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(replayed), 0o644))
				return
			}
			require.Equal(t, string(text), replayed)
		})
	}
}
