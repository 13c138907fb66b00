package main

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/postgrestest"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// shell runs lines as somebody types them, in a folder with the policy of the guide.
func (r *running) shell(lines string) string {
	r.Helper()
	folder := r.TempDir()
	require.NoError(r, os.WriteFile(filepath.Join(folder, "policy.yaml"), []byte(document), 0o600))
	cmd := exec.CommandContext(r.Context(), "bash", "-euc", lines)
	cmd.Dir = folder
	out, err := cmd.Output()
	require.NoError(r, err, lines)
	return string(out)
}

// tokenIn reads a token out of an answer.
func tokenIn(t *testing.T, answer string) string {
	t.Helper()
	var issued struct{ Token string }
	require.NoError(t, json.Unmarshal([]byte(answer), &issued), answer)
	require.NotEmpty(t, issued.Token, answer)
	return issued.Token
}

// commands are the lines of a text that a shell is to run, each whole.
var commands = regexp.MustCompile(`(?m)^ *curl (?:.*\\\n)*.*$`)

// expires is the date of an override in a text.
var expires = regexp.MustCompile(`"expires": "[^"]+"`)

func TestWhatItPrintsIsCopiedIntoAShellAsItIs(t *testing.T) {
	t.Parallel()
	r := start(t, filepath.Join(t.TempDir(), "state"))
	lines := commands.FindAllString(r.out, -1)
	require.Len(t, lines, 2, r.out)
	token := tokenIn(t, r.shell(lines[0]))
	require.Contains(t, r.shell(strings.ReplaceAll(lines[1], "TOKEN", token)), `"number":1`)
}

func TestTheGuideIsFollowedLineByLine(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	r := start(t, filepath.Join(t.TempDir(), "state"), "-redis", "redis://"+server.Addr)
	text, err := os.ReadFile("../docs/guide/control-plane.md")
	require.NoError(t, err)
	require.Contains(t, string(text), strings.TrimSpace(document), "the policy of the guide is that of this test")
	steps := strings.ReplaceAll(string(text[:strings.Index(string(text), "## For real use")]), "http://127.0.0.1:8470", r.url)
	// Whoever reads it writes a date that is to come.
	require.Regexp(t, expires, steps)
	steps = expires.ReplaceAllString(steps, `"expires": "`+time.Now().Add(time.Hour).UTC().Format(time.RFC3339)+`"`)
	lines := commands.FindAllString(steps, -1)
	require.GreaterOrEqual(t, len(lines), 4)
	token := tokenIn(t, r.shell("PRINTED="+r.token+"\n"+lines[0]))
	// The guide calls the token that it issues for carl TOKEN_OF_CARL.
	known := "TOKEN=" + token + "\n"
	for i, line := range lines[1:] {
		answer := r.shell(known + line)
		if strings.Contains(line, `"subject": "carl"`) {
			known += "TOKEN_OF_CARL=" + tokenIn(t, answer) + "\n"
		}
		require.NotContains(t, answer, `"title"`, line)
		if want := []string{`"number":1`, `"number":2`, `"capacity":5000`}; i < len(want) {
			require.Contains(t, answer, want[i])
		}
	}
	require.Contains(t, r.ask(http.StatusOK, http.MethodGet, "/v1/orgs/acme/ratelimit/usage", token, ""), `"grade":"budget"`)
}

func TestALostTokenIsReplacedWhileTheDaemonRuns(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "state")
	r := start(t, data)
	r.first()
	out, code := command("-new-token", "-data", data, "-listen", strings.TrimPrefix(r.url, "http://"))
	require.Zero(t, code, out)
	lines := commands.FindAllString(out, -1)
	require.Len(t, lines, 1, out)
	tokenIn(t, r.shell(lines[0]))
	// Where it listens is not known without what it was told.
	out, code = command("-new-token", "-data", data)
	require.Zero(t, code, out)
	require.NotContains(t, out, defaultListen)
	require.Contains(t, out, "URL is what the daemon says that it serves")
	tokenIn(t, r.shell(strings.Replace(commands.FindString(out), "URL/", r.url+"/", 1)))

	elsewhere := filepath.Join(t.TempDir(), "misspelt")
	out, code = command("-new-token", "-data", elsewhere)
	require.Equal(t, exitFailed, code)
	require.Contains(t, out, "there is no database")
	require.NoDirExists(t, elsewhere)
}

func TestTheSQLIsRunByAnotherRoleAndTheDaemonDoesAllOfItsWorkWithTheRightsThatItPrints(t *testing.T) {
	t.Parallel()
	postgres, err := postgrestest.Launch()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, postgres.Close()) })
	owner, err := pgx.Connect(t.Context(), postgres.URL("postgres"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = owner.Close(t.Context()) })
	run := func(sql string) {
		_, err := owner.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
		require.NoError(t, err, sql)
	}
	sql, code := command("-print-sql", "-database", "postgres://", "-sql-role", "limits")
	require.Zero(t, code, sql)
	run("CREATE ROLE limits LOGIN; REVOKE CREATE ON DATABASE postgres FROM PUBLIC")
	run(sql)
	redis := redistest.Start(t)
	url := strings.Replace(postgres.URL("postgres"), "postgres@", "limits@", 1)
	r := start(t, t.TempDir(), "-database", url, "-redis", "redis://"+redis.Addr)
	token := r.first()
	set := "/v1/orgs/acme/ratelimit/overrides?level=tenant&limit=minute"
	r.ask(http.StatusOK, http.MethodPut, set, token, `{"capacity": 7, "expires": "`+inAnHour()+`"}`, "If-None-Match", "*", "Idempotency-Key", "once")
	// The relay has a lease, and looks for overrides that nobody has set here.
	for !strings.Contains(r.ask(http.StatusOK, http.MethodGet, "/v1/orgs/acme/ratelimit/usage", token, ""), `"capacity":7`) {
		require.NoError(t, t.Context().Err())
		require.JSONEq(t, `{"status":"ready"}`, r.ask(http.StatusOK, http.MethodGet, "/readyz", token, ""))
	}

	_, code = command("-print-sql", "-sql-role", "limits")
	require.Equal(t, exitUsage, code, "SQLite has no roles")
}
