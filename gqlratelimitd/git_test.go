package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write what the commands print into docs/guide/git.md")

const gitPage = "../docs/guide/git.md"

// repository is a folder of Git in which lines of the page are typed.
type repository struct {
	*running
	folder string
	env    []string
}

// buildCommand returns the folder of a gqlratelimit.
func buildCommand(t *testing.T) string {
	t.Helper()
	bin := t.TempDir()
	built, err := exec.CommandContext(t.Context(), "go", "build", "-C", "..", "-o", filepath.Join(bin, "gqlratelimit"), "./cmd/gqlratelimit").CombinedOutput()
	require.NoError(t, err, string(built))
	return bin
}

// newRepository is one beside a daemon that has a policy.
func newRepository(t *testing.T) *repository {
	t.Helper()
	bin := buildCommand(t)
	data := t.TempDir()
	r := &repository{running: start(t, data), folder: t.TempDir()}
	ada := r.issue("ada", r.token)
	r.ask(http.StatusOK, http.MethodPut, "/v1/ratelimit/policies", ada, document, "If-None-Match", "*", "Ratelimit-Reason", "the first policy")
	printed, code := command("-new-token", "-data", data)
	require.Zero(t, code, printed)
	bob := r.issue("bob", regexp.MustCompile(`grl_[a-z2-7]{13}_[a-z2-7]{59}`).FindString(printed))
	home := t.TempDir()
	r.env = []string{
		"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME=" + home, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=ada", "GIT_AUTHOR_EMAIL=ada@example.org", "GIT_COMMITTER_NAME=ada", "GIT_COMMITTER_EMAIL=ada@example.org",
		"RATELIMIT_DAEMON=" + r.url, "RATELIMIT_TOKEN=" + ada, "TOKEN_OF_BOB=" + bob,
	}
	require.Empty(t, r.typed("git init -q -b main"))
	return r
}

// issue exchanges a token that the daemon has printed.
func (r *running) issue(subject, printed string) string {
	r.Helper()
	var issued struct{ Token string }
	answer := r.ask(http.StatusCreated, http.MethodPost, "/v1/tokens", printed, `{"subject": "`+subject+`", "roles": ["admin"]}`)
	require.NoError(r, json.Unmarshal([]byte(answer), &issued))
	return issued.Token
}

// typed is what a person sees who types a line.
func (r *repository) typed(line string) string {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "sh", "-c", line)
	command.Dir, command.Env = r.folder, r.env
	out, err := command.CombinedOutput()
	text := string(out)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		text += fmt.Sprintf("exit status %d\n", exit.ExitCode())
	} else {
		require.NoError(r, err, line)
	}
	for _, e := range r.env {
		if name, secret, _ := strings.Cut(e, "="); strings.Contains(name, "TOKEN") {
			require.NotContains(r, text, secret)
		}
	}
	text = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`).ReplaceAllString(text, "2026-11-22T18:00:00Z")
	return regexp.MustCompile(`#[a-z2-7]{13}\b`).ReplaceAllString(text, "#4wl2n7q5xk3bd")
}

// TestThePageOnGitPrintsWhatTheCommandAndTheDaemonSay types each line of the page in its order.
func TestThePageOnGitPrintsWhatTheCommandAndTheDaemonSay(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(gitPage)
	require.NoError(t, err)
	r := newRepository(t)
	var b strings.Builder
	lines, console, commands := strings.SplitAfter(string(page), "\n"), false, 0
	for i := 0; i < len(lines); i++ {
		b.WriteString(lines[i])
		if strings.HasPrefix(lines[i], "```") {
			console = lines[i] == "```console\n"
		}
		line, typed := strings.CutPrefix(lines[i], "$ ")
		if !console || !typed || strings.HasPrefix(line, "export ") {
			continue
		}
		commands++
		b.WriteString(r.typed(line))
		for i+1 < len(lines) && !strings.HasPrefix(lines[i+1], "$ ") && !strings.HasPrefix(lines[i+1], "# ") && !strings.HasPrefix(lines[i+1], "```") {
			i++
		}
	}
	require.Greater(t, commands, 15)
	if *update {
		require.NoError(t, os.WriteFile(gitPage, []byte(b.String()), 0o644))
		return
	}
	require.Equal(t, string(page), b.String())
}
